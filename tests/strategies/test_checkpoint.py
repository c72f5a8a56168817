"""A simulation that was interrupted goes on to the same end."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dvfl.data.split.vertical import VerticalData
from dvfl.parties.faults.corruption import Corruption
from dvfl.parties.faults.fault_set import NO_FAULTS, Fault, Faults
from dvfl.parties.faults.lateness import Lateness
from dvfl.parties.faults.outages import Outage, Outages
from dvfl.parties.numerics.learner import Adam, Sgd
from dvfl.settings.training import AnySettings, FedVSSettings, Settings, SplitSettings
from dvfl.simulation.checkpoint import restore, save
from dvfl.simulation.simulation import History, Simulation
from dvfl.strategies import STRATEGIES

SEEDS = (1, 2)
SETTINGS = Settings(
    hosts=2, batch=64, guest_epochs=3, host_epochs=5, owner_epochs=3, guest_dropout=0.2, host_dropout=0.2
)
EPOCHS = 3 + 2 + 3
SPLIT = SplitSettings(
    epochs=5,
    guest_rule=Sgd(0.5, momentum=0.5),
    host_rule=Adam(1e-2),
    schedule="cosine",
    dropout=0.2,
    patience=1,
    retries=1,
)
CODED = FedVSSettings(epochs=5, guest_rule=Adam(1e-2), host_rule=Adam(1e-2), schedule="cosine", dropout=0.2, patience=1)
CRASHES = (Fault("connection", 0.3, 0.5), Fault("guest", 0.3, 0.3), Fault("host", 0.3, 0.3))
RECORD = Outages("record", (Outage("guest-2", 5, 12), Outage("guest-3>host-1", 17, 23), Outage("host-1", 33, 36)))
FAULTS = {
    "calm": NO_FAULTS,
    "faulty": Faults(CRASHES),
    "late": Faults(
        (CRASHES[0],), RECORD, Lateness(delay=7, reorder=5, duplicate=3), Corruption("noise", "hosts", "guest-1")
    ),
    "wrong": Faults(corruption=Corruption("permute", "owner", "guest-1")),
}


def check_resumed(name: str, data: VerticalData, settings: AnySettings, faults: Any, epochs: int, path: Path) -> None:
    """Saved after some epochs and restored into a fresh one, a simulation ends like one that was never interrupted."""
    whole, first, second = (STRATEGIES[name](data, settings, SEEDS, faults=faults) for _ in range(3))
    for _ in range(epochs):
        if not first.finished:  # stopped early
            first.advance()
    save(first, path)
    restore(second, path)
    assert (second.phase, second.done, second.finished) == (first.phase, first.done, first.finished)
    assert (second.stalled, second.epochs_left) == (first.stalled, first.epochs_left)
    for simulation in (whole, first, second):
        simulation.run()
    check_same(whole, first)
    check_same(whole, second)


def check_same(one: Simulation, other: Simulation) -> None:
    """Equal to the last bit."""
    np.testing.assert_array_equal(one.scores(), other.scores())
    assert torch.equal(one.outputs(), other.outputs())
    assert (one.stalled, one.done) == (other.stalled, other.done)
    np.testing.assert_array_equal(np.array(one.repeated), np.array(other.repeated))
    for role in History.__dataclass_fields__:
        ours, theirs = (getattr(simulation.history(), role) for simulation in (one, other))
        assert len(ours) == len(theirs) and all(torch.equal(*pair) for pair in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("epochs", range(EPOCHS + 1))
def test_a_restored_simulation_ends_like_one_that_was_never_interrupted(
    digits: VerticalData, tmp_path: Path, epochs: int, kind: str
) -> None:
    check_resumed("dvfl", digits, SETTINGS, FAULTS[kind], epochs, tmp_path / "checkpoint.safetensors")


@pytest.mark.parametrize("kind", ["calm", "faulty", "late"])
@pytest.mark.parametrize("epochs", [1, 2, 3, 4, 6])
def test_restored_row_registers_end_like_those_that_were_never_interrupted(
    digits: VerticalData, tmp_path: Path, epochs: int, kind: str
) -> None:
    settings = replace(SETTINGS, registers="row")
    check_resumed("dvfl", digits, settings, FAULTS[kind], epochs, tmp_path / "checkpoint.safetensors")


@pytest.mark.parametrize("adversary", [0.0, 0.3])
@pytest.mark.parametrize("epochs", [2, 4])
def test_restored_parties_that_learn_by_simclr_end_like_those_that_were_never_interrupted(
    digits: VerticalData, tmp_path: Path, epochs: int, adversary: float
) -> None:
    settings = replace(SETTINGS, guest_objective="simclr", host_objective="simclr", adversary=adversary)
    check_resumed("dvfl", digits, settings, FAULTS["faulty"], epochs, tmp_path / "checkpoint.safetensors")


@pytest.mark.parametrize(("epochs", "validation"), [(1, 0.2), (3, 0.2), (2, 0.0), (5, 0.0)])
@pytest.mark.parametrize("name", [name for name in STRATEGIES if STRATEGIES[name].settings is SplitSettings])
def test_a_restored_split_network_ends_like_one_that_was_never_interrupted(
    digits: VerticalData, tmp_path: Path, name: str, epochs: int, validation: float
) -> None:
    faults = (replace(FAULTS["faulty"], outages=RECORD), NO_FAULTS)
    settings = replace(SPLIT, validation=validation)
    check_resumed(name, digits, settings, faults, epochs, tmp_path / "checkpoint.safetensors")


@pytest.mark.parametrize(("epochs", "validation"), [(1, 0.2), (3, 0.2), (2, 0.0), (5, 0.0)])
def test_restored_fedvs_ends_like_one_that_was_never_interrupted(
    digits: VerticalData, tmp_path: Path, epochs: int, validation: float
) -> None:
    faults = (Faults(outages=RECORD), NO_FAULTS)  # the host is down in round 33
    settings = replace(CODED, validation=validation)
    check_resumed("fedvs", digits, settings, faults, epochs, tmp_path / "checkpoint.safetensors")


@pytest.mark.parametrize(("epochs", "standardise"), [(1, False), (3, True), (4, False), (5, True)])
@pytest.mark.parametrize("name", ["fedonce", "fedonce-zeros"])
def test_restored_guests_that_send_once_end_like_those_that_were_never_interrupted(
    digits: VerticalData, tmp_path: Path, name: str, epochs: int, standardise: bool
) -> None:
    settings = replace(SETTINGS, hosts=0, standardise=standardise)
    faults = (FAULTS["faulty"], FAULTS["faulty"])
    check_resumed(name, digits, settings, faults, epochs, tmp_path / "checkpoint.safetensors")


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_seconds_spent_are_kept(digits: VerticalData, tmp_path: Path, name: str) -> None:
    settings = {Settings: SETTINGS, SplitSettings: SPLIT, FedVSSettings: CODED}[STRATEGIES[name].settings]
    first, second = (STRATEGIES[name](digits, settings, SEEDS) for _ in range(2))
    first.advance()
    save(first, tmp_path / "checkpoint.safetensors")
    restore(second, tmp_path / "checkpoint.safetensors")
    assert second.watch.totals() == first.watch.totals() != {}


def test_waiting_that_has_stalled_is_restored_as_it_was(digits: VerticalData, tmp_path: Path) -> None:
    faults = (Faults(outages=Outages("record", (Outage("guest-1", 12, 13),))), NO_FAULTS)
    settings = replace(SPLIT, validation=0.0)
    check_resumed("splitnn-wait", digits, settings, faults, 3, tmp_path / "checkpoint.safetensors")
    simulation = STRATEGIES["splitnn-wait"](digits, settings, SEEDS, faults=faults)
    restore(simulation, tmp_path / "checkpoint.safetensors")
    assert simulation.stalled == [12, None]
