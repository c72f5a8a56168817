"""A real owner's head: trained on the hosts' encodings of labelled slots, epoch by epoch."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.federation.plan import Plan
from dvfl.parties.early_stopping import EarlyStopping
from dvfl.parties.learner import Rule, Sgd
from dvfl.parties.networks import owner_supervision
from dvfl.parties.owner import Owner
from dvfl.parties.randomness import batches, numpy_generator, patterns, torch_generator
from dvfl.parties.schedules import Schedule, rates
from dvfl.parties.standardisation import moments, standardised_targets

_MASKS = 4096  # random ones from which dropout draws


@dataclass(frozen=True)
class OwnerSettings:
    """How the owner trains; nobody else needs to know."""

    epochs: int = 100
    batch: int = 64
    rule: Rule = Sgd(0.16)
    schedule: Schedule = "cosine"
    standardise: bool = True
    dropout: float = 0.5  # of single encoding dimensions
    host_dropout: float = 0.0  # of whole hosts, row by row
    validation: float = 0.0  # part of the labelled rows held out for early stopping; 0 switches it off
    patience: int = 20
    head: tuple[int, ...] | None = None  # hidden widths; None: the sizing rule's
    smoothing: float = 0.0  # of labels: this part of each is shared out among all classes


@dataclass(frozen=True)
class Labels:
    """The owner's labels: class numbers, or a regression's targets."""

    slots: NDArray[np.int32]
    y: NDArray[Any]
    classes: tuple[str, ...] | None


class OwnerTraining:
    """The head on joint encodings (rows, all hosts' widths); `heard` marks the hosts that gave any."""

    def __init__(self, plan: Plan, settings: OwnerSettings, labels: Labels, joint: Tensor, heard: list[bool]) -> None:
        self._settings, self._seed = settings, plan.seed
        widths = (plan.host_width,) * len(plan.hosts)
        classes = len(labels.classes or ())
        supervision = owner_supervision(
            plan.sizes, len(widths), sum(widths), classes, settings.head, settings.smoothing
        )
        first = Owner.init(supervision, widths, torch_generator(plan.seed, "owner"))[None]
        self.owner = Owner(supervision, widths, first, settings.rule)
        held = min(round(len(joint) * settings.validation), len(joint) - 1)
        shuffle = numpy_generator(plan.seed, "held-out").permutation(len(joint))
        self._held, self._train = torch.from_numpy(shuffle[:held]), np.sort(shuffle[held:])
        self.target_centre, self.target_spread, y = 0.0, 1.0, labels.y
        if not classes:
            y, self.target_centre, self.target_spread = standardised_targets(labels.y)
        self._y = torch.from_numpy(np.ascontiguousarray(y))
        width = joint.shape[1]
        self.centre, self.spread = torch.zeros(width), torch.ones(width)
        if settings.standardise:
            self.centre, self.spread = moments(joint[torch.from_numpy(self._train)])
        self._joint = (joint - self.centre) / self.spread
        self._hosts = len(widths)
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
        total = 0.0
        for t, rows in enumerate(order):
            keep = self._masks[picks[t]][None] if s.dropout else None
            present = self._present(batch, hidden)
            total += float(
                self.owner.step(
                    self._joint[rows][None], self._y[rows][None], float(rate[t]), present=present, keep=keep
                )
            )
        self.epoch, self.loss = self.epoch + 1, total / count
        if len(self._held):
            output = self.owner.predict(self._joint[self._held][None], self._present(len(self._held)))
            self.stopping.note(self.owner.supervision.score(output, self._y[self._held][None]))
            if self.finished:
                self.stopping.finish()

    @torch.no_grad()
    def predict(self, joint: Tensor) -> Tensor:
        """Class scores before the softmax, or numbers in the labels' own unit: (rows, outputs)."""
        output = self.owner.predict(((joint - self.centre) / self.spread)[None], self._present(len(joint)))[0]
        return output * self.target_spread + self.target_centre

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
        return patterns(_MASKS, self._joint.shape[1], keep, self._seed, "owner-dropout") / keep

    def _present(self, rows: int, hidden: np.random.Generator | None = None) -> Tensor | None:
        """Who counts, row by row; None where all hosts do."""
        present = None if self._heard is None else self._heard.expand(1, rows, -1)
        if hidden is None or not self._settings.host_dropout:
            return present
        keep = torch.from_numpy(hidden.random((1, rows, self._hosts)) >= self._settings.host_dropout)
        keep |= ~keep.any(2, keepdim=True)
        return keep if present is None else keep & present
