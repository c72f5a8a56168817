"""FedVS: trainings through shares, with stragglers and without."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.data import load
from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.faults.fault_set import NO_FAULTS, Fault, Faults
from dvfl.parties.faults.outages import Outage, Outages
from dvfl.parties.numerics.learner import Adam, Sgd
from dvfl.settings.training import FedVSSettings
from dvfl.simulation.simulation import megabytes_sent_per_guest
from dvfl.strategies.fedvs.fedvs import CodedRounds, FedVS
from dvfl.strategies.split.split_training import Masks

ROUNDS = 10  # of an epoch: 600 rows in batches of 64
SETTINGS = FedVSSettings(epochs=2, guest_rule=Adam(5e-3), host_rule=Adam(5e-3), validation=0.0)
WISHES: list[tuple[str, dict[str, Any]]] = [
    ("digits", {}),
    ("six_guests", {}),
    ("six_guests", {"squares": 0, "segments": 2}),
]


def recorded(*rows: Outage) -> Faults:
    return Faults(outages=Outages("record", rows))


def trained(
    data: VerticalData, settings: Any = SETTINGS, seeds: tuple[int, ...] = (5,), faults: Any = NO_FAULTS
) -> FedVS:
    simulation = FedVS(data, settings, seeds, faults=faults)
    simulation.run()
    return simulation


def learned(simulation: FedVS) -> list[Tensor]:
    return [learner.parameters.clone() for learner in simulation.model.learners]


def written(monkeypatch: pytest.MonkeyPatch, heard: NDArray[np.bool_], told: NDArray[np.bool_]) -> None:
    """Makes trainings lose exactly the messages that are written down, (rounds, replicas, guests) each."""

    def masks(self: CodedRounds, start: int, count: int) -> Masks:
        part = slice(start, start + count)
        decoding = np.stack(
            [
                np.stack([self._coefficients(tuple(np.flatnonzero(there).tolist())) for there in replicas])
                for replicas in heard[part]
            ]
        )
        learn = np.ones(heard[part].shape[:2], bool)
        return {"heard": heard[part], "told": told[part], "learn": learn, "decoding": decoding}

    monkeypatch.setattr(CodedRounds, "masks", masks)


# Stragglers.


@pytest.mark.parametrize(("table", "wishes"), WISHES)
def test_a_training_in_which_up_to_l_results_are_missing_is_the_full_one_to_the_last_bit(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, table: str, wishes: dict[str, Any]
) -> None:
    data, settings = request.getfixturevalue(table), replace(SETTINGS, **wishes)
    full = trained(data, settings)
    guests, most = full.agreement.guests, full.agreement.stragglers
    heard = np.ones((2 * full.rows.iterations, 1, guests), bool)
    for t in range(len(heard)):
        heard[t, 0, np.random.default_rng(t).permutation(guests)[:most]] = False
    written(monkeypatch, heard, np.ones_like(heard))
    missing = trained(data, settings)
    assert most >= 1 and missing.masked
    assert all(torch.equal(*pair) for pair in zip(learned(full), learned(missing), strict=True))
    assert torch.equal(torch.stack(list(full.history().labels)), torch.stack(list(missing.history().labels)))


@pytest.mark.parametrize("table", ["digits", "six_guests"])
def test_with_one_more_missing_it_stalls_there_and_learns_nothing_more(
    request: pytest.FixtureRequest, table: str
) -> None:
    data = request.getfixturevalue(table)
    most = FedVS(data, SETTINGS, (5,)).agreement.stragglers
    down = [Outage(f"guest-{number + 1}", 12, 14) for number in range(most + 1)]
    stack = trained(data, seeds=(5, 5, 5), faults=(recorded(*down), recorded(*down[:-1]), NO_FAULTS))
    assert stack.stalled == [12, None, None]
    assert np.isnan(stack.scores()[0]) and np.isfinite(stack.scores()[1:]).all()
    steps = stack.model.host.steps.tolist()
    assert steps == [12, 20, 20]


def test_connections_and_the_server_stall_it_too(digits: VerticalData) -> None:
    links = recorded(Outage("guest-1>host-1", 3, 4), Outage("guest-4", 3, 4))
    server = recorded(Outage("host-1", 7, 8))
    stack = trained(digits, seeds=(5, 5), faults=(links, server))
    assert stack.stalled == [3, 7]
    assert stack.finished and stack.done == 1  # it does not hang, nor go through rounds in vain
    assert np.isnan(stack.scores()).all()


def test_crashes_stall_it_sooner_or_later(digits: VerticalData) -> None:
    stack = trained(digits, replace(SETTINGS, epochs=20), (5,), Faults((Fault("guest", 0.3, 0.5),)))
    assert stack.stalled[0] is not None


def test_a_bound_of_fewer_stragglers_than_possible_is_kept(digits: VerticalData) -> None:
    down = recorded(Outage("guest-1", 4, 5))
    assert trained(digits, replace(SETTINGS, stragglers=0), faults=down).stalled == [4]
    assert trained(digits, replace(SETTINGS, stragglers=1), faults=down).stalled == [None]


def test_a_guest_that_gets_no_gradient_skips_its_step(
    monkeypatch: pytest.MonkeyPatch, six_guests: VerticalData
) -> None:
    heard = np.ones((2 * ROUNDS, 1, 6), bool)
    told = heard.copy()
    told[5:, 0, 2] = False
    written(monkeypatch, heard, told)
    simulation = trained(six_guests)
    for group in simulation.model.groups:
        for guest, steps in zip(group.members, group.learner.steps.tolist(), strict=True):
            assert steps == (5 if guest == 2 else 20)
    assert simulation.model.host.steps.tolist() == [20]


def test_with_a_guest_that_never_answers_digits_are_learned(digits: VerticalData) -> None:
    """The others hold its columns and its first weights; it never learns."""
    simulation = trained(digits, replace(SETTINGS, epochs=30), faults=recorded(Outage("guest-2", 0, None)))
    (group,) = simulation.model.groups
    assert group.learner.steps.tolist() == [300, 0, 300, 300]
    assert simulation.scores()[0] > 85


# Learning.


@pytest.mark.parametrize(("table", "wishes"), WISHES)
def test_digits_are_learned(request: pytest.FixtureRequest, table: str, wishes: dict[str, Any]) -> None:
    settings = replace(SETTINGS, epochs=20, dropout=0.1, **wishes)
    assert trained(request.getfixturevalue(table), settings, (0, 1)).scores().min() > 85


def test_a_regression_is_learned() -> None:
    rule = Adam(1e-3)
    settings = replace(SETTINGS, epochs=30, guest_rule=rule, host_rule=rule, dropout=0.2)
    simulation = trained(load("diabetes"), settings, (0,))
    assert simulation.agreement.stragglers == 0 and simulation.scores()[0] > 0.3


@pytest.mark.parametrize(("table", "wishes"), WISHES)
def test_test_rows_go_through_the_code_too(request: pytest.FixtureRequest, table: str, wishes: dict[str, Any]) -> None:
    data: VerticalData = request.getfixturevalue(table)
    data = replace(
        data, guests=tuple(replace(guest, test=guest.test[:31]) for guest in data.guests), y_test=data.y_test[:31]
    )
    simulation = trained(data, replace(SETTINGS, **wishes), (5, 6))
    agreement, total = simulation.agreement, torch.zeros(())
    for group in simulation.model.groups:
        net = agreement.network(group.net.in_width, group.net.out_width)
        scale = net.scale(agreement.data_bits, agreement.weight_bits)
        weights = (group.learner.parameters.double() * scale).round() / scale
        tables = [agreement.columns(torch.from_numpy(data.guests[guest].test)) for guest in group.members]
        x = torch.stack([simulation.coding.rounded(own, g) for g, own in zip(group.members, tables, strict=True)])
        outputs = net.forward(weights, x.double().expand(2, -1, -1, -1).flatten(0, 1))[-1]
        total = total + outputs.unflatten(0, (2, -1)).sum(1)
    assert torch.equal(simulation.outputs(), simulation.server.predict(total.float()))


def test_held_out_rows_stop_it_early(six_guests: VerticalData) -> None:
    settings = replace(SETTINGS, epochs=40, squares=0, segments=2, validation=0.2, patience=1)
    simulation = trained(six_guests, settings, (5, 6))
    assert simulation.done < 40 and len(simulation.history().held_out) == simulation.done
    assert simulation.scores().min() > 70


def test_a_replica_of_a_stack_is_that_seed_alone(six_guests: VerticalData) -> None:
    faults = (NO_FAULTS, recorded(Outage("guest-2", 3, 14)), recorded(Outage("host-1", 15, 16)))
    settings = replace(SETTINGS, guest_rule=Sgd(0.1, momentum=0.5), host_rule=Sgd(0.1, momentum=0.5), dropout=0.2)
    stack = trained(six_guests, settings, (5, 11, 5), faults)
    for number, (seed, fault) in enumerate(zip((5, 11, 5), faults, strict=True)):
        alone = trained(six_guests, settings, (seed,), fault)
        assert stack.stalled[number] == alone.stalled[0]
        for ours, theirs in zip(learned(stack), learned(alone), strict=True):
            one = ours.unflatten(0, (3, -1))[number]
            assert (one - theirs).norm() <= 1e-3 * theirs.norm()


@pytest.mark.parametrize("wishes", [{}, {"squares": 0, "segments": 2}])
def test_a_replica_with_rows_of_its_own_is_that_seed_alone(six_guests: VerticalData, wishes: dict[str, Any]) -> None:
    half = len(six_guests.y_train) // 2
    parts = []
    for rows in (slice(None, half), slice(half, 2 * half)):
        guests = tuple(replace(guest, train=guest.train[rows]) for guest in six_guests.guests)
        parts.append(replace(six_guests, guests=guests, y_train=six_guests.y_train[rows]))
    settings = replace(SETTINGS, **wishes)
    both = FedVS(parts, settings, (5, 6))
    both.run()
    for number, seed in enumerate((5, 6)):
        alone = trained(parts[number], settings, (seed,))
        for one, other in zip(learned(both), learned(alone), strict=True):
            each = len(other)
            torch.testing.assert_close(one[number * each : (number + 1) * each], other, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(both.outputs()[number], alone.outputs()[0], rtol=1e-3, atol=1e-3)


def test_replicas_may_have_rates_and_dropout_of_their_own(digits: VerticalData) -> None:
    each = [replace(SETTINGS, dropout=0.3), replace(SETTINGS, guest_rule=Adam(1e-3), host_rule=Adam(1e-3))]
    stack = trained(digits, each, (5, 6))
    alone = trained(digits, each[1], (6,))
    for ours, theirs in zip(learned(stack), learned(alone), strict=True):
        assert (ours.unflatten(0, (2, -1))[1] - theirs).norm() <= 1e-2 * theirs.norm()


def test_the_same_run_again_gives_the_same_to_the_last_bit(digits: VerticalData) -> None:
    assert all(torch.equal(*pair) for pair in zip(learned(trained(digits)), learned(trained(digits)), strict=True))


# Numbers that do not fit.


def test_weights_that_grow_too_long_for_the_field_are_shortened_and_counted(digits: VerticalData) -> None:
    wild = replace(SETTINGS, epochs=1, guest_rule=Sgd(1e5))
    simulation = FedVS(digits, wild, (5,))
    with pytest.warns(UserWarning, match=r"too long for the field and were shortened, \d+ times"):
        simulation.run()
    assert torch.isfinite(simulation.outputs()).all()


def test_more_segments_than_rows_are_refused(digits: VerticalData) -> None:
    few = replace(digits, y_train=digits.y_train[:2])
    few = replace(few, guests=tuple(replace(guest, train=guest.train[:2]) for guest in digits.guests) * 2)
    with pytest.raises(UserError, match="segments 3: at most 2, the training rows of digits, is right"):
        FedVS(few, replace(SETTINGS, segments=3), (5,))


# What is told of it.


def test_shares_results_and_gradients_are_counted(digits: VerticalData) -> None:
    simulation = trained(digits)
    flows = simulation.flows()
    size = simulation.model.groups[0].net.size  # 32 columns with their squares to 32 values, and a bias
    assert size == 32 * 32 + 32
    sent = 2 * ROUNDS * (3 * size + 64 * 32) * 4 / 1e6
    assert megabytes_sent_per_guest(flows) == pytest.approx(sent)
    assert {flow.when: flow.megabytes for flow in flows if flow.sender == "guest-1"} == {
        "in training": pytest.approx(sent),
        "once, before it": pytest.approx(3 * 600 * 32 * 4 / 1e6),
    }
    assert sum(flow.messages for flow in flows if flow.leg == "back") == 4 * 2 * ROUNDS


def test_trained_parties_are_saved(digits: VerticalData, tmp_path: Path) -> None:
    trained(digits).save(tmp_path, {})
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    names = ("guest-1", "guest-2", "guest-3", "guest-4", "host-1")
    assert set(manifest["files"]) == {f"{name}.safetensors" for name in names}
    assert FedVSSettings.from_dict(manifest["settings"]).w_g == 4 * 32


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize(("table", "wishes"), WISHES)
def test_on_a_gpu_it_learns_what_it_learns_on_the_cpu(
    request: pytest.FixtureRequest, table: str, wishes: dict[str, Any]
) -> None:
    data, settings = request.getfixturevalue(table), replace(SETTINGS, epochs=10, **wishes)
    faults = recorded(Outage("guest-2", 3, 14))
    there = FedVS(data, settings, (5, 6), faults=(faults, NO_FAULTS), device="cuda")
    there.run()
    here = trained(data, settings, (5, 6), (faults, NO_FAULTS))
    assert np.abs(there.scores() - here.scores()).max() < 5
    rows = torch.arange(7).expand(2, -1)
    sums = []
    for simulation in (there, here):
        for ours, theirs in zip(simulation.model.learners, here.model.learners, strict=True):
            ours.parameters.copy_(theirs.parameters)
        clients = simulation.clients
        results = clients.answer(clients.share_weights(0), clients.held(rows.to(simulation.device)))
        sums.append(simulation.server.decode(results, simulation._decoding).cpu())
    assert torch.equal(*sums)


# What an audit looks at.


def test_sums_of_any_tables_are_those_that_the_server_decodes(digits: VerticalData) -> None:
    simulation = trained(digits)
    tables = [torch.from_numpy(guest.test) for guest in digits.guests]
    torch.testing.assert_close(simulation.predict(simulation.sums(tables)), simulation.outputs())
    own = simulation.model.encode(simulation.rounded(tables))
    torch.testing.assert_close(
        simulation.sums(tables), sum(own[1:], own[0]), rtol=0.0, atol=0.02
    )  # weights are rounded
    rows = torch.arange(20)
    trained_on = [torch.from_numpy(guest.train[:20]) for guest in digits.guests]
    torch.testing.assert_close(simulation.read(rows, 0), simulation.sums(trained_on))


def test_defended_gradients_and_a_guest_that_learns_faster_change_what_is_learned(digits: VerticalData) -> None:
    plain = trained(digits)
    for change in ({"gradient_noise": 1.0}, {"gradient_defence": "sign"}):
        (encoders, _), (usual, _) = (learned(one) for one in (trained(digits, replace(SETTINGS, **change)), plain))
        assert not torch.equal(encoders, usual)
    one_round = replace(SETTINGS, epochs=1, batch=600, guest_rule=Sgd(1e-2), inflated=1, inflation=3.0)
    start = FedVS(digits, one_round, (5,)).model.groups[0].learner.parameters.clone()
    faster = trained(digits, one_round).model.groups[0].learner.parameters - start
    usual = trained(digits, replace(one_round, inflated=None)).model.groups[0].learner.parameters - start
    torch.testing.assert_close(faster, usual * torch.tensor([1.0, 3.0, 1.0, 1.0])[:, None], rtol=1e-3, atol=1e-6)
