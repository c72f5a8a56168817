"""What the tests of split networks share: lost messages that are written down, and all that a network has learned."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from dvfl.data.split.vertical import VerticalData
from dvfl.parties.faults.fault_set import Fault, Faults
from dvfl.parties.faults.outages import Outage, Outages
from dvfl.parties.numerics.learner import Adam, Sgd
from dvfl.settings.training import SplitSettings
from dvfl.strategies.split.split_training import EndToEnd, Masks
from dvfl.strategies.split.splitnn import Missing, SplitNN

SEED, GUESTS, ROUNDS = 5, 4, 10  # of an epoch: 600 rows in batches of 64
NAMES = [f"guest-{number + 1}" for number in range(GUESTS)]
SETTINGS = SplitSettings(
    epochs=3,
    guest_rule=Sgd(1.0, momentum=0.5, weight_decay=1e-3),
    host_rule=Sgd(0.5, momentum=0.5),
    validation=0.0,
)
# Stops early: seed 5 after 3 epochs of 8 rounds, seed 6 much later.
FICKLE = SplitSettings(epochs=30, guest_rule=Adam(1e-2), host_rule=Adam(1e-2), validation=0.2, patience=0, retries=200)
CRASHES = Faults((Fault("connection", 0.3, 0.5), Fault("guest", 0.1, 0.5), Fault("host", 0.2, 0.5)))


class Script:
    """Mixed into an algorithm: its lost messages are those of `written`."""

    written: Masks

    def masks(self, start: int, count: int) -> Masks:
        return {name: mask[start : start + count] for name, mask in self.written.items()}


def recorded(*rows: Outage) -> Faults:
    return Faults(outages=Outages("record", rows))


def learned(simulation: EndToEnd) -> list[Tensor]:
    """Every learner's parameters, velocity and steps, (replicas, ..) each."""
    replicas = len(simulation.seeds)
    kept = [tensor for learner in simulation.model.learners for tensor in learner.state().values()]
    return [tensor.clone().unflatten(0, (replicas, -1)) for tensor in kept]


def made(
    data: VerticalData, missing: Missing, settings: Any = SETTINGS, seeds: Sequence[int] = (SEED,), **options: Any
) -> EndToEnd:
    return EndToEnd(data, settings, seeds, algorithm=SplitNN(missing), **options)


def trained(*arguments: Any, **options: Any) -> EndToEnd:
    simulation = made(*arguments, **options)
    simulation.run()
    return simulation
