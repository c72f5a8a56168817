"""What split networks have in common: rounds forward and back, epochs, early stopping on held-out rows.

Whose messages arrive in which round depends on the faults alone, so it is worked out for a whole epoch ahead as masks;
the rounds themselves only compute. What a strategy does with the masks is its own file.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.data.split.vertical import VerticalData, intersection
from dvfl.errors import UserError
from dvfl.parties.early_stopping import EarlyStopping
from dvfl.parties.faults.fault_set import NO_FAULTS
from dvfl.parties.networks.modules import Net
from dvfl.parties.networks.sizes import encoder
from dvfl.parties.numerics.operations import Activation
from dvfl.parties.numerics.schedules import rates
from dvfl.parties.standardisation import standardised_targets
from dvfl.settings.training import SplitSettings, variants
from dvfl.simulation import storage
from dvfl.simulation.cpu_threads import keep_freed_memory, suited, workers
from dvfl.simulation.dropout import Dropout
from dvfl.simulation.labelled_copies import LabelledCopies
from dvfl.simulation.replica_data import GivenData, ReplicaData, with_common_labels
from dvfl.simulation.rounds import Feed, Round, Rounds, Stopwatch, cut, one_or_each
from dvfl.simulation.simulation import FLOAT32, Flow, History, State, kept_losses, read_losses, scored
from dvfl.simulation.stack import shape
from dvfl.simulation.stack_faults import PerReplica, per_replica, resolved
from dvfl.simulation.training_rows import GatheredTables, LabelledRows
from dvfl.strategies.split.gradient_defence import gradient_defence
from dvfl.strategies.split.split_checks import check_trainable
from dvfl.strategies.split.split_model import SplitModel, paces

Masks = dict[str, NDArray[Any]]  # (rounds, replicas, ..) each


class Algorithm(Protocol):
    """What one strategy does in a round."""

    summed: bool  # the host reads the sum of the guests' encodings
    apart: bool  # every guest is a group of its own

    @property
    def stalled(self) -> list[int | None]: ...
    @property
    def repeated(self) -> NDArray[np.int64] | None: ...
    def open(self, training: "EndToEnd") -> None:
        """Makes what it needs for a training."""

    def masks(self, start: int, count: int) -> Masks:
        """Whose messages arrive in rounds `start` .. `start + count - 1`; nothing where nobody can fail."""

    def check(self, going: NDArray[np.bool_]) -> None:
        """Stops a training in which a replica that is still `going` (replicas,) can learn nothing more."""

    def part(self, replicas: slice) -> Callable[[Round], Tensor]:
        """What some replicas do in a round; gives their losses."""

    def state(self) -> dict[str, Tensor]: ...
    def restore(self, state: dict[str, Tensor]) -> None: ...


class EndToEnd:
    """One stacked simulation. `advance` runs one epoch, until `finished`."""

    host_count = 1
    host_names = ("host-1",)
    settings: SplitSettings
    segments = 1  # of rows that go together

    def __init__(
        self,
        data: GivenData,
        settings: SplitSettings | Sequence[SplitSettings],  # one each may differ in rates and dropout
        seeds: Sequence[int],
        *,
        algorithm: Algorithm,
        faults: PerReplica = NO_FAULTS,
        device: torch.device | str = "cpu",
    ) -> None:
        self._variants = variants(settings, len(seeds), _without_rates)
        settings = self._variants[0]
        self.device, self.algorithm = torch.device(device), algorithm
        self._replica_data = ReplicaData(_aligned(data), len(seeds), self.device)
        self.data = data = self._replica_data.first
        for one in self._replica_data.distinct():
            for variant in dict.fromkeys(self._variants):
                check_trainable(one, variant)
        if settings.guest_dropout and algorithm.summed:
            raise UserError(
                f"guest_dropout {settings.guest_dropout}: this strategy's host reads sums alone; 0 is right"
            )
        self.settings, self.seeds = settings, tuple(seeds)
        self.faults = per_replica(faults, len(self.seeds))
        self.guest_names = [guest.name for guest in data.guests]
        self.known_faults = resolved(self.faults, self.guest_names, self.host_names)
        for fault in self.faults:
            if fault.lateness is not None or fault.corruption is not None:
                raise UserError(f"--faults {fault.texts[-1]}: only dvfl defines what late or wrong messages do")
        if self.device.type == "cpu":
            keep_freed_memory()
        self.model = SplitModel(
            shape(data),
            settings,
            seeds,
            self.device,
            summed=algorithm.summed,
            apart=algorithm.apart,
            network=self.network,
            pace=paces(self._variants, len(data.guests)),
        )
        self.watch = Stopwatch(self.device)
        self.rows = LabelledRows(
            self._labels(), settings.validation, settings.batch, seeds, self.device, self.segments, settings.copies
        )
        own = LabelledCopies(data, settings.copies, seeds, self.device).joined(self._replica_data.train())
        self.tables = [
            GatheredTables([own[guest] for guest in group.members], len(seeds), self.device)
            for group in self.model.groups
        ]
        self.feed = Feed(self.device, self.rows.iterations)
        self._dropout, self._hidden = self._made_dropout(), self._made_hidden()
        self._noise = self._noises()
        # Of a sum, everyone is sent the same gradient.
        widths = self.model.latents[:1] if self.model.summed else self.model.latents
        self.defence = gradient_defence(settings, widths, seeds, self.feed, self.device)
        self.epoch = 0
        self.losses: list[Tensor] = []  # (replicas,) an epoch
        self.held_out: list[Tensor] = []  # scores on held-out rows
        self._loss = torch.zeros(len(seeds), device=self.device)
        self._stopping = EarlyStopping(self.model.learners, self.rows.guess(self.model.supervision), settings.patience)
        algorithm.open(self)
        self._made = np.zeros(len(seeds), np.int64)  # rounds of each replica
        self._repeated = np.zeros(len(seeds), np.int64)
        self._before = algorithm.state()  # of the epoch that is next; its masks are made while another runs
        self._masks = algorithm.masks(0, self.rows.iterations)
        algorithm.check(self._stopping.going)
        multiplications = self.rows.batch * sum(learner.parameters.numel() for learner in self.model.learners)
        worth = workers(self.device, multiplications)
        self._rounds = Rounds([self._part(piece) for piece in cut(len(seeds), worth)], self.device, worth)

    @property
    def masked(self) -> bool:
        """Whether somebody can fail."""
        return bool(self._masks)

    @property
    def phase(self) -> str:
        return "guests and host"

    @property
    def epochs(self) -> int:
        return self.settings.epochs

    @property
    def epochs_left(self) -> dict[str, int]:
        return {self.phase: 0 if self.finished else self.settings.epochs - self.epoch}

    @property
    def done(self) -> int:
        return self.epoch

    @property
    def finished(self) -> bool:
        """All epochs done, or every replica stopped early or stalled."""
        if self.epoch >= self.settings.epochs or self._stopping.stopped:
            return True
        return all(at is not None for at in self.stalled)

    @property
    def stalled(self) -> list[int | None]:
        """The round at which each replica stalled for good, None where it did not."""
        pairs = zip(self.algorithm.stalled, self._made, strict=True)  # masks are made ahead of the rounds
        return [at if at is not None and at < made else None for at, made in pairs]

    @property
    def repeated(self) -> NDArray[np.int64] | None:
        """Requests that each replica made again in the rounds it made."""
        return None if self.algorithm.repeated is None else self._repeated

    def network(self, columns: int, hidden: int, latent: int, activations: tuple[Activation, Activation]) -> Net:
        """A guest's: that of DVFL."""
        return encoder(columns, hidden, latent, activations)

    def prepare(self) -> bool:
        """There is nothing to prepare."""
        return False

    @torch.no_grad()
    def advance(self) -> None:
        """Runs one epoch, and looks at the held-out rows where there are any."""
        with suited(self.device, self.rows.batch * max(learner.parameters.numel() for learner in self.model.learners)):
            self.watch.time("hosts", self._epoch)

    def run(self) -> None:
        """Runs what is left."""
        while not self.finished:
            self.advance()

    def outputs(self, guests: Collection[int] | None = None) -> Tensor:
        """The trained model's outputs for the test rows: (replicas, test rows, outputs).

        `guests`: numbers, from 0, of those that are there; all unless given. Zeros are in the place of the others.
        """
        return self.model.predict(self._replica_data.test(), guests)

    def scores(self) -> NDArray[np.float64]:
        """Each replica's test accuracy in percent, or R2 of a regression; no number where it stalled."""
        return scored(self._replica_data, self.outputs(), self.stalled)

    def history(self) -> History:
        return History(labels=self.losses, held_out=self.held_out)

    def flows(self) -> list[Flow]:
        """A message forward from every guest and a gradient back to it in every round that was made."""
        rounds = self.rows.iterations * self.epoch
        flows = []
        for name, latent in zip(self.guest_names, self.model.latents, strict=True):
            megabytes = rounds * self.rows.batch * latent * FLOAT32 / 1e6
            flows.append(Flow(name, "host-1", "in training", rounds, megabytes, "guests"))
            flows.append(Flow("host-1", name, "in training", rounds, megabytes, "back"))
        return flows

    def save(self, folder: Path, extra: dict[str, Any]) -> None:
        """Writes the trained parties into a folder."""
        manifest = {"settings": self.settings.as_dict(), "seeds": list(self.seeds), "extra": extra}
        storage.write(self.model.tensors(), folder, manifest)

    def state(self) -> State:
        """Everything that is needed to go on from here."""
        tensors = {f"algorithm.{name}": value for name, value in self._before.items()}
        for number, learner in enumerate(self.model.learners):
            tensors |= {f"learner.{number}.{name}": value for name, value in learner.state().items()}
        tensors |= {f"stopping.{name}": value for name, value in self._stopping.state().items()}
        tensors |= kept_losses("losses", self.losses) | kept_losses("held_out", self.held_out)
        return tensors, {"epoch": self.epoch, "made": self._made.tolist(), "repeated": self._repeated.tolist()}

    def restore(self, tensors: dict[str, Tensor], position: dict[str, Any]) -> None:
        """Takes back what `state` gave."""
        for number, learner in enumerate(self.model.learners):
            learner.restore({name: tensors[f"learner.{number}.{name}"] for name in learner.state()})
        self._stopping.restore({name: tensors[f"stopping.{name}"] for name in self._stopping.state()})
        self.losses = read_losses("losses", tensors, self.device)
        self.held_out = read_losses("held_out", tensors, self.device)
        self.epoch, self._made, self._repeated = (
            position["epoch"],
            np.array(position["made"]),
            np.array(position["repeated"]),
        )
        self.algorithm.restore({name: tensors[f"algorithm.{name}"] for name in self.algorithm.state()})
        self._look_ahead()

    def _epoch(self) -> None:
        s, rounds = self.settings, self.rows.iterations
        self.algorithm.check(self._stopping.going)
        self.rows.load(self.feed, self.epoch)
        start, total = self.epoch * rounds, s.epochs * rounds
        for name, each in (
            ("guest rate", [one.guest_rule.rate for one in self._variants]),
            ("host rate", [one.host_rule.rate for one in self._variants]),
        ):
            self.feed.load(name, rates(s.schedule, one_or_each(each), start, rounds, total))
        for drawn in (*self._noise, self._dropout, self._hidden, self.defence):
            if drawn is not None:
                drawn.load(self.epoch, rounds, self.rows.batch)
        for name, mask in self._masks.items():
            self.feed.load(name, mask)
        self._loss.zero_()
        self._rounds.run(rounds)
        self.epoch += 1
        self._count()
        self._look_ahead()  # while a GPU still computes
        self.losses.append(self._loss / rounds)
        if self.rows.held is not None:
            score = self._score(self.rows.held)
            self._stopping.note(score)
            self.held_out.append(score)
            if self.finished:
                self._stopping.finish()

    def _count(self) -> None:
        """Takes down what the epoch that was just made adds to its replicas."""
        going = self._stopping.going
        self._made = np.where(going, self.epoch * self.rows.iterations, self._made)
        if self.algorithm.repeated is not None:
            self._repeated = np.where(going, self.algorithm.repeated, self._repeated)

    def _look_ahead(self) -> None:
        self._before = self.algorithm.state()
        if self.masked and self.epoch < self.settings.epochs:
            self._masks = self.algorithm.masks(self.epoch * self.rows.iterations, self.rows.iterations)

    def _part(self, replicas: slice) -> Callable[[Round], None]:
        work, loss = self.algorithm.part(replicas), self._loss[replicas]

        def body(t: Round) -> None:
            loss.add_(work(t))

        return body

    def inputs(self, number: int, rows: Tensor, t: Round, replicas: slice) -> Tensor:
        """A group's batch of rows (all replicas, batch) for some replicas: (elements, batch, columns)."""
        group = self.model.groups[number]
        elements = group.elements(replicas)
        x = self.tables[number].take(rows, elements)
        if not self._noise:
            return x
        element = torch.arange(elements.start, elements.stop, device=self.device)
        return x * self._noise[number].at(t, element // len(group.members), element % len(group.members))

    def read(self, rows: Tensor, t: Round) -> Tensor:
        """What heads read in round `t` of training rows (batch,), the same for all: (replicas, batch, inputs)."""
        everyone = slice(0, len(self.seeds))
        part, each = self.model.part(everyone), rows.expand(len(self.seeds), -1)
        inputs = [self.inputs(number, each, t, everyone) for number in range(len(self.model.groups))]
        return self.model.aggregate([part.encode(number, own) for number, own in enumerate(inputs)])

    def keep(self, t: Round, replicas: slice) -> Tensor | None:
        """The factors of dropout in round `t`, for what the head reads; None where there is none."""
        keep = None if self._dropout is None else self._dropout.at(t, replicas)
        if self._hidden is None:
            return keep
        seen = self._hidden.at(t, replicas).index_select(2, self._guest).float()
        return seen if keep is None else keep * seen

    def rate(self, name: str, t: Round, replicas: slice) -> Tensor:
        """The learning rate of round `t`: one, or one a replica."""
        rate = self.feed.at(name, t)
        return rate[replicas] if rate.numel() > 1 else rate

    def alive(self, replicas: slice) -> Tensor | None:
        """Which replicas have not stopped early; None where none ever does."""
        return self._stopping.alive[replicas] if self.rows.held is not None else None

    def _score(self, held: Tensor) -> Tensor:
        """Of each replica on its held-out rows (replicas, rows); everyone answers."""
        part, everyone = self.model.part(slice(0, len(self.seeds))), slice(None)
        scores, at_once = [], max(1, (1 << 20) // len(self.seeds))  # rows: a smaller piece serves as well
        for rows in held.split(at_once, 1):
            pieces = [part.encode(number, table.take(rows, everyone)) for number, table in enumerate(self.tables)]
            output = self.model.head.forward(self.model.host.parameters, self.model.aggregate(pieces))[-1]
            scores.append(self.model.supervision.score(output, self.rows.labels_of(rows)) * rows.shape[1])
        return torch.stack(scores).sum(0) / held.shape[1]

    def _labels(self) -> NDArray[np.generic]:
        if self.data.classes is not None:
            return self._replica_data.labels()
        targets, self.model.target_centre, self.model.target_spread = standardised_targets(self.data.y_train)
        return targets

    def _made_dropout(self) -> Dropout | None:
        """Of the guests' encodings at the host."""
        if not any(one.dropout for one in self._variants):
            return None
        keep, width = [1 - one.dropout for one in self._variants], self.model.head.in_width
        return Dropout("split-dropout", width, keep, self.seeds, self.feed, self.device).scaled()

    def _made_hidden(self) -> Dropout | None:
        """Of whole guests at the host."""
        if not self.settings.guest_dropout:
            return None
        latents, keep = self.model.latents, [1 - self.settings.guest_dropout] * len(self.seeds)
        self._guest = torch.arange(len(latents)).repeat_interleave(torch.tensor(latents)).to(self.device)  # of a column
        return Dropout("guest-dropout", len(latents), keep, self.seeds, self.feed, self.device).never_all()

    def _noises(self) -> list[Dropout]:
        """Which input values guests see, a group each; none where they see all."""
        if not any(one.guest_noise for one in self._variants):
            return []
        keep = [1 - one.guest_noise for one in self._variants]
        return [
            Dropout(f"guest-noise-{number}", group.net.in_width, keep, self.seeds, self.feed, self.device).scaled()
            for number, group in enumerate(self.model.groups)
        ]


def _without_rates(s: SplitSettings) -> SplitSettings:
    rules = {name: replace(getattr(s, name), rate=0.0) for name in ("guest_rule", "host_rule")}
    return replace(s, **rules, dropout=0.0, guest_noise=0.0, inflated=None, inflation=1.0)


def _aligned(data: GivenData) -> GivenData:
    """Split networks need every guest's part of a row: they train on what all have and what is labelled."""
    common = with_common_labels(data)
    return intersection(common) if isinstance(common, VerticalData) else [intersection(one) for one in common]
