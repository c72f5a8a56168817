"""All parties of all replicas of a federation, stacked: what a simulation trains, and what predicts afterwards."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.absence import Absence
from dvfl.parties.guest import FittedGuest, FitTransform, Guest
from dvfl.parties.host import ConcatenatingHost, Host
from dvfl.parties.networks.modules import ModuleNet
from dvfl.parties.networks.sizes import Sizes, sizes
from dvfl.parties.numerics.learner import Learner
from dvfl.parties.numerics.randomness import torch_generator
from dvfl.parties.objectives.objective import temperature_of
from dvfl.parties.owner import Owner
from dvfl.parties.party_networks import guest_objective, host_objective, own_objective, owner_supervision
from dvfl.release.flattening import Flattening
from dvfl.release.release import Sent, released
from dvfl.settings.training import Settings
from dvfl.simulation.cpu_threads import suited
from dvfl.simulation.wrong_encodings import WrongEncodings

# What a user may give a guest in place of the paper's encoder; of fitted models also one for each replica.
Encoder = nn.Module | FitTransform | tuple[FitTransform, ...]

_ELEMENTS_AT_ONCE = 1 << 25  # of one intermediate tensor while encoding whole tables
_FLATTENED_BY = 20_000  # rows, at most, that tell how strong each direction of an encoding is


@dataclass(frozen=True)
class Shape:
    """What must be known to build the parties: enough to make them again before their parameters are loaded."""

    columns: tuple[int, ...]  # of each guest
    unit: tuple[bool, ...]  # whether each guest's values lie in [0, 1]
    rule: str  # of dvfl.parties.networks.sizes
    classes: int  # 0 for a regression

    @property
    def outputs(self) -> int:
        return max(1, self.classes)


@dataclass(frozen=True)
class GuestGroup:
    """Guests of equal shape, trained as one stack of replicas x members."""

    members: tuple[int, ...]  # numbers of the guests, from 0
    guest: Guest | FittedGuest
    latent: int

    def of(self, values: Tensor, axis: int) -> Tensor:
        """The members' part of values that have one entry a guest along an axis."""
        if len(self.members) == values.shape[axis]:
            return values
        return torch.stack([values.select(axis, guest) for guest in self.members], axis)

    def encode(self, tables: Sequence[Tensor], replicas: int) -> Tensor:
        """Encodings (replicas, members, rows, latent) of the members' tables, (rows, columns) each.

        A table may be (replicas, rows, columns) where each replica has its own.
        """
        if isinstance(self.guest, FittedGuest):
            return self.guest.encode(tables[0]).unsqueeze(-3).expand(replicas, 1, -1, -1)
        x = torch.stack(list(tables), -3).expand(replicas, -1, -1, -1).flatten(0, 1)
        codes = self.guest.encode(x)
        return codes.view(replicas, len(self.members), *codes.shape[1:])


def shape(data: VerticalData) -> Shape:
    """What the parties' models depend on."""
    columns, unit = (tuple(getattr(guest, field) for guest in data.guests) for field in ("columns", "unit"))
    return Shape(columns, unit, data.sizes, len(data.classes or ()))


