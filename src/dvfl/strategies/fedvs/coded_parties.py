"""The parties of FedVS as stacks: clients that hold their own columns and shares of all, a server that holds neither.

The axis of clients in what they hold tells what lies with whom: index n is client n's and nobody else's.
"""

import copy
from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from dvfl.parties.numerics.learner import Learner, Rate
from dvfl.parties.numerics.randomness import bits
from dvfl.parties.objectives.objective import Supervision
from dvfl.simulation.training_rows import GatheredTables, LabelledRows
from dvfl.strategies.fedvs.code import Coding
from dvfl.strategies.fedvs.lagrange import Code
from dvfl.strategies.fedvs.polynomials import PolynomialNet
from dvfl.strategies.fedvs.quantisation import dequantise, quantise
from dvfl.strategies.split.split_model import EncoderGroup

_VALUES_AT_ONCE = 1 << 16  # of one temporary tensor while tables are shared


class Clients:
    """All clients of all replicas; guests of equal shape are one stack."""

    def __init__(
        self,
        coding: Coding,
        groups: Sequence[EncoderGroup],
        own: Sequence[GatheredTables],  # the guests' own columns
        columns: Sequence[Sequence[Tensor]],  # the same to be shared, each guest's: one for all replicas, or one each
        seeds: Sequence[int],
        device: torch.device,
    ) -> None:
        agreement, self._replicas = coding.agreement, slice(0, len(seeds))
        self._coding, self._groups, self._own = coding, groups, own
        self._held, self._keys, self._scales, self._longest = [], [], [], []
        for group in groups:
            # Masks cancel out to the last bit, so replicas that share their data may share these shares too.
            shares = [
                [
                    shared(coding, one, bits(seed, "columns", guest), device)
                    for one, seed in zip(columns[guest], seeds, strict=False)
                ]
                for guest in group.members
            ]
            held = [
                own[0][client] if len(own) == 1 else torch.stack([share[client] for share in own])
                for client in range(agreement.guests)
                for own in shares
            ]
            self._held.append(GatheredTables(held, len(seeds), device))
            keys = [
                [[bits(seed, "weights", guest, mask) for guest in group.members] for seed in seeds]
                for mask in range(agreement.colluders)
            ]
            self._keys.append(torch.tensor(keys, device=device))  # (masks, replicas, members)
            scale = _net(group).scale(agreement.data_bits, agreement.weight_bits)
            self._scales.append(scale.to(device))
            self._longest.append(min(coding.longest_units[guest] for guest in group.members))
        self.shortened = torch.zeros(len(seeds), dtype=torch.int64, device=device)  # units, counted in every round

    def part(self, replicas: slice) -> "Clients":
        """Those of some replicas, in the same memory."""
        part = copy.copy(self)
        part._replicas = replicas
        part._groups = [group.part(replicas) for group in self._groups]
        part._keys = [keys[:, replicas] for keys in self._keys]
        part.shortened = self.shortened[replicas]
        return part

    def share_weights(self, number: int | Tensor) -> list[Tensor]:
        """What clients hold of every guest's weights: (replicas x clients x members, size) a group.

        Every guest rounds its weights and shares them with masks of its own for the sharing of that number.
        """
        shares = []
        for group, keys, scale, longest in zip(self._groups, self._keys, self._scales, self._longest, strict=True):
            weights, shortened = _net(group).limited(group.learner.parameters, longest)
            self.shortened += shortened.view(-1, len(group.members)).sum(1)
            secret = quantise(weights, scale, self._coding.field).view(*keys.shape[1:], -1)
            masks = self._coding.field.uniform(keys + number, scale.numel())
            shares.append(self._coding.code.encode_same(secret, masks, axis=1).flatten(0, 2))
        return shares

    def held(self, rows: Tensor) -> list[Tensor]:
        """What clients hold of rows (all replicas, rows) of the first segment and of those coded with them."""
        return [
            table.take(rows, _elements(self._replicas, self._coding.agreement.guests * len(group.members)))
            for table, group in zip(self._held, self._groups, strict=True)
        ]

    def answer(self, weights: Sequence[Tensor], rows: Sequence[Tensor]) -> Tensor:
        """What clients send: the sum of all guests' networks at their shares, (replicas, clients, rows, latent)."""
        field, sums = self._coding.field, []
        for group, own_weights, own_rows in zip(self._groups, weights, rows, strict=True):
            outputs = _net(group).evaluate(field, own_weights, own_rows)
            sums += outputs.unflatten(0, (-1, self._coding.agreement.guests, len(group.members))).unbind(2)
        total: Tensor = reduce(field.add, sums)
        return total

    def learn(self, rows: Tensor, dy: Tensor, rate: Rate, told: Tensor | None) -> None:
        """One step of every guest that was `told` (replicas, guests) the gradient of the sum, on its own columns.

        A sum passes its gradient on to every term.
        """
        for own, group in zip(self._own, self._groups, strict=True):
            learner, members = group.learner, len(group.members)
            tape = group.net.forward(learner.parameters, own.take(rows, group.elements(self._replicas)))
            each = dy[:, None].expand(-1, members, -1, -1).flatten(0, 1)
            group.net.backward(learner.parameters, tape, each, learner.gradient, to_input=False)
            learner.update(group.rates(rate), None if told is None else group.of(told).flatten())


