"""The second phase: the owner trains its head on encodings collected once, and stops early on held-out rows."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.parties.randomness import batches, numpy_generator, patterns
from dvfl.strategies.rounds import Feed, Round, Rounds, rates
from dvfl.strategies.stack import Stack

_PATTERNS = 4096  # masks that dropout draws from, so that a round costs a gather and no random numbers


class OwnerPhase:
    """Owners of all replicas, their encodings, labels and held-out rows."""

    def __init__(self, stack: Stack, joint: Tensor, labels: NDArray[np.generic]) -> None:
        self.stack, self._settings = stack, stack.settings
        replicas, rows, self._width = joint.shape
        held = round(rows * self._settings.validation)
        shuffles = [numpy_generator(seed, "held-out").permutation(rows) for seed in stack.seeds]
        self._train = np.stack([np.sort(shuffle[held:]) for shuffle in shuffles])  # (replicas, owner's rows)
        device = stack.device
        self._held = torch.from_numpy(np.stack([shuffle[:held] for shuffle in shuffles])).to(device) if held else None
        self._labels = self._prepared(labels)
        if self._settings.standardise:
            self._fit_standardisation(joint)
        joint.sub_(stack.centre).div_(stack.spread)
        self._joint = joint.view(replicas * rows, self._width)
        self._base = (torch.arange(replicas, device=device) * rows)[:, None]
        self.batch = min(self._settings.batch, self._train.shape[1])
        self.iterations = -(-self._train.shape[1] // self.batch)
        self.epoch = 0
        self._feed = Feed(device)
        self._rounds = Rounds(self._round, device)
        self._loss = torch.zeros(replicas, device=device)
        self._banks = self._dropout_banks()
        # Early stopping, a state a replica: the best held-out loss, its parameters, epochs since.
        self.best = torch.full((replicas,), math.inf, device=device)
        self.best_parameters = stack.owner.learner.parameters.clone() if held else None
        self.since = torch.zeros(replicas, device=device)
        self._alive = torch.ones(replicas, dtype=torch.bool, device=device)

    @property
    def finished(self) -> bool:
        """All epochs done, or every replica stopped early."""
        if self.epoch >= self._settings.owner_epochs:
            return True
        return self._held is not None and bool((self.since > self._settings.patience).all())

    def advance(self) -> dict[str, Tensor]:
        """One owner epoch; the mean loss of each replica, and on held-out rows where there are any."""
        s, stack = self._settings, self.stack
        rows = [
            self._train[replica][batches(self._train.shape[1], self.batch, seed, "owner", self.epoch)]
            for replica, seed in enumerate(stack.seeds)
        ]
        self._feed.load("rows", np.stack(rows, 1))  # (iterations, replicas, batch)
        start, total = self.epoch * self.iterations, s.owner_epochs * self.iterations
        self._feed.load("rate", rates(s.owner_schedule, s.owner_rule.rate, start, self.iterations, total))
        for name in self._banks:
            picks = [
                numpy_generator(seed, name, self.epoch).integers(_PATTERNS, size=(self.iterations, self.batch))
                for seed in stack.seeds
            ]
            self._feed.load(name, np.stack(picks, 1))
        self._alive.copy_(self.since <= s.patience)
        self._loss.zero_()
        self._rounds.run(self.iterations)
        self.epoch += 1
        measured = {"loss": self._loss / self.iterations}
        if self._held is not None:
            measured["held-out loss"] = self._stop_early()
        return measured

    def finish(self) -> None:
        """Goes back to the parameters that were best on the held-out rows."""
        if self.best_parameters is not None:
            self.stack.owner.learner.parameters.copy_(self.best_parameters)

    def _round(self, t: Round) -> None:
        rows = self._feed.at("rows", t).long()  # (replicas, batch)
        e = self._joint.index_select(0, (rows + self._base).flatten()).view(*rows.shape, self._width)
        loss = self.stack.owner.step(
            e,
            self._labels[rows],
            self._feed.at("rate", t),
            present=self._mask("host-dropout", t),
            keep=self._mask("owner-dropout", t),
            alive=None if self._held is None else self._alive,
        )
        self._loss += loss

    def _mask(self, name: str, t: Round) -> Tensor | None:
        if name not in self._banks:
            return None
        picks = self._feed.at(name, t)  # (replicas, batch)
        return self._banks[name].index_select(0, (picks + self._bank_base).flatten()).view(*picks.shape, -1)

    def _dropout_banks(self) -> dict[str, Tensor]:
        """Masks of every replica one after another: of single dimensions as factors, of whole senders as booleans."""
        s, seeds, device = self._settings, self.stack.seeds, self.stack.device
        self._bank_base = (torch.arange(len(seeds), device=device) * _PATTERNS)[:, None]
        banks = {}
        if s.owner_dropout:
            keep = 1 - s.owner_dropout
            bank = torch.cat([patterns(_PATTERNS, self._width, keep, seed, "owner-dropout") for seed in seeds])
            banks["owner-dropout"] = bank.to(device).float() / keep
        if s.host_dropout:
            senders = len(self.stack.owner_widths)
            bank = torch.cat([patterns(_PATTERNS, senders, 1 - s.host_dropout, seed, "host-dropout") for seed in seeds])
            banks["host-dropout"] = bank.to(device)
        return banks

    def _prepared(self, labels: NDArray[np.generic]) -> Tensor:
        """Class numbers as they are; a regression's targets standardised, so that one learning rate fits all units."""
        y = torch.from_numpy(np.ascontiguousarray(labels))
        if not self.stack.shape.classes:
            spread, centre = torch.std_mean(y.double(), correction=0)
            self.stack.target_centre, self.stack.target_spread = centre.item(), spread.item() or 1.0
            y = ((y - self.stack.target_centre) / self.stack.target_spread).float()
        return y.to(self.stack.device)

    def _fit_standardisation(self, joint: Tensor) -> None:
        for replica, rows in enumerate(self._train):
            part = joint[replica, torch.from_numpy(rows).to(joint.device)]
            spread, centre = torch.std_mean(part, dim=0, correction=0)
            self.stack.centre[replica, 0] = centre
            # A dead dimension (never active on training rows) carries nothing: dividing by 1 leaves it at zero.
            self.stack.spread[replica, 0] = torch.where(spread > 1e-6, spread, torch.ones_like(spread))

    def _stop_early(self) -> Tensor:
        assert self._held is not None and self.best_parameters is not None
        owner = self.stack.owner
        e = self._joint.index_select(0, (self._held + self._base).flatten()).view(*self._held.shape, self._width)
        loss = owner.supervision.losses(owner.predict(e), self._labels[self._held])
        better = (loss < self.best) & self._alive
        self.best = torch.where(better, loss, self.best)
        self.best_parameters = torch.where(better[:, None], owner.learner.parameters, self.best_parameters)
        self.since = torch.where(better, torch.zeros_like(self.since), self.since + 1)
        return loss
