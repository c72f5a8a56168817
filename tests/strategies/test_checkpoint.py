"""A simulation that was interrupted goes on to the same end."""

from pathlib import Path

import numpy as np
import pytest
import torch

from dvfl.data.vertical import VerticalData
from dvfl.parties.faults import Fault
from dvfl.strategies.checkpoint import restore, save
from dvfl.strategies.dvfl import Dvfl
from dvfl.strategies.settings import Settings

SETTINGS = Settings(
    hosts=2, batch=64, guest_epochs=3, host_epochs=5, owner_epochs=3, guest_dropout=0.2, host_dropout=0.2
)
FAULTS = (Fault("connection", 0.3, 0.5), Fault("guest", 0.3, 0.3), Fault("host", 0.3, 0.3))
EPOCHS = 3 + 2 + 3


def fresh(data: VerticalData, faults: tuple[Fault, ...]) -> Dvfl:
    return Dvfl(data, SETTINGS, (1, 2), faults=faults)


@pytest.mark.parametrize("faults", [(), FAULTS], ids=["calm", "faulty"])
@pytest.mark.parametrize("epochs", range(EPOCHS + 1))
def test_a_restored_simulation_ends_like_one_that_was_never_interrupted(
    digits: VerticalData, tmp_path: Path, epochs: int, faults: tuple[Fault, ...]
) -> None:
    first = fresh(digits, faults)
    for _ in range(epochs):
        first.advance()
    save(first, tmp_path / "checkpoint.safetensors")
    second = fresh(digits, faults)
    restore(second, tmp_path / "checkpoint.safetensors")
    assert (second.phase, second.done) == (first.phase, first.done)
    first.run()
    second.run()
    np.testing.assert_array_equal(first.scores(), second.scores())
    assert torch.equal(first.outputs(), second.outputs())
    for party in ("guests", "hosts", "owner"):
        ours, theirs = (getattr(simulation, party).losses for simulation in (first, second))
        assert torch.equal(torch.stack(ours), torch.stack(theirs))