class Server:
    """The servers of all replicas: each has the labels and a head, and decodes sums. It gets nothing else."""

    def __init__(
        self, code: Code, scale: float, supervision: Supervision, learner: Learner, labels: LabelledRows
    ) -> None:
        self._code, self._scale = code, scale
        self._supervision, self._learner, self._labels = supervision, learner, labels

    def part(self, replicas: slice) -> "Server":
        """Those of some replicas, in the same memory."""
        part = copy.copy(self)
        part._learner = self._learner.part(replicas)
        return part

    def decode(self, results: Tensor, decoding: Tensor) -> Tensor:
        """The sums of the guests' outputs for all rows, (replicas, rows, latent), segment by segment.

        `results` are (replicas, clients, coded rows, latent); `decoding` says what each adds to each segment,
        (replicas, segments, clients), zeros where none arrived.
        """
        whole = self._code.field.matmul(decoding, results.flatten(2))
        sums: Tensor = dequantise(whole, self._scale, self._code.field).unflatten(2, results.shape[2:])
        return sums.flatten(1, 2).to(torch.float32)

    def learn(self, x: Tensor, rows: Tensor, keep: Tensor | None) -> tuple[Tensor, Tensor]:
        """The head's losses on sums `x` for labelled rows, and the gradient of the sums; `keep`: factors of dropout."""
        learned = self._supervision.learn(
            self._learner.parameters,
            x if keep is None else x * keep,
            self._labels.labels_of(rows),
            self._learner.gradient,
            to_input=True,
        )
        assert learned.dx is not None
        return learned.loss, learned.dx if keep is None else learned.dx.mul_(keep)

    def update(self, rate: Rate, alive: Tensor | None) -> None:
        """One step of the heads that `alive` (replicas,) marks."""
        self._learner.update(rate, alive)

    def predict(self, x: Tensor) -> Tensor:
        """The head's outputs for sums."""
        return self._supervision.head.forward(self._learner.parameters, x)[-1]

    def score(self, x: Tensor, rows: Tensor) -> Tensor:
        """How good the outputs for sums are, the higher the better: (replicas,)."""
        return self._supervision.score(self.predict(x), self._labels.labels_of(rows))


def shared(coding: Coding, columns: Tensor, key: int, device: torch.device) -> Tensor:
    """Every client's share of a guest's columns (rows, columns): (clients, rows / segments, columns).

    Rows that do not fill the segments are left out.
    """
    code, field = coding.code, coding.field
    rows, width = len(columns) // code.secrets, columns.shape[1]
    segments = columns[: rows * code.secrets].view(code.secrets, rows, width)
    shares = torch.empty(code.clients, rows, width, dtype=field.storage, device=device)
    at_once = max(1, _VALUES_AT_ONCE // width)
    for start in range(0, rows, at_once):
        secrets = coding.elements(segments[:, start : start + at_once].to(device))
        keys = torch.tensor([[key + start * code.masks + mask] for mask in range(code.masks)], device=device)
        masks = field.uniform(keys[:, 0], secrets[0].numel()).view(code.masks, *secrets.shape[1:])
        shares[:, start : start + at_once] = code.encode(secrets, masks)
    return shares


def _net(group: EncoderGroup) -> PolynomialNet:
    assert isinstance(group.net, PolynomialNet)
    return group.net


def _elements(replicas: slice, each: int) -> slice:
    """Where some replicas lie in a stack."""
    return slice(replicas.start * each, replicas.stop * each)
