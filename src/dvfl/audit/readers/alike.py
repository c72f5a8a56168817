"""Guessing guests' columns: guests of equal shape are attacked together, as one stack of replicas x guests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from dvfl.audit.readers.readers import Effort, network, ridge
from dvfl.audit.recordings.measured import r2
from dvfl.audit.recordings.recording import Recording, Rows, at


@dataclass(frozen=True)
class Alike:
    """Some guests of a recording in all its replicas; the guests of a replica lie side by side."""

    members: tuple[int, ...]  # numbers of the guests, from 0
    rows: Rows
    seeds: tuple[int, ...]  # of each element of the stack
    x: Tensor  # (guests, rows, columns)
    z: Tensor  # (stack, rows, seen): encodings, or what else is recorded in their place

    def known(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Encodings and columns of rows (replicas, some): (stack, some, width) each."""
        return self.at(self.z, rows), self.x[:, rows].transpose(0, 1).flatten(0, 1)

    def at(self, values: Tensor, rows: Tensor) -> Tensor:
        """Rows (replicas, some) of values (stack, rows, width)."""
        return at(values, rows.repeat_interleave(len(self.members), 0))

    def stacked(self, each: Sequence[Tensor]) -> Tensor:
        """Values (replicas, rows, width) of every guest of the recording, those of this group: (stack, rows, width).

        Narrower ones get columns of zeros.
        """
        own = [each[number] for number in self.members]
        width = max(values.shape[2] for values in own)
        return torch.stack([pad(values, (0, width - values.shape[2])) for values in own], 1).flatten(0, 1)

    @property
    def victims(self) -> Tensor:
        """What is seen of the victims: (stack, victims, seen)."""
        return self.z[:, self.rows.victim]

    def each(self, values: Tensor) -> Tensor:
        """What guests have, (guests, ..), for every element: (stack, ..)."""
        return values.repeat(len(self.seeds) // len(self.members), *(1,) * (values.dim() - 1))


# Known rows (replicas, some) of a group to the victims' columns, (stack, victims, columns).
Guess = Callable[[Alike, Tensor], Tensor]


def alike(seen: Recording) -> list[Alike]:
    """The guests of each shape."""
    shapes: dict[tuple[int, int], list[int]] = {}
    for number, guest in enumerate(seen.guests):
        shapes.setdefault((guest.x.shape[1], guest.z.shape[2]), []).append(number)
    groups = []
    for members in shapes.values():
        guests = [seen.guests[number] for number in members]
        seeds = tuple(seed for seed in seen.seeds for _ in members)
        z = torch.stack([guest.z for guest in guests], 1).flatten(0, 1)
        x = torch.stack([guest.x for guest in guests])
        groups.append(Alike(tuple(members), seen.rows, seeds, x, z))
    return groups


def explained(seen: Recording, known: Tensor, guess: Guess) -> tuple[float, ...]:
    """R2 of guesses at the victims' columns from known rows (replicas, some): of each seed, the mean over guests."""
    shares = []
    for group in alike(seen):
        truth = group.each(group.x[:, group.rows.victim])
        shares.append(r2(truth, guess(group, known)).view(-1, len(group.members)))
    return tuple(torch.cat(shares, 1).mean(1).tolist())


def by_ridge(group: Alike, known: Tensor) -> Tensor:
    """A linear map from known pairs."""
    return ridge(*group.known(known))(group.victims)


def by_network(effort: Effort) -> Guess:
    """A network from known pairs."""

    def guess(group: Alike, known: Tensor) -> Tensor:
        return network(*group.known(known), effort, group.seeds)(group.victims)

    return guess


def by_nothing(group: Alike, known: Tensor) -> Tensor:
    """The mean of the known rows."""
    return group.known(known)[1].mean(1, keepdim=True)
