"""The second phase: the owner trains its head on encodings collected once, and stops early on held-out rows."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.parties.early_stopping import EarlyStopping
from dvfl.parties.host import Host
from dvfl.parties.numerics.schedules import rates
from dvfl.parties.standardisation import moments, standardised_targets, widened
from dvfl.settings.training import Settings
from dvfl.simulation.cpu_threads import workers
from dvfl.simulation.dropout import Dropout
from dvfl.simulation.rounds import Feed, Round, Rounds, cut, one_or_each
from dvfl.simulation.simulation import kept_losses, read_losses
from dvfl.simulation.stack import Stack
from dvfl.simulation.training_rows import LabelledRows


class OwnerPhase:
    """Owners of all replicas, their encodings, labels and held-out rows."""

    def __init__(
        self,
        stack: Stack,
        joint: Tensor,
        labels: NDArray[np.generic],
        variants: Sequence[Settings],
        *,
        gaps: bool = False,
        parts: NDArray[np.int64] | None = None,
        artificial: int = 0,
    ) -> None:
        """`variants`: each replica's own settings, of which the owner's rate and dropout may differ. `gaps`: what never
        came is no number in `joint`, and zero is put in its place. Rows of `joint` are the labelled ones, their copies,
        then those of partial passes. `parts` (replicas, rows, some): classes whose mean is a row's label. The last rows
        may be `artificial`.
        """
        self._variants = variants
        self.stack, self._settings = stack, stack.settings
        replicas, rows, self._width = joint.shape
        device = stack.device
        self.rows = LabelledRows(
            self._prepared(labels),
            self._settings.validation,
            self._settings.batch,
            stack.seeds,
            device,
            copies=self._settings.copies,
            partial=self._settings.partial,
            parts=parts,
            artificial=artificial,
        )
        if self._settings.standardise:
            self._fit_standardisation(joint)
        joint.sub_(stack.centre).div_(stack.spread)
        if gaps:
            joint.masked_fill_(joint.isnan(), 0.0)
        self._joint = joint.view(replicas * rows, self._width)
        self._first_row = (torch.arange(replicas, device=device) * rows)[:, None]  # of each replica's encodings
        self.epoch = 0
        self._feed = Feed(device, self.rows.iterations)
        self._loss = torch.zeros(replicas, device=device)
        self._dropout = self._dropouts()
        self.losses: list[Tensor] = []  # (replicas,) an epoch
        self.held_out: list[Tensor] = []  # scores on held-out rows
        guess = self.rows.guess(stack.owner.supervision)
        self._stopping = EarlyStopping([stack.owner.learner], guess, self._settings.patience)
        worth = workers(device, self.rows.batch * stack.owner.learner.parameters.numel())
        self._rounds = Rounds([self._part(piece) for piece in cut(replicas, worth)], device, worth)

    @property
    def finished(self) -> bool:
        """All epochs done, or every replica stopped early."""
        if self.epoch >= self._settings.owner_epochs:
            return True
        return self._stopping.stopped

    def state(self) -> dict[str, Tensor]:
        """What a restart needs beside the owners' learners."""
        stopping = {f"stopping.{name}": value for name, value in self._stopping.state().items()}
        return stopping | kept_losses("losses", self.losses) | kept_losses("held_out", self.held_out)

    def restore(self, state: dict[str, Tensor]) -> None:
        """Takes back what `state` gave."""
        self._stopping.restore({name: state[f"stopping.{name}"] for name in self._stopping.state()})
        self.losses = read_losses("losses", state, self.stack.device)
        self.held_out = read_losses("held_out", state, self.stack.device)

    def advance(self) -> None:
        """One owner epoch, and a look at the held-out rows where there are any."""
        s, rounds = self._settings, self.rows.iterations
        self.rows.load(self._feed, self.epoch)
        each = one_or_each([one.owner_rule.rate for one in self._variants])
        steps = rates(s.owner_schedule, each, self.epoch * rounds, rounds, s.owner_epochs * rounds)
        self._feed.load("rate", steps)
        for dropout in self._dropout.values():
            dropout.load(self.epoch, rounds, self.rows.batch)
        self._loss.zero_()
        self._rounds.run(rounds)
        self.epoch += 1
        self.losses.append(self._loss / rounds)
        if self.rows.held is not None:
            score = self._score(self.rows.held)
            self._stopping.note(score)
            self.held_out.append(score)

    def finish(self) -> None:
        """Goes back to the parameters that were best on the held-out rows."""
        if self.rows.held is not None:
            self._stopping.finish()

    def _part(self, elements: slice) -> Callable[[Round], None]:
        """What some of the owners do in a round."""
        feed, owner, loss = self._feed, self.stack.owner.part(elements), self._loss[elements]
        alive = self._stopping.alive[elements] if self.rows.held is not None else None

        def body(t: Round) -> None:
            rows = self.rows.at(feed, t, elements)  # (owners, batch)
            e = self._taken(rows, elements)
            masks = {name: dropout.at(t, elements) for name, dropout in self._dropout.items()}
            y, rate = self.rows.targets_of(rows, elements), feed.at("rate", t)
            keep = masks.get("owner-dropout")
            if "guest-dropout" in masks:
                seen = masks["guest-dropout"].index_select(2, self._guest)
                keep = seen.to(e.dtype) if keep is None else keep * seen
            losses = owner.step(
                e,
                y,
                rate if rate.numel() == 1 else rate[elements],
                present=masks.get("host-dropout"),
                keep=keep,
                alive=alive,
            )
            loss.add_(losses)

        return body

    def _dropouts(self) -> dict[str, Dropout]:
        """Of single dimensions as factors, of whole senders as booleans."""
        s, seeds, device = self._settings, self.stack.seeds, self.stack.device
        made = {}
        if any(one.owner_dropout for one in self._variants):
            keep = [1 - one.owner_dropout for one in self._variants]
            made["owner-dropout"] = Dropout("owner-dropout", self._width, keep, seeds, self._feed, device).scaled()
        if s.host_dropout:
            senders, keep = len(self.stack.owner_widths), [1 - s.host_dropout] * len(seeds)
            made["host-dropout"] = Dropout("host-dropout", senders, keep, seeds, self._feed, device)
        if s.guest_dropout and not isinstance(self.stack.host, Host):  # no host learns to do without a guest
            latents, keep = self.stack.latents, [1 - s.guest_dropout] * len(seeds)
            guests = torch.arange(len(latents)).repeat_interleave(torch.tensor(latents))
            self._guest = guests.repeat(max(1, s.hosts)).to(device)  # of each column
            hidden = Dropout("guest-dropout", len(latents), keep, seeds, self._feed, device)
            made["guest-dropout"] = hidden.never_all()
        return made

    def _prepared(self, labels: NDArray[np.generic]) -> NDArray[np.generic]:
        """Class numbers as they are; a regression's targets standardised."""
        if self.stack.shape.classes:
            return labels
        targets, self.stack.target_centre, self.stack.target_spread = standardised_targets(labels)
        return targets

    def _taken(self, rows: Tensor, elements: slice = slice(None)) -> Tensor:
        """The encodings of rows (owners, some) of some replicas."""
        flat = (rows + self._first_row[elements]).flatten()
        return self._joint.index_select(0, flat).view(*rows.shape, self._width)

    def _fit_standardisation(self, joint: Tensor) -> None:
        """From the rows that are trained on; what never came (no number) has no part."""
        for replica, encodings in enumerate(joint):
            centre, spread = moments(encodings[self.rows.trained_on(replica)])
            if self._settings.partial:
                spread = widened(centre, spread, encodings[self.rows.partial_of(replica)])
            self.stack.centre[replica, 0], self.stack.spread[replica, 0] = centre, spread

    def _score(self, held: Tensor) -> Tensor:
        """Of each replica on its held-out rows (replicas, rows)."""
        owner = self.stack.owner
        return owner.supervision.score(owner.predict(self._taken(held)), self.rows.labels_of(held))
