"""The second phase: the owner trains its head on encodings collected once, and stops early on held-out rows."""

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.parties.randomness import batches, numpy_generator, patterns
from dvfl.strategies.machine import workers
from dvfl.strategies.rounds import Feed, Round, Rounds, cut, rates
from dvfl.strategies.stack import Stack

_PATTERNS = 4096  # masks that dropout draws from, so that a round costs a gather and no random numbers


class OwnerPhase:
    """Owners of all replicas, their encodings, labels and held-out rows."""

    def __init__(self, stack: Stack, joint: Tensor, labels: NDArray[np.generic]) -> None:
        self.stack, self._settings = stack, stack.settings
        replicas, rows, self._width = joint.shape
        self._rows = rows
        held = min(round(rows * self._settings.validation), rows - 1)
        shuffles = [numpy_generator(seed, "held-out").permutation(rows) for seed in stack.seeds]
        self._train = np.stack([np.sort(shuffle[held:]) for shuffle in shuffles])  # (replicas, owner's rows)
        device = stack.device
        self._held = torch.from_numpy(np.stack([shuffle[:held] for shuffle in shuffles])).to(device) if held else None
        self._all_labels = self._prepared(labels)
        if self._settings.standardise:
            self._fit_standardisation(joint)
        joint.sub_(stack.centre).div_(stack.spread)
        self._joint = joint.view(replicas * rows, self._width)
        self.batch = min(self._settings.batch, self._train.shape[1])
        self.iterations = -(-self._train.shape[1] // self.batch)
        self.epoch = 0
        self._feed = Feed(device, self.iterations)
        self._loss = torch.zeros(replicas, device=device)
        self._banks = self._dropout_banks()
        self.losses: list[Tensor] = []  # (replicas,) an epoch
        self.held_out: list[Tensor] = []  # scores on held-out rows
        # Early stopping, a state a replica: the best held-out score, its parameters, epochs since.
        self._best = torch.full((replicas,), -math.inf, device=device)
        self._best_parameters = stack.owner.learner.parameters.clone()
        self._since = torch.zeros(replicas, device=device)
        self._alive = torch.ones(replicas, dtype=torch.bool, device=device)
        worth = workers(device, self.batch * stack.owner.learner.parameters.numel())
        self._rounds = Rounds([self._part(piece) for piece in cut(replicas, worth)], device, worth)

    @property
    def finished(self) -> bool:
        """All epochs done, or every replica stopped early."""
        if self.epoch >= self._settings.owner_epochs:
            return True
        return self._held is not None and bool((self._since > self._settings.patience).all())

    def state(self) -> dict[str, Tensor]:
        """What a restart needs beside the owners' learners."""
        losses = {f"{name}.{epoch}": loss for name, kept in self._kept().items() for epoch, loss in enumerate(kept)}
        return {"best": self._best, "best_parameters": self._best_parameters, "since": self._since, **losses}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Takes back what `state` gave."""
        self._best, self._best_parameters, self._since = (
            state[name].to(self.stack.device) for name in ("best", "best_parameters", "since")
        )
        for name, kept in self._kept().items():
            count = sum(key.startswith(f"{name}.") for key in state)
            kept[:] = [state[f"{name}.{epoch}"].to(self.stack.device) for epoch in range(count)]

    def advance(self) -> None:
        """One owner epoch, and a look at the held-out rows where there are any."""
        s, seeds = self._settings, self.stack.seeds
        count = self._train.shape[1]
        orders = [batches(count, self.batch, seed, "owner", self.epoch) for seed in seeds]
        rows = np.stack([train[order] for train, order in zip(self._train, orders, strict=True)], 1)
        self._feed.load("labels", self._all_labels[rows])  # (iterations, replicas, batch), as the rows
        self._feed.load("rows", rows + (np.arange(len(seeds)) * self._rows)[:, None])  # in the replicas' encodings
        start, total = self.epoch * self.iterations, s.owner_epochs * self.iterations
        self._feed.load("rate", rates(s.owner_schedule, s.owner_rule.rate, start, self.iterations, total))
        for name in self._banks:
            size = (self.iterations, self.batch)
            picks = [numpy_generator(seed, name, self.epoch).integers(_PATTERNS, size=size) for seed in seeds]
            self._feed.load(name, np.stack(picks, 1))
        self._alive.copy_(self._since <= s.patience)
        self._loss.zero_()
        self._rounds.run(self.iterations)
        self.epoch += 1
        self.losses.append(self._loss / self.iterations)
        if self._held is not None:
            self.held_out.append(self._stop_early(self._held))

    def finish(self) -> None:
        """Goes back to the parameters that were best on the held-out rows."""
        if self._held is not None:
            self.stack.owner.learner.parameters.copy_(self._best_parameters)

    def _kept(self) -> dict[str, list[Tensor]]:
        return {"losses": self.losses, "held_out": self.held_out}

    def _part(self, elements: slice) -> Callable[[Round], None]:
        """What some of the owners do in a round."""
        feed, owner, loss = self._feed, self.stack.owner.part(elements), self._loss[elements]
        alive = self._alive[elements] if self._held is not None else None

        def body(t: Round) -> None:
            y = feed.at("labels", t)[elements]  # (owners, batch)
            e = self._joint.index_select(0, feed.at("rows", t)[elements].flatten()).view(*y.shape, self._width)
            present, keep = self._mask("host-dropout", t, elements), self._mask("owner-dropout", t, elements)
            loss.add_(owner.step(e, y, feed.at("rate", t), present=present, keep=keep, alive=alive))

        return body

    def _mask(self, name: str, t: Round, elements: slice) -> Tensor | None:
        if name not in self._banks:
            return None
        picks = self._feed.at(name, t)[elements]  # (owners, batch)
        flat = (picks + self._bank_base[elements]).flatten()
        return self._banks[name].index_select(0, flat).view(*picks.shape, -1)

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

    def _prepared(self, labels: NDArray[np.generic]) -> NDArray[np.generic]:
        """Class numbers as they are; a regression's targets standardised, so that one learning rate fits all units."""
        if self.stack.shape.classes:
            return labels
        numbers = labels.astype(np.float64)
        self.stack.target_centre, self.stack.target_spread = float(numbers.mean()), float(numbers.std()) or 1.0
        return ((numbers - self.stack.target_centre) / self.stack.target_spread).astype(np.float32)

    def _fit_standardisation(self, joint: Tensor) -> None:
        for replica, rows in enumerate(self._train):
            part = joint[replica, torch.from_numpy(rows).to(joint.device)]
            spread, centre = torch.std_mean(part, dim=0, correction=0)
            self.stack.centre[replica, 0] = centre
            # A dead dimension (never active on training rows) carries nothing: dividing by 1 leaves it at zero.
            self.stack.spread[replica, 0] = torch.where(spread > 1e-6, spread, torch.ones_like(spread))

    def _stop_early(self, held: Tensor) -> Tensor:
        """Notes the best parameters so far of each replica; its score on its held-out rows (replicas, rows)."""
        owner = self.stack.owner
        base = (torch.arange(len(held), device=held.device) * self._rows)[:, None]
        e = self._joint.index_select(0, (held + base).flatten()).view(*held.shape, self._width)
        labels = torch.from_numpy(self._all_labels[held.cpu().numpy()]).to(held.device)
        score = owner.supervision.score(owner.predict(e), labels)
        better = (score > self._best) & self._alive
        self._best = torch.where(better, score, self._best)
        self._best_parameters = torch.where(better[:, None], owner.learner.parameters, self._best_parameters)
        self._since = torch.where(better, torch.zeros_like(self._since), self._since + 1)
        return score
