"""The whole simulation: a stack is its replicas, and every kind of federation trains."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch
from replicas import FAULTS, LEARNED, QUICK, SEEDS, SOMETHING, check_replica_is_itself, learned, trained
from sklearn.decomposition import PCA
from torch import nn

from dvfl.data.split.vertical import GuestTable, VerticalData
from dvfl.errors import UserError
from dvfl.parties.faults.corruption import Corruption
from dvfl.parties.faults.fault_set import NO_FAULTS, Fault, Faults
from dvfl.parties.faults.outages import Outage, Outages
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.presets import preset

Registers = Literal["batch", "row"]
NEVER = 1e-30  # R_u of those that rejoin so rarely that no test lives to see it


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("paper", "none"),
        ("paper", "connection"),
        ("paper", "guest"),
        ("paper", "host"),
        ("tuned", "none"),
        ("tuned", "all"),
    ],
)
def test_a_replica_of_a_stack_is_that_seed_trained_alone(large_digits: VerticalData, name: str, kind: str) -> None:
    whole = preset(name, large_digits)
    chosen = replace(whole, hosts=2, guest_epochs=4, host_epochs=5, owner_epochs=4)
    assert chosen.guest_epochs * -(-large_digits.rows // chosen.batch) == 100  # rounds
    check_replica_is_itself(large_digits, chosen, FAULTS[kind], number=len(kind) % 2)


@pytest.mark.parametrize("kind", ["none", "all"])
def test_a_replica_with_party_wise_dropout_is_that_seed_trained_alone(digits: VerticalData, kind: str) -> None:
    check_replica_is_itself(digits, replace(QUICK, guest_dropout=0.3, host_dropout=0.3), FAULTS[kind], 1)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_replica_with_row_registers_is_that_seed_trained_alone(digits: VerticalData, kind: str) -> None:
    check_replica_is_itself(digits, replace(QUICK, registers="row", guest_dropout=0.3), FAULTS[kind], len(kind) % 2)


def test_a_replica_that_stops_early_is_that_seed_trained_alone(digits: VerticalData) -> None:
    settings = replace(QUICK, validation=0.2, patience=1, owner_epochs=40)
    check_replica_is_itself(digits, settings, NO_FAULTS, 0)
    check_replica_is_itself(digits, settings, NO_FAULTS, 1)


def test_the_same_seed_gives_the_same_training_twice(digits: VerticalData) -> None:
    first, second = (learned(trained(digits, QUICK, faults=FAULTS["all"])) for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_different_seeds_give_different_trainings(digits: VerticalData) -> None:
    for parameters in learned(trained(digits, QUICK)).values():
        assert not torch.equal(parameters[0], parameters[1])


@pytest.mark.parametrize("kind", FAULTS)
def test_digits_are_learned_under_every_kind_of_fault(digits: VerticalData, kind: str) -> None:
    assert trained(digits, QUICK, faults=FAULTS[kind]).scores().min() > SOMETHING


def test_without_hosts_the_owner_reads_the_guests(digits: VerticalData) -> None:
    simulation = trained(digits, replace(QUICK, hosts=0))
    assert simulation.stack.owner_widths == simulation.stack.latents
    assert simulation.hosts.epoch == 0
    assert simulation.scores().min() > LEARNED


def test_hosts_that_only_concatenate_have_nothing_to_train(digits: VerticalData) -> None:
    simulation = trained(digits, replace(QUICK, host_model="concatenate"))
    assert "hosts" not in learned(simulation)
    assert simulation.stack.owner_widths == (sum(simulation.stack.latents),) * 2
    assert simulation.scores().min() > LEARNED


@pytest.mark.parametrize("kind", ["none", "all"])
def test_guests_of_unequal_widths_train_together(unequal_digits: VerticalData, kind: str) -> None:
    simulation = trained(unequal_digits, QUICK, faults=FAULTS[kind])
    assert [group.members for group in simulation.stack.groups] == [(0, 2), (1,), (3,)]
    assert simulation.scores().min() > SOMETHING


def test_encodings_stand_in_the_guests_order_however_they_are_grouped(unequal_digits: VerticalData) -> None:
    stack = Dvfl(unequal_digits, QUICK, SEEDS).stack
    tables = [torch.from_numpy(guest.test) for guest in unequal_digits.guests]
    joint = stack.encode_guests(tables)
    start = 0
    for guest, width in enumerate(stack.latents):
        group = next(group for group in stack.groups if guest in group.members)
        own = group.encode([tables[i] for i in group.members], 2)[:, group.members.index(guest)]
        assert torch.equal(joint[..., start : start + width], own)
        start += width


def test_a_guest_may_be_a_module_of_the_users(digits: VerticalData) -> None:
    module = nn.Sequential(nn.Linear(16, 20), nn.Tanh(), nn.Linear(20, 7))
    simulation = trained(digits, QUICK, encoders=[None, None, module, None])
    assert simulation.stack.latents == (12, 12, 7, 12)
    moved = learned(simulation)["guests (2,)"]
    assert not torch.equal(
        moved, learned(Dvfl(digits, QUICK, SEEDS, encoders=[None, None, module, None]))["guests (2,)"]
    )
    assert simulation.scores().min() > LEARNED


def test_faults_reach_guests_of_every_sort(digits: VerticalData) -> None:
    encoders = [None, PCA(6, random_state=0), nn.Linear(16, 7), None]
    check_replica_is_itself(digits, QUICK, FAULTS["all"], 0, encoders=encoders)


@pytest.mark.parametrize("count", [3, 5])
def test_a_wrong_number_of_encoders_is_refused(digits: VerticalData, count: int) -> None:
    with pytest.raises(UserError, match=f"{count} encoders for 4 guests"):
        Dvfl(digits, QUICK, SEEDS, encoders=[None] * count)


def test_with_a_period_guests_push_in_every_kth_epoch(digits: VerticalData) -> None:
    settings = replace(QUICK, guest_epochs=7, period=3, host_epochs=4)
    simulation = Dvfl(digits, settings, SEEDS)
    iterations, heard = simulation.guests.iterations, []
    while not simulation.guests.finished:
        simulation.advance()
        heard.append(simulation.hosts.holding.written // iterations)
    assert heard == [0, 0, 1, 1, 1, 2, 2]
    simulation.run()
    assert simulation.hosts.epoch == 4
    assert simulation.scores().min() > LEARNED


def test_hosts_with_fewer_epochs_than_are_communicated_take_the_last(digits: VerticalData) -> None:
    simulation = Dvfl(digits, replace(QUICK, host_epochs=1), SEEDS)
    untrained = learned(simulation)["hosts"]
    moved = []
    while not simulation.guests.finished:
        simulation.advance()
        moved.append(not torch.equal(learned(simulation)["hosts"], untrained))
    assert moved == [False, False, False, True]
    assert simulation.hosts.epoch == 1
    assert simulation.phase == "owner"


def test_hosts_without_epochs_stay_as_they_were_drawn(digits: VerticalData) -> None:
    simulation = trained(digits, replace(QUICK, host_epochs=0))
    assert torch.equal(learned(simulation)["hosts"], learned(Dvfl(digits, QUICK, SEEDS))["hosts"])


def test_the_epochs_done_end_at_the_epochs_announced(digits: VerticalData) -> None:
    for settings in (QUICK, replace(QUICK, hosts=0), replace(QUICK, host_epochs=2), replace(QUICK, period=2)):
        simulation, calls = Dvfl(digits, settings, SEEDS), 0
        while not simulation.finished:
            simulation.advance()
            calls += 1
        assert simulation.done == simulation.epochs == calls


@pytest.mark.parametrize("kind", ["none", "all"])
def test_a_budget_that_holds_everything_changes_nothing(digits: VerticalData, kind: str) -> None:
    free = trained(digits, QUICK, faults=FAULTS[kind])
    bound = trained(digits, replace(QUICK, history_bytes=1 << 26), faults=FAULTS[kind])
    assert all(torch.equal(learned(free)[name], learned(bound)[name]) for name in learned(free))


@pytest.mark.parametrize("kind", ["none", "all"])
def test_without_replay_even_a_tiny_budget_changes_nothing(digits: VerticalData, kind: str) -> None:
    settings = replace(QUICK, host_epochs=4)
    free = trained(digits, settings, faults=FAULTS[kind])
    bound = trained(digits, replace(settings, history_bytes=32 * 48 * 2 * 3), faults=FAULTS[kind])
    assert bound.hosts.capacity == 3
    assert all(torch.equal(learned(free)[name], learned(bound)[name]) for name in learned(free))


@pytest.mark.parametrize("kind", FAULTS)
def test_a_tiny_budget_still_trains(digits: VerticalData, kind: str) -> None:
    simulation = trained(digits, replace(QUICK, history_bytes=32 * 48 * 2), faults=FAULTS[kind])
    assert simulation.hosts.capacity == 1
    assert simulation.scores().min() > SOMETHING


@pytest.mark.parametrize("registers", ["batch", "row"])
def test_dead_guests_and_deaf_hosts_do_not_move_and_training_goes_on(
    digits: VerticalData, registers: Registers
) -> None:
    simulation = trained(digits, replace(QUICK, registers=registers), faults=Faults((Fault("guest", 1, NEVER),)))
    untrained = learned(Dvfl(digits, QUICK, SEEDS))
    after = learned(simulation)
    assert torch.equal(after["guests (0, 1, 2, 3)"], untrained["guests (0, 1, 2, 3)"])
    assert torch.equal(after["hosts"], untrained["hosts"])
    assert not torch.equal(after["owner"], untrained["owner"])
    assert np.isfinite(simulation.scores()).all()


@pytest.mark.parametrize("registers", ["batch", "row"])
def test_hosts_that_are_never_up_do_not_move_and_training_goes_on(digits: VerticalData, registers: Registers) -> None:
    simulation = trained(digits, replace(QUICK, registers=registers), faults=Faults((Fault("host", 1, NEVER),)))
    assert torch.equal(learned(simulation)["hosts"], learned(Dvfl(digits, QUICK, SEEDS))["hosts"])
    assert np.isfinite(simulation.scores()).all()


@pytest.mark.parametrize("registers", ["batch", "row"])
def test_one_guest_dead_from_the_start_is_absent_and_the_others_train(
    digits: VerticalData, registers: Registers
) -> None:
    faults = Faults(outages=Outages("record", (Outage("guest-1", 0, None),)))
    simulation = Dvfl(digits, replace(QUICK, registers=registers), SEEDS, faults=faults)
    untrained = learned(simulation)
    simulation.run()
    after = learned(simulation)
    dead, *others = after["guests (0, 1, 2, 3)"].unflatten(1, (4, -1)).unbind(1)
    first, *_ = untrained["guests (0, 1, 2, 3)"].unflatten(1, (4, -1)).unbind(1)
    assert torch.equal(dead, first)
    assert all(not torch.equal(other, first) for other in others)
    absent = after["hosts"].unflatten(1, (2, -1))[..., : sum(simulation.stack.latents)]
    assert absent[..., :12].any()  # the dead guest's stand-in is learned
    assert not absent[..., 12:].any()  # nobody else's was ever needed
    assert np.isfinite(simulation.scores()).all()


@pytest.mark.parametrize("kind", FAULTS)
def test_row_registers_train_under_every_kind_of_fault(unequal_digits: VerticalData, kind: str) -> None:
    simulation = trained(unequal_digits, replace(QUICK, registers="row"), faults=FAULTS[kind])
    assert simulation.scores().min() > SOMETHING
    assert simulation.hosts.epoch == QUICK.host_epochs


@pytest.mark.parametrize("kind", ["none", "all"])
def test_row_registers_do_not_depend_on_how_many_rounds_are_kept(digits: VerticalData, kind: str) -> None:
    settings = replace(QUICK, registers="row")
    free = trained(digits, settings, faults=FAULTS[kind])
    bound = trained(digits, replace(settings, history_bytes=32 * 48 * 2 * 3), faults=FAULTS[kind])
    assert bound.hosts.capacity == 3
    assert all(torch.equal(learned(free)[name], learned(bound)[name]) for name in learned(free))


def test_a_guest_that_falls_silent_is_still_heard_through_its_rows(digits: VerticalData) -> None:
    second_epoch = -(-digits.rows // QUICK.batch)
    faults = Faults(outages=Outages("record", (Outage("guest-1", second_epoch, None),)))
    simulation = trained(digits, replace(QUICK, registers="row"), faults=faults)
    absent = learned(simulation)["hosts"].unflatten(1, (2, -1))[..., : sum(simulation.stack.latents)]
    assert not absent.any()  # nobody's stand-in was ever needed
    assert simulation.scores().min() > SOMETHING


def test_row_registers_take_wrong_encodings_as_they_come(digits: VerticalData) -> None:
    wrong = Faults(corruption=Corruption("scale", "hosts", "guest-2"))
    settings = replace(QUICK, registers="row")
    faulty, honest = (learned(trained(digits, settings, faults=faults)) for faults in (wrong, NO_FAULTS))
    assert torch.equal(faulty["guests (0, 1, 2, 3)"], honest["guests (0, 1, 2, 3)"])
    assert not torch.equal(faulty["hosts"], honest["hosts"])


def test_a_regression_is_learned() -> None:
    rng = np.random.default_rng(0)
    factors = [rng.normal(size=(900, 2)) for _ in range(3)]
    tables = [(factor @ rng.normal(size=(2, 5))).astype(np.float32) for factor in factors]
    target = (1000 + 50 * (factors[0][:, 0] - factors[1][:, 1] + factors[2][:, 0])).astype(np.float32)
    guests = tuple(GuestTable(f"guest-{i}", table[:700], table[700:]) for i, table in enumerate(tables))
    data = VerticalData("sums", guests, target[:700], target[700:], None)
    simulation = trained(data, replace(QUICK, guest_epochs=20, host_epochs=20, owner_epochs=40))
    assert simulation.scores().min() > 0.5
    assert simulation.outputs().shape == (2, 200, 1)
    assert simulation.outputs().mean() == pytest.approx(1000, rel=0.05)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 601}, "batch 601 is larger than the 600 training rows"),
        ({"batch": 0}, "batch 0: at least 1"),
        ({"guest_epochs": 0}, "guest_epochs 0: at least 1"),
        ({"owner_epochs": 0}, "owner_epochs 0: at least 1"),
        ({"hosts": -1}, "hosts -1: 0 or more"),
        ({"period": 5}, "nothing would ever be pushed"),
        ({"validation": 1.0}, "validation 1.0: from 0 to below 1"),
        ({"owner_dropout": -0.1}, "owner_dropout -0.1: from 0 to below 1"),
        ({"history_bytes": 10}, "one round of encodings alone takes"),
    ],
)
def test_settings_that_cannot_be_trained_are_refused(
    digits: VerticalData, change: dict[str, float], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        Dvfl(digits, replace(QUICK, **change), SEEDS)


def test_labels_of_one_class_are_refused(digits: VerticalData) -> None:
    with pytest.raises(UserError, match="one class only"):
        Dvfl(replace(digits, y_train=np.zeros_like(digits.y_train)), QUICK, SEEDS)
