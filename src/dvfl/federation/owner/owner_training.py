"""A real owner's head: trained on the hosts' encodings of labelled slots, epoch by epoch."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.federation.owner.head import Head
from dvfl.federation.party.owner_settings import OwnerSettings
from dvfl.federation.protocol.plan import Plan
from dvfl.parties.calibration import temperature
from dvfl.parties.early_stopping import EarlyStopping
from dvfl.parties.numerics.randomness import batches, numpy_generator, patterns, torch_generator
from dvfl.parties.numerics.schedules import rates
from dvfl.parties.owner import Owner
from dvfl.parties.party_networks import owner_supervision
from dvfl.parties.standardisation import moments, standardised_targets, widened

_MASKS = 4096  # random ones from which dropout draws
_LEAST_LABELS = 200  # below it none are kept for calibration


@dataclass(frozen=True)
class Labels:
    """The owner's labels: class numbers, or a regression's targets."""

    slots: NDArray[np.int32]
    y: NDArray[Any]
    classes: tuple[str, ...] | None


class OwnerTraining:
    """The head on joint encodings (1 + passes, rows, all hosts' widths); `heard` marks the hosts that gave any.

    The first encodings of a row are of all guests. They take turns: an epoch has one of them for each row, the next
    epoch the next, and where a row begins is drawn.
    """

    def __init__(self, plan: Plan, settings: OwnerSettings, labels: Labels, joint: Tensor, heard: list[bool]) -> None:
        self._settings, self._seed, self._classes = settings, plan.seed, labels.classes
        widths = (plan.host_width,) * len(plan.hosts)
        classes = len(labels.classes or ())
        supervision = owner_supervision(
            plan.sizes, len(widths), sum(widths), classes, settings.head, settings.smoothing
        )
        first = Owner.init(supervision, widths, torch_generator(plan.seed, "owner"))[None]
        self.owner = Owner(supervision, widths, first, settings.rule)
        rows = joint.shape[1]
        held = min(round(rows * settings.validation), rows - 1)
        kept = round(rows * settings.calibration) if classes and rows >= _LEAST_LABELS else 0
        kept = min(kept, rows - held - 1)
        shuffle = numpy_generator(plan.seed, "held-out").permutation(rows)
        self._held, self._kept = torch.from_numpy(shuffle[:held]), torch.from_numpy(shuffle[held : held + kept])
        self._train = np.sort(shuffle[held + kept :])
        self.target_centre, self.target_spread, y = 0.0, 1.0, labels.y
        if not classes:
            y, self.target_centre, self.target_spread = standardised_targets(labels.y)
        self._y = torch.from_numpy(np.ascontiguousarray(y))
        width = joint.shape[2]
        self.centre, self.spread = torch.zeros(width), torch.ones(width)
        if settings.standardise:
            train = torch.from_numpy(self._train)
            self.centre, self.spread = moments(joint[0, train])
            if len(joint) > 1:
                self.spread = widened(self.centre, self.spread, joint[1:, train].flatten(0, 1))
        self._joint = (joint - self.centre) / self.spread
        self._first = numpy_generator(plan.seed, "owner passes").integers(len(joint), size=rows)
        self._hosts, self._latents, self._hiding = len(widths), plan.sizes.guest_latent, 0.0
        if plan.host_model == "concatenate":  # no host learns to do without a guest
            self._hiding = plan.guest_dropout
        self._heard = None if all(heard) else torch.tensor(heard)[None, None]
        guess = self.owner.supervision.guess(self._y[self._held][None]) if held else torch.zeros(1)
        self.stopping = EarlyStopping([self.owner.learner], guess, settings.patience)
        self.epoch, self.loss = 0, 0.0

    @property
    def finished(self) -> bool:
        return self.epoch >= self._settings.epochs or self.stopping.stopped

    @torch.no_grad()
    def train(self) -> None:
        """One epoch, and a look at the held-out rows where there are any."""
        s, seed = self._settings, self._seed
        batch = min(s.batch, len(self._train))
        order = torch.from_numpy(self._train[batches(len(self._train), batch, seed, "owner", self.epoch)])
        count = len(order)
        rate = rates(s.schedule, s.rule.rate, self.epoch * count, count, s.epochs * count)
        picks = torch.from_numpy(
            numpy_generator(seed, "owner-dropout", self.epoch).integers(_MASKS, size=(count, batch))
        )
        hidden = numpy_generator(seed, "host-dropout", self.epoch)
        passes = torch.from_numpy((self._first[order.numpy()] + self.epoch) % len(self._joint))
        total = 0.0
        for t, rows in enumerate(order):
            keep = self._masks[picks[t]][None] if s.dropout else None
            present = self._present(batch, hidden)
            x = self._without_some(self._joint[passes[t], rows], hidden)
            loss = self.owner.step(x[None], self._y[rows][None], float(rate[t]), present=present, keep=keep)
            total += float(loss)
        self.epoch, self.loss = self.epoch + 1, total / count
        if len(self._held):
            output = self.owner.predict(self._joint[0, self._held][None], self._present(len(self._held)))
            self.stopping.note(self.owner.supervision.score(output, self._y[self._held][None]))
            if self.finished:
                self.stopping.finish()

    @torch.no_grad()
    def head(self) -> Head:
        """What it has learned; its temperature is that of the rows that were kept from training."""
        heat = 1.0
        if len(self._kept):
            output = self.owner.predict(self._joint[0, self._kept][None], self._present(len(self._kept)))[0]
            heat = temperature(output.numpy(), self._y[self._kept].numpy())
        targets = self.target_centre, self.target_spread
        return Head(self.owner, self._classes, self._settings.head, self.centre, self.spread, *targets, heat)

    def predict(self, joint: Tensor) -> Tensor:
        """Class scores before the softmax, or numbers in the labels' own unit: (rows, outputs)."""
        present = None if self._heard is None else self._heard[0].expand(len(joint), -1)
        return self.head().outputs(joint, present)

    def state(self) -> dict[str, Tensor]:
        """What a restart needs beside what it was made from."""
        stopping = {f"stopping.{name}": value for name, value in self.stopping.state().items()}
        return {**self.owner.learner.state(), **stopping}

    def restore(self, state: dict[str, Tensor], epoch: int, loss: float) -> None:
        """Takes back what `state` gave."""
        self.owner.learner.restore(state)
        self.stopping.restore({name: state[f"stopping.{name}"] for name in self.stopping.state()})
        self.epoch, self.loss = epoch, loss

    @cached_property
    def _masks(self) -> Tensor:
        keep = 1 - self._settings.dropout
        return patterns(_MASKS, self._joint.shape[2], keep, self._seed, "owner-dropout") / keep

    def _without_some(self, x: Tensor, hidden: np.random.Generator) -> Tensor:
        """Rows in which some guests are hidden: zero before the standardisation, as hosts would give them."""
        if not self._hiding:
            return x
        gone = hidden.random((len(x), len(self._latents))) < self._hiding
        gone[gone.all(1)] = False
        columns = torch.from_numpy(np.tile(gone.repeat(self._latents, 1), self._hosts))
        return torch.where(columns, -self.centre / self.spread, x)

    def _present(self, rows: int, hidden: np.random.Generator | None = None) -> Tensor | None:
        """Who counts, row by row; None where all hosts do."""
        present = None if self._heard is None else self._heard.expand(1, rows, -1)
        if hidden is None or not self._settings.host_dropout:
            return present
        keep = torch.from_numpy(hidden.random((1, rows, self._hosts)) >= self._settings.host_dropout)
        keep |= ~keep.any(2, keepdim=True)
        return keep if present is None else keep & present
