"""FedOnce: what the one sending loses, and what it costs to insist."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from split_networks import recorded
from torch import Tensor

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.faults.chains import Chains
from dvfl.parties.faults.fault_set import NO_FAULTS, Fault, Faults, Kind
from dvfl.parties.faults.outages import Outage, Outages
from dvfl.parties.guest import Guest
from dvfl.settings.training import Settings
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.decoupled.owner_phase import OwnerPhase
from dvfl.strategies.fedonce import FedOnce

SEEDS, GUESTS, BATCHES = (5, 11), 4, 10  # 600 rows in batches of 64
SENT_FROM = 2 * BATCHES  # the round of the first message: the clock goes on where two guest epochs ended
NAMES = [f"guest-{number + 1}" for number in range(GUESTS)]
LINKS = [f"{name}>host-1" for name in NAMES]
SETTINGS = Settings(hosts=0, guest_epochs=2, owner_epochs=3)
LOSSY = Faults((Fault("connection", 0.3, 0.5), Fault("host", 0.2, 0.5)))
Bools = NDArray[np.bool_]


def made(
    data: VerticalData, *, insists: bool, settings: Settings = SETTINGS, seeds: Sequence[int] = SEEDS, **options: Any
) -> FedOnce:
    return FedOnce(data, settings, seeds, insists=insists, **options)


def trained(data: VerticalData, **options: Any) -> FedOnce:
    simulation = made(data, **options)
    simulation.run()
    return simulation


def guests(simulation: Dvfl) -> list[Tensor]:
    return [group.guest.learner.parameters for group in simulation.stack.groups if isinstance(group.guest, Guest)]


def learned(simulation: Dvfl) -> list[Tensor]:
    return [learner.parameters for learner in simulation.stack.learners]


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(ours, theirs) for ours, theirs in zip(one, other, strict=True))


def lost(faults: Faults, seed: int) -> Bools:
    """Which of the messages of one replica, (messages, guests), are lost when each is sent once."""
    links, host = Chains("connection", [faults], [seed], LINKS), Chains("host", [faults], [seed], ["host-1"])
    rounds = range(SENT_FROM, SENT_FROM + BATCHES)
    return np.stack([~(links.request(t)[0] & host.request(t)[0]) for t in rounds])


def cells(gone: Bools, latents: Sequence[int]) -> Tensor:
    """Where what was lost is missing from a table (rows, columns of all guests)."""
    missing = torch.zeros(600, sum(latents), dtype=torch.bool)
    for message, guest in np.argwhere(gone):
        start = sum(latents[:guest])
        missing[message * 64 : (message + 1) * 64, start : start + latents[guest]] = True
    return missing


# Without faults.


def test_without_faults_nothing_depends_on_whether_it_insists(digits: VerticalData) -> None:
    insisting, once = (trained(digits, insists=insists) for insists in (True, False))
    assert same(learned(insisting), learned(once))
    assert insisting.repeated is not None and insisting.repeated.tolist() == [0, 0]
    assert once.repeated is None


def test_without_faults_it_is_dvfl_without_hosts(unequal_digits: VerticalData) -> None:
    dvfl = Dvfl(unequal_digits, SETTINGS, SEEDS)
    dvfl.run()
    simulation = trained(unequal_digits, insists=True)
    assert same(learned(simulation), learned(dvfl))
    assert (simulation.host_count, simulation.host_names) == (1, ["host-1"])


def test_settings_for_hosts_make_no_difference(digits: VerticalData) -> None:
    simulation = trained(digits, insists=True, settings=replace(SETTINGS, hosts=3, host_epochs=9))
    assert same(learned(simulation), learned(trained(digits, insists=True)))


# What is lost.


@pytest.mark.parametrize("table", ["digits", "unequal_digits"])
def test_what_was_lost_is_zero_in_exactly_its_rows_and_columns(request: pytest.FixtureRequest, table: str) -> None:
    data = request.getfixturevalue(table)
    simulation = trained(data, insists=False, faults=LOSSY)
    plain = Dvfl(data, SETTINGS, SEEDS)
    while plain.phase != "owner":
        plain.advance()
    joint = plain.collect()
    for replica, seed in enumerate(SEEDS):
        gone = lost(LOSSY, seed)
        assert 0.1 < gone.mean() < 0.9
        joint[replica].masked_fill_(cells(gone, plain.stack.latents), 0.0)
    owner = OwnerPhase(plain.stack, joint, data.y_train, plain.variants)
    while not owner.finished:
        owner.advance()
    owner.finish()
    assert same(learned(simulation), learned(plain))


def test_what_was_lost_has_no_part_in_the_standardisation_and_is_a_dimensions_mean_after_it(
    unequal_digits: VerticalData,
) -> None:
    settings = replace(SETTINGS, standardise=True, validation=0.0)
    simulation = trained(unequal_digits, insists=False, settings=settings, faults=LOSSY)
    plain = Dvfl(unequal_digits, replace(settings, standardise=False), SEEDS)
    while plain.phase != "owner":
        plain.advance()
    joint = plain.collect()
    for replica, seed in enumerate(SEEDS):
        missing = cells(lost(LOSSY, seed), plain.stack.latents)
        known = joint[replica].masked_fill(missing, torch.nan).double().numpy()
        centre, spread = np.nanmean(known, 0), np.nanstd(known, 0)
        spread[spread < 1e-6] = 1.0
        np.testing.assert_allclose(simulation.stack.centre[replica, 0], centre, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(simulation.stack.spread[replica, 0], spread, rtol=1e-4, atol=1e-5)
        joint[replica] = torch.from_numpy(np.nan_to_num((known - centre) / spread))
    owner = OwnerPhase(plain.stack, joint, unequal_digits.y_train, plain.variants)
    while not owner.finished:
        owner.advance()
    ours, theirs = (one.stack.owner.learner.parameters for one in (simulation, plain))
    assert (ours - theirs).norm() <= 1e-4 * theirs.norm()


def test_a_guest_of_which_nothing_came_is_zeros_also_where_encodings_are_standardised(digits: VerticalData) -> None:
    faults = recorded(Outage("guest-2>host-1", SENT_FROM, None))
    simulation = trained(digits, insists=False, settings=replace(SETTINGS, standardise=True), faults=faults)
    assert not simulation.stack.centre[..., 12:24].any()
    assert (simulation.stack.spread[..., 12:24] == 1).all()
    assert np.isfinite(simulation.scores()).all()


def test_recorded_outages_act_in_the_rounds_after_the_guests(digits: VerticalData) -> None:
    faults = recorded(
        Outage("guest-1>host-1", 0, SENT_FROM),  # over before anything is sent
        Outage("guest-2>host-1", SENT_FROM + 3, SENT_FROM + 5),
        Outage("host-1", SENT_FROM + 9, None),
    )
    joint = made(digits, insists=False, faults=faults).collect()
    gone = np.zeros((BATCHES, GUESTS), bool)
    gone[3:5, 1] = gone[9] = True
    for encodings in joint:
        assert torch.equal(encodings.isnan(), cells(gone, (12,) * GUESTS))


def test_guest_faults_act_only_while_guests_train(digits: VerticalData) -> None:
    faults = Faults((Fault("guest", 0.5, 0.1),), Outages("record", (Outage("guest-1", SENT_FROM, None),)))
    simulation, calm = made(digits, insists=False, faults=faults), made(digits, insists=False)
    while simulation.phase != "owner":
        simulation.advance()
        calm.advance()
    assert not same(guests(simulation), guests(calm))
    assert simulation.collect().isfinite().all()


def test_faults_of_connections_and_the_host_leave_the_guests_training_alone(digits: VerticalData) -> None:
    assert same(guests(trained(digits, insists=False, faults=LOSSY)), guests(trained(digits, insists=False)))


# Insisting.


def insisted(faults: Faults, seed: int) -> int:
    """How many messages of one replica must be sent again until all were heard."""
    links, host = Chains("connection", [faults], [seed], LINKS), Chains("host", [faults], [seed], ["host-1"])
    t, again = SENT_FROM, 0
    for _ in range(BATCHES):
        missing = np.ones((1, GUESTS), bool)
        while missing.any():
            missing &= ~(links.request(t, missing) & host.request(t))
            again, t = again + int(missing.sum()), t + 1
    return again


def test_insisting_gets_everything_through_and_counts_what_was_sent_again(digits: VerticalData) -> None:
    simulation = trained(digits, insists=True, faults=LOSSY)
    assert same(learned(simulation), learned(trained(digits, insists=True)))
    assert simulation.repeated is not None
    assert simulation.repeated.tolist() == [insisted(LOSSY, seed) for seed in SEEDS]
    assert simulation.repeated.min() > 0


def test_insisting_outlasts_a_recorded_outage(digits: VerticalData) -> None:
    simulation = trained(digits, insists=True, faults=recorded(Outage("guest-2>host-1", SENT_FROM + 3, SENT_FROM + 8)))
    assert simulation.repeated is not None and simulation.repeated.tolist() == [5, 5]


@pytest.mark.parametrize("kind", ["connection", "host"])
def test_insisting_is_in_vain_where_nobody_ever_rejoins(digits: VerticalData, kind: Kind) -> None:
    with pytest.raises(UserError, match=f"cannot progress: with seed 5 every {kind} is dead for good"):
        trained(digits, insists=True, faults=Faults((Fault(kind, 1, 0),)))


@pytest.mark.parametrize(
    "faults",
    [Faults((Fault("connection", 0.1, 0),)), recorded(Outage("guest-2>host-1", SENT_FROM, None))],
    ids=["crashed", "recorded"],
)
def test_insisting_is_in_vain_where_a_single_connection_is_gone_for_good(
    digits: VerticalData, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, requests = Chains.request, 0

    def counted(self: Chains, *arguments: Any) -> Bools:
        nonlocal requests
        requests += 1
        assert requests < 5000, "it asks forever"
        return request(self, *arguments)

    monkeypatch.setattr(Chains, "request", counted)
    with pytest.raises(UserError, match="cannot progress"):
        trained(digits, insists=True, faults=faults)


# Stacks, and what is refused.


@pytest.mark.parametrize("insists", [True, False])
def test_a_replica_of_a_stack_with_mixed_faults_is_that_seed_and_those_faults_alone(
    digits: VerticalData, insists: bool
) -> None:
    outages = recorded(Outage("guest-2>host-1", SENT_FROM + 3, SENT_FROM + 8), Outage("guest-1", 3, 9))
    seeds = (5, 11, 5)
    faults = (NO_FAULTS, replace(LOSSY, crashes=(*LOSSY.crashes, Fault("guest", 0.2, 0.3))), outages)
    if insists:
        faults = (*faults[:2], NO_FAULTS)  # beside one that must insist, see the next test
    stack = trained(digits, insists=insists, seeds=seeds, faults=faults)
    for number, (seed, fault) in enumerate(zip(seeds, faults, strict=True)):
        alone = trained(digits, insists=insists, seeds=(seed,), faults=fault)
        for ours, theirs in zip(learned(stack), learned(alone), strict=True):
            one = ours.unflatten(0, (3, -1))[number]
            assert (one - theirs).norm() <= 1e-4 * theirs.norm()
        assert stack.scores()[number] == alone.scores()[0]
        if stack.repeated is not None and alone.repeated is not None:
            assert stack.repeated[number] == alone.repeated[0]


def test_a_replicas_clock_does_not_run_on_while_another_insists(digits: VerticalData) -> None:
    outages = recorded(Outage("guest-2>host-1", SENT_FROM + 3, SENT_FROM + 8))
    stack = trained(digits, insists=True, seeds=(5, 11), faults=(outages, LOSSY))
    assert stack.repeated is not None
    assert stack.repeated.tolist() == [5, insisted(LOSSY, 11)]


def test_guests_send_their_encodings_once_and_nobody_else_sends_anything(digits: VerticalData) -> None:
    flows = trained(digits, insists=True).flows()
    assert [(flow.sender, flow.when, flow.leg) for flow in flows] == [(n, "once, after it", "guests") for n in NAMES]
    assert all(flow.megabytes == pytest.approx(600 * 12 * 4 / 1e6) for flow in flows)


@pytest.mark.parametrize("text", ["delay:2", "reorder:2", "duplicate:2", "corrupt:sign:owner:guest-1"])
def test_late_and_wrong_messages_are_refused(digits: VerticalData, text: str) -> None:
    faults = Faults.parse(["host:0.1:0.1", text], lambda path: Outages(path, ()))
    with pytest.raises(UserError, match=f"--faults {text}: only dvfl defines what late or wrong messages do"):
        made(digits, insists=True, faults=faults)