class Stack:
    """Guests, hosts and owner of `len(seeds)` replicas."""

    def __init__(
        self,
        shape: Shape,
        settings: Settings,
        seeds: Sequence[int],
        device: torch.device,
        encoders: Sequence[Encoder | None] | None = None,
    ) -> None:
        self.shape, self.settings, self.seeds, self.device = shape, settings, tuple(seeds), device
        self.sizes = sizes(shape.rule, shape.columns, settings.w_g, settings.w_h, settings.guest_hidden)
        given = list(encoders) if encoders is not None else [None] * len(shape.columns)
        if len(given) != len(shape.columns):
            raise UserError(
                f"{len(given)} encoders for {len(shape.columns)} guests; one each (None for the default) is right"
            )
        self.groups = [self._group(members, given[members[0]]) for members in alike(shape, self.sizes, given)]
        self.latents = tuple(
            next(group.latent for group in self.groups if guest in group.members) for guest in range(len(given))
        )
        self.flattenings = [
            Flattening.identity(len(self.seeds), len(group.members), group.latent, device=device)
            for group in self.groups
            if settings.flatten
        ]
        self.host = self._host(all(model is None for model in given))
        self.owner = self._owner()
        width = sum(self.owner_widths)
        self.centre = torch.zeros(len(self.seeds), 1, width, device=device)  # of the owner's standardisation
        self.spread = torch.ones(len(self.seeds), 1, width, device=device)
        self.target_centre, self.target_spread = 0.0, 1.0  # of a regression's labels

    @property
    def replicas(self) -> int:
        return len(self.seeds)

    @property
    def joint(self) -> int:
        """W_g: the width of all guests' encodings together."""
        return sum(self.latents)

    @property
    def owner_widths(self) -> tuple[int, ...]:
        """Widths of what each of the owner's senders sends: the hosts, or the guests where there is no host."""
        if self.settings.hosts == 0:
            return self.latents
        return (
            (self.joint if self.settings.host_model == "concatenate" else self.sizes.host_latent),
        ) * self.settings.hosts

    @property
    def learners(self) -> list[Learner]:
        """Everything that is trained: each group of guests, the hosts, the owners."""
        guests = [group.guest.learner for group in self.groups if isinstance(group.guest, Guest)]
        hosts = [self.host.learner] if isinstance(self.host, Host) else []
        return [*guests, *hosts, self.owner.learner]

    def suited(self, rows: int) -> AbstractContextManager[None]:
        """The machine's settings for work on so many rows at once."""
        return suited(self.device, rows * max(learner.parameters.numel() for learner in self.learners))

    def join(self, pieces: Sequence[Tensor]) -> Tensor:
        """Each group's encodings (stack, members, batch, latent) in the guests' order: (stack, batch, W_g)."""
        return joined(pieces, [group.members for group in self.groups], self.latents)

    def encode_guests(self, tables: Sequence[Tensor], origin: Sent | None = None) -> Tensor:
        """All guests' encodings of aligned tables as they leave the guests: (replicas, rows, W_g)."""
        return self.join(self.released(self._encode_groups(tables), origin))

    def bare(self, tables: Sequence[Tensor]) -> Tensor:
        """The same before anything is done to them, as guests alone have them."""
        return self.join(self._encode_groups(tables))

    def released(self, pieces: list[Tensor], origin: Sent | None, first: int = 0) -> list[Tensor]:
        """Each group's encodings (replicas, members, rows, latent), from row `first` of `origin` on, as they are sent.

        The same where nothing is done to them; else flat, clipped, with the noise of each row of each seed's guests.
        """
        clip, noise = self.settings.clip, self.settings.noise
        if self.flattenings:
            pieces = [flat(piece) for flat, piece in zip(self.flattenings, pieces, strict=True)]
        if clip is None:
            return pieces
        if origin is None:
            raise ValueError("encodings that are clipped need an Origin: a row is always sent with the same noise")
        rows, sent = pieces[0].shape[2], []
        for group, piece in zip(self.groups, pieces, strict=True):
            drawn = torch.zeros_like(piece, memory_format=torch.contiguous_format)
            for replica, seed in enumerate(self.seeds if noise else ()):
                for number, guest in enumerate(group.members):
                    drawn[replica, number] = origin.drawn(first, rows, group.latent, self.device, seed, guest)
            sent.append(released(piece, clip, noise, drawn))
        return sent

    @torch.no_grad()
    def fit_flattenings(self, tables: Sequence[Tensor]) -> None:
        """To what trained encoders make of guests' training rows, where encodings are to be flat."""
        if not self.flattenings:
            return
        for flat, group in zip(self.flattenings, self.groups, strict=True):
            count = min(tables[guest].shape[-2] for guest in group.members)
            some = slice(0, count, -(-count // _FLATTENED_BY))  # not the first ones: tables may be sorted
            rows = [tables[guest][..., some, :].to(self.device) for guest in group.members]
            flat.become(Flattening.of(group.encode(rows, self.replicas)))

    def _encode_groups(self, tables: Sequence[Tensor]) -> list[Tensor]:
        return [group.encode([tables[i] for i in group.members], self.replicas) for group in self.groups]

    def encode_hosts(self, b: Tensor, present: Tensor | None = None) -> Tensor:
        """What the owner receives for the guests' encodings `b`: (replicas, rows, all senders).

        `present` (replicas, rows, guests) says who has a row. Hosts that have learned put their absent values in place
        of the others; where there are none, what they would have sent is no number.
        """
        if present is not None and not isinstance(self.host, Host):
            columns = Absence(self.latents, self.device).columns(present)
            b, present = b.masked_fill(~columns, torch.nan), None
        if self.host is None:
            return b
        hosts = self.settings.hosts
        x, seen = (
            None if one is None else one[:, None].expand(-1, hosts, -1, -1).flatten(0, 1) for one in (b, present)
        )
        assert x is not None
        encoded: Tensor = self.host.encode(x, seen).unflatten(0, (-1, hosts))
        return encoded.transpose(1, 2).flatten(2)

    @torch.no_grad()
    def encode(
        self,
        tables: Sequence[NDArray[np.float32]] | Sequence[Tensor],
        wrong: Sequence[WrongEncodings] | None = None,
        present: Tensor | None = None,
        origin: Sent | None = None,
    ) -> Tensor:
        """The joint encoding (replicas, rows, all senders) of aligned tables, (rows, columns) a guest.

        A table may be (replicas, rows, columns) where each replica has its own.
        `wrong` names the guests of each group that send something else.
        `present` (rows, guests), or (replicas, rows, guests), says who has which row, as `encode_hosts` reads it.
        `origin` says which rows these are; needed where encodings are clipped.
        """
        given = [torch.as_tensor(table).to(self.device) for table in tables]
        rows, widest = given[0].shape[-2], max(self.joint * max(1, self.settings.hosts), *self.shape.columns)
        at_once = max(64, _ELEMENTS_AT_ONCE // (self.replicas * widest))
        joint = torch.empty(self.replicas, rows, sum(self.owner_widths), device=self.device)
        with self.suited(min(rows, at_once)):
            for start in range(0, rows, at_once):
                part = [table[..., start : start + at_once, :] for table in given]
                pieces = self._encode_groups(part)
                if wrong is not None:
                    pieces = [by.spoiled_table(piece, start) for by, piece in zip(wrong, pieces, strict=True)]
                pieces = self.released(pieces, origin, start)
                seen = None
                if present is not None:
                    seen = present[..., start : start + at_once, :].to(self.device).expand(self.replicas, -1, -1)
                joint[:, start : start + at_once] = self.encode_hosts(self.join(pieces), seen)
        return joint

    @torch.no_grad()
    def predict(self, joint: Tensor, *, gaps: bool = False, hosts: Collection[int] | None = None) -> Tensor:
        """The owner's output for joint encodings as `encode` gives them: (replicas, rows, outputs).

        Class scores before the softmax, or the predicted number in the labels' own unit. With `gaps`, what is no number
        there is as good as its mean in training. `hosts`: numbers of those that answer, where not all do.
        """
        there = None
        if hosts is not None:
            marks = [host in hosts for host in range(self.settings.hosts)]
            there = torch.tensor(marks, device=self.device).expand(self.replicas, 1, -1)
        at_once = max(64, _ELEMENTS_AT_ONCE // (self.replicas * joint.shape[2]))
        parts = [(part - self.centre) / self.spread for part in joint.split(at_once, 1)]
        if gaps:
            parts = [part.masked_fill(part.isnan(), 0.0) for part in parts]
        with self.suited(min(joint.shape[1], at_once)):
            outputs = torch.cat([self.owner.predict(part, there) for part in parts], 1)
        return outputs * self.target_spread + self.target_centre

    def _group(self, members: tuple[int, ...], given: Encoder | None) -> GuestGroup:
        first = members[0]
        columns, unit = self.shape.columns[first], self.shape.unit[first]
        if given is not None and not isinstance(given, nn.Module):
            models = given if isinstance(given, tuple) else (given,)
            if len(models) not in (1, len(self.seeds)):
                raise ValueError(f"{len(models)} models of guest {first + 1}; one, or {len(self.seeds)}, is right")
            latent = _probe(models[0], columns)
            return GuestGroup(members, FittedGuest(models, latent), latent)
        s = self.settings
        temperature = temperature_of(s.guest_objective, s.temperature)
        if isinstance(given, nn.Module):
            net = ModuleNet(given, columns)
            objective = own_objective(net, unit=unit, temperature=temperature, adversary=s.adversary)
        else:
            objective = guest_objective(
                self.sizes, first, columns, unit=unit, temperature=temperature, adversary=s.adversary
            )
        parameters = torch.stack(
            [objective.init(torch_generator(seed, "guest", guest)) for seed in self.seeds for guest in members]
        )
        return GuestGroup(
            members,
            Guest(objective, parameters.to(self.device), s.guest_rule),
            objective.encoder.out_width,
        )

    def _host(self, known_encoders: bool) -> Host | ConcatenatingHost | None:
        if self.settings.hosts == 0:
            return None
        if self.settings.host_model == "concatenate":
            return ConcatenatingHost(self.latents, self.device)
        objective = host_objective(
            self.sizes,
            self.joint,
            known_encoders=known_encoders,
            temperature=temperature_of(self.settings.host_objective, self.settings.temperature),
        )
        parameters = torch.stack(
            [
                Host.init(objective, self.latents, torch_generator(seed, "host", host))
                for seed in self.seeds
                for host in range(self.settings.hosts)
            ]
        )
        return Host(objective, self.latents, parameters.to(self.device), self.settings.host_rule)

    def _owner(self) -> Owner:
        s = self.settings
        inputs = sum(self.owner_widths)
        supervision = owner_supervision(self.sizes, s.hosts, inputs, self.shape.classes, s.head, s.smoothing)
        parameters = torch.stack(
            [Owner.init(supervision, self.owner_widths, torch_generator(seed, "owner")) for seed in self.seeds]
        )
        return Owner(supervision, self.owner_widths, parameters.to(self.device), s.owner_rule)


def joined(pieces: Sequence[Tensor], members: Sequence[tuple[int, ...]], latents: Sequence[int]) -> Tensor:
    """Each group's encodings (stack, members, batch, latent) in the guests' order: (stack, batch, W_g)."""
    stack, _, batch, _ = pieces[0].shape
    exact = torch.float64 if pieces[0].dtype == torch.float64 else torch.float32
    joint = torch.empty(stack, batch, sum(latents), dtype=exact, device=pieces[0].device)
    if len(pieces) == 1:
        joint.view(stack, batch, len(latents), -1).copy_(pieces[0].transpose(1, 2))
        return joint
    ends = np.cumsum(latents).tolist()
    for group, piece in zip(members, pieces, strict=True):
        for number, guest in enumerate(group):
            joint[..., ends[guest] - latents[guest] : ends[guest]] = piece[:, number]
    return joint


def parted(joint: Tensor, members: Sequence[tuple[int, ...]], latents: Sequence[int]) -> list[Tensor]:
    """The opposite of `joined`: what of (stack, batch, W_g) belongs to each group, (stack, members, batch, latent)."""
    if len(members) == 1:
        return [joint.view(*joint.shape[:2], len(latents), -1).transpose(1, 2).contiguous()]
    ends = np.cumsum(latents).tolist()
    return [
        torch.stack([joint[..., ends[guest] - latents[guest] : ends[guest]] for guest in group], 1) for group in members
    ]


def alike(shape: Shape, widths: Sizes, given: Sequence[Encoder | None]) -> list[tuple[int, ...]]:
    """Guests grouped by equal shape; a guest with an encoder of its own is alone in its group."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for guest, model in enumerate(given):
        alike = (shape.columns[guest], shape.unit[guest], widths.guest_hidden[guest], widths.guest_latent[guest])
        groups.setdefault(alike if model is None else (guest,), []).append(guest)
    return [tuple(members) for members in groups.values()]


def _probe(model: FitTransform, columns: int) -> int:
    """The width of what a fitted model gives."""
    return int(np.asarray(model.transform(np.zeros((1, columns), np.float32))).shape[1])
