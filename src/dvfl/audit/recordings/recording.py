"""What parties of a trained federation saw of each other, for some rows: all that an attack may look at."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dvfl.errors import UserError
from dvfl.parties.numerics.randomness import numpy_generator


@dataclass(frozen=True)
class Rows:
    """How many recorded rows serve for what; they lie in this order."""

    pool: int  # trained on; an attacker may come to know some of them
    victims: int  # trained on; no attacker ever knows them
    tests: int  # not trained on

    @property
    def trained(self) -> int:
        return self.pool + self.victims

    @property
    def count(self) -> int:
        return self.trained + self.tests

    @property
    def victim(self) -> slice:
        return slice(self.pool, self.trained)

    @property
    def test(self) -> slice:
        return slice(self.trained, self.count)


@dataclass(frozen=True)
class GuestRecording:
    """One guest: its columns, what it sent of them, what it was sent back."""

    name: str
    x: Tensor  # (rows, columns), as its encoder reads them
    z: Tensor  # (replicas, rows, latent): encodings as they left the guest
    gradients: Tensor | None = None  # (moments in training, replicas, trained rows, latent), where any are sent back
    own: Tensor | None = None  # before anything was done to them, as the guest alone has them; None: as they left
    earlier: Tensor | None = (
        None  # (replicas, rows, some): what it sent of the same rows before; with noise, means of it
    )


@dataclass(frozen=True)
class Recording:
    """All guests of all replicas, the labels, and what the label holder's model says."""

    strategy: str
    seeds: tuple[int, ...]  # one a replica
    rows: Rows
    guests: tuple[GuestRecording, ...]
    y: Tensor  # (rows,): class numbers; of labels that are numbers, 1 above their median
    outputs: Tensor  # (replicas, rows, classes): scores before the softmax; (.., 1) where labels are numbers
    numbers: Tensor | None = None  # (rows,): the labels themselves, where they are numbers

    @property
    def classes(self) -> int:
        return 2 if self.numbers is not None else self.outputs.shape[2]

    @property
    def device(self) -> torch.device:
        return self.outputs.device

    def known(self, count: int, purpose: str) -> Tensor:
        """Numbers of `count` rows of the pool that each replica's attacker knows, drawn by its seed: (replicas, count).

        The first of them are those of a smaller count.
        """
        if not 1 <= count <= self.rows.pool:
            raise UserError(f"{count:,} known rows: from 1 to {self.rows.pool:,}, the rows that can be known, is right")
        orders = (numpy_generator(seed, "known", purpose).permutation(self.rows.pool)[:count] for seed in self.seeds)
        return torch.stack([torch.from_numpy(order) for order in orders]).to(self.device)

    def known_of_each_class(self, count: int, purpose: str) -> Tensor:
        """Likewise `count` rows of every class, as near as the pool has them: (replicas, classes x count).

        A class with fewer is filled up with its own rows again.
        """
        drawn = []
        own = [(self.y[: self.rows.pool] == label).nonzero().flatten().cpu() for label in range(self.classes)]
        if any(len(one) == 0 for one in own):
            raise UserError(f"a class has no row among the {self.rows.pool:,} that can be known; more rows are right")
        for seed in self.seeds:
            draw = numpy_generator(seed, "known of each class", purpose)
            chosen = [one[torch.from_numpy(draw.permutation(len(one)))] for one in own]
            drawn.append(torch.cat([one.repeat(-(-count // len(one)))[:count] for one in chosen]))
        return torch.stack(drawn).to(self.device)

    def with_encodings(self, z: Iterable[Tensor]) -> "Recording":
        """The same rows with other encodings in their place, and no gradients: what controls are measured on."""
        pairs = zip(self.guests, z, strict=True)
        return replace(self, guests=tuple(replace(guest, z=z, own=None, gradients=None) for guest, z in pairs))

    def raw(self) -> "Recording":
        """As if guests sent their columns as they are."""
        return self.with_encodings(guest.x.expand(len(self.seeds), -1, -1) for guest in self.guests)

    def with_earlier(self) -> "Recording | None":
        """What an attacker sees that puts releases of a row side by side; None where there was one alone."""
        if any(guest.earlier is None for guest in self.guests):
            return None
        return self.with_encodings(
            torch.cat([guest.z, guest.earlier], 2) for guest in self.guests if guest.earlier is not None
        )

    def joint(self) -> Tensor:
        """All guests' encodings side by side, as a host reads them: (replicas, rows, W_g)."""
        return torch.cat([guest.z for guest in self.guests], 2)


def at(values: Tensor, rows: Tensor) -> Tensor:
    """Rows (replicas, some) of values (rows, ..) that replicas share, or of values (replicas, rows, width)."""
    if values.dim() == 3:
        return values.gather(1, rows[..., None].expand(-1, -1, values.shape[2]))
    return values[rows]
