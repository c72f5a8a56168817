"""A federation to attack: trained from data and settings, its defences among them, and recorded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.audit.recordings.measured import Control
from dvfl.audit.recordings.recording import GuestRecording, Recording, Rows
from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.numerics.randomness import numpy_generator
from dvfl.release.release import Origin
from dvfl.settings.training import AnySettings
from dvfl.simulation.simulation import Simulation
from dvfl.strategies import STRATEGIES
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.fedvs.fedvs import FedVS
from dvfl.strategies.split.split_training import EndToEnd

POOL, VICTIMS, TESTS = 12_000, 2_000, 5_000  # rows that are recorded, at most
LEAST, LEAST_TESTS = 50, 10  # that every guest has, below which figures would say nothing


@dataclass(frozen=True)
class Case:
    """What is trained, and can be trained again with something changed."""

    strategy: str
    data: VerticalData
    settings: AnySettings
    seeds: tuple[int, ...]
    device: torch.device

    def changed(self, *, data: VerticalData | None = None, settings: AnySettings | None = None) -> "Case":
        """The same with other data or settings."""
        return replace(self, data=data or self.data, settings=settings or self.settings)

    def simulation(self) -> Simulation:
        """Untrained."""
        return STRATEGIES[self.strategy](self.data, self.settings, self.seeds, device=self.device)

    def trained(
        self,
        beside: Mapping[str, "Variation"] | None = None,
        after_epoch: Callable[[Simulation], None] | None = None,
    ) -> "Training":
        """Trained, with variations of it beside it; `after_epoch` looks at it meanwhile."""
        beside = beside or {}
        every = [self, *(self.changed(data=one.data, settings=one.settings) for one in beside.values())]
        simulation = STRATEGIES[self.strategy](
            [one.data for one in every for _ in self.seeds],
            [one.settings for one in every for _ in self.seeds],
            self.seeds * len(every),
            device=self.device,
        )
        while not simulation.finished:
            simulation.advance()
            if after_epoch is not None:
                after_epoch(simulation)
        return Training(simulation, len(self.seeds), tuple(beside))


@dataclass(frozen=True)
class Variation:
    """What an attacker makes of a case that it takes part in. It is trained in the same stack, which costs little."""

    data: VerticalData | None = None
    settings: AnySettings | None = None


@dataclass(frozen=True)
class Training:
    """A stack of a trained case and its variations, as many replicas each."""

    simulation: Simulation
    seeds: int
    beside: tuple[str, ...]

    @property
    def case(self) -> slice:
        """Replicas of the case itself."""
        return slice(0, self.seeds)

    def variation(self, name: str) -> slice:
        """Replicas of a variation."""
        first = (1 + self.beside.index(name)) * self.seeds
        return slice(first, first + self.seeds)


def check_recordable(simulation: Simulation) -> None:
    """Refuses what no audit could be made of, before it is trained."""
    if simulation.faults[0].texts:
        raise UserError("--record does not go with --faults: an audit needs a run without")
    rows_of(simulation.data)


def rows_of(data: VerticalData) -> tuple[Rows, NDArray[np.int64], NDArray[np.int64]]:
    """Which rows are recorded, the same for all seeds: how many for what; numbers of labelled entities, of test rows.

    Every guest has them, whatever else some of them have.
    """
    common, tests = np.flatnonzero(data.complete), np.flatnonzero(data.complete_tests)
    for found, least, kind in ((common, LEAST, "labelled training"), (tests, LEAST_TESTS, "test")):
        if len(found) < least:
            raise UserError(f"{data.name}: {len(found)} {kind} rows are at every guest; for an audit {least} are right")
    victims = min(VICTIMS, len(common) // 5)
    rows = Rows(min(POOL, len(common) - victims), victims, min(TESTS, len(tests)))
    draw = numpy_generator(0, "audit", data.name)
    return rows, draw.permutation(common)[: rows.trained], draw.permutation(tests)[: rows.tests]


def check_known(known: Sequence[int], rows: Rows) -> None:
    """Refuses attackers that were asked for and would know more rows than there are."""
    most = max(known, default=0)
    if most > rows.pool:
        raise UserError(f"--known {most}: at most {rows.pool:,}, the rows that an attacker can know here, is right")


@torch.no_grad()
def recording_of(
    simulation: Simulation,
    name: str,
    replicas: slice = slice(None),
    gradients: Sequence[Tensor] | None = None,
    earlier: Tensor | None = None,
) -> Recording:
    """What guests of some replicas send of some rows, and what the label holder says of them.

    `gradients`: what each guest was sent back, (moments, replicas, trained rows, latent). `earlier`: what all guests
    sent of trained rows before, or means of it, (some, replicas, trained rows, W_g). Both are of these replicas alone.
    """
    data, device = simulation.data, simulation.device
    rows, train, test = rows_of(data)

    def joined(trained_on: NDArray[np.generic], tested: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.concatenate([trained_on, tested])).to(device)

    tables = [joined(data.train_of(number, train), one.test[test]) for number, one in enumerate(data.guests)]
    y_train, y_test = class_numbers(data)
    y = joined(y_train[train], y_test[test])
    numbers = None if data.classes is not None else joined(data.y_train[train], data.y_test[test])
    sent, outputs = encodings(simulation, tables, (Origin("train", train), Origin("test", test)))
    z = [one[replicas] for one in sent]
    own = [None if one is None else one[replicas] for one in _own(simulation, tables)]
    back = [None] * len(tables) if gradients is None else gradients
    before = [None] * len(tables) if earlier is None else earlier_of_each(earlier, z)
    guests = zip(data.guests, tables, z, back, own, before, strict=True)
    recorded = tuple(GuestRecording(guest.name, *rest) for guest, *rest in guests)
    return Recording(name, simulation.seeds[replicas], rows, recorded, y, outputs[replicas], numbers)


def class_numbers(data: VerticalData) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """Of training and test rows. Labels that are numbers have two classes: above their median, or not."""
    if data.classes is not None:
        return data.y_train, data.y_test
    return (data.y_train > middle(data)).astype(np.int64), (data.y_test > middle(data)).astype(np.int64)


def middle(data: VerticalData) -> float:
    """The median of training labels that are numbers."""
    return float(np.median(data.y_train))


def _own(simulation: Simulation, tables: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """Encodings before they leave, where something is done to them or nobody sees them but in a sum."""
    if isinstance(simulation, FedVS):
        return simulation.model.encode(simulation.rounded(tables))
    if isinstance(simulation, EndToEnd) and simulation.model.summed:
        return simulation.model.encode(tables)
    if not isinstance(simulation, Dvfl) or not simulation.settings.alters:
        return [None] * len(tables)
    with simulation.stack.suited(len(tables[0])):
        bare: Sequence[Tensor] = simulation.stack.bare(tables).split(simulation.stack.latents, 2)
    return bare


def earlier_of_each(earlier: Tensor, z: Sequence[Tensor]) -> list[Tensor]:
    """Of what was sent of trained rows before, (some, replicas, trained rows, W_g), each guest's side by side:
    (replicas, rows, some x latent). Of test rows nothing was, so what was sent of them, `z`, stands there."""
    made = []
    for own, now in zip(earlier.split([one.shape[2] for one in z], 3), z, strict=True):
        trained = torch.cat(list(own), 2)
        made.append(torch.cat([trained, now[:, trained.shape[1] :].repeat(1, 1, len(own))], 1))
    return made


@torch.no_grad()
def encodings(
    simulation: Simulation, tables: list[Tensor], origins: Sequence[Origin] = (Origin("audit"),)
) -> tuple[list[Tensor], Tensor]:
    """What is seen of each guest's table (replicas, rows, latent), and the outputs for all of them.

    That is what the guest sends; of guests whose encodings reach the host as a sum, that sum.
    `origins` say which rows these are, one after the other: those that were trained on come with the same noise.
    """
    if isinstance(simulation, Dvfl):
        stack = simulation.stack
        counts = [len(tables[0]) if origin.rows is None else len(origin.rows) for origin in origins]
        pieces = zip(*(table.split(counts) for table in tables), strict=True)
        with stack.suited(len(tables[0])):
            sent = [stack.encode_guests(piece, origin) for piece, origin in zip(pieces, origins, strict=True)]
        joint = torch.cat(sent, 1)
        parts: list[Tensor] = list(joint.split(stack.latents, 2))
        return parts, stack.predict(stack.encode_hosts(joint))
    if isinstance(simulation, FedVS):
        total = simulation.sums(tables)
        return [total] * len(tables), simulation.predict(total)
    if isinstance(simulation, EndToEnd):
        model = simulation.model
        each, outputs = model.encode(tables), model.predict(tables)
        return [sum(each[1:], each[0])] * len(each) if model.summed else each, outputs
    raise UserError("only dvfl, fedonce and strategies that train end to end can be audited")


def controls(case: Case, recording: Recording) -> dict[Control, Recording]:
    """The same rows with raw columns, and with what encoders send that were never trained, in the encodings' place."""
    tables = [guest.x for guest in recording.guests]
    return {
        "raw features": recording.raw(),
        "random encoder": recording.with_encodings(encodings(case.simulation(), tables)[0]),
    }
