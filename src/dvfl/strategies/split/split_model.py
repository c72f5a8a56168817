"""A network split over parties: encoders at the guests, a head at the host that has the labels; stacked."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dvfl.errors import UserError
from dvfl.parties.networks.mlp import Mlp
from dvfl.parties.networks.modules import Net
from dvfl.parties.networks.sizes import Sizes, between, encoder, leaky, owner_head, sizes
from dvfl.parties.numerics.learner import Learner, Rate
from dvfl.parties.numerics.operations import Activation
from dvfl.parties.numerics.randomness import torch_generator
from dvfl.parties.objectives.objective import CrossEntropy, SquaredError, Supervision
from dvfl.settings.training import SplitSettings
from dvfl.simulation.cpu_threads import suited
from dvfl.simulation.stack import Shape, alike, joined, parted

_ELEMENTS_AT_ONCE = 1 << 25  # of one intermediate tensor while predicting whole tables


@dataclass(frozen=True)
class EncoderGroup:
    """Encoders of equal shape, a stack of replicas x members."""

    members: tuple[int, ...]  # numbers of the guests, from 0
    net: Net
    learner: Learner
    pace: Tensor | None = None  # (replicas, members): their learning rates times this, where they differ

    def of(self, values: Tensor) -> Tensor:
        """The members' part of (replicas, guests)."""
        if len(self.members) == values.shape[1]:
            return values
        return torch.stack([values[:, guest] for guest in self.members], 1)

    def elements(self, replicas: slice) -> slice:
        """Where some replicas lie in the stack."""
        return slice(replicas.start * len(self.members), replicas.stop * len(self.members))

    def rates(self, rate: Rate) -> Rate:
        """The members' own, from one for all replicas or one each."""
        if self.pace is not None:
            return (self.pace * (rate.view(-1, 1) if isinstance(rate, Tensor) else rate)).flatten()
        if isinstance(rate, Tensor) and rate.numel() > 1:
            return rate.repeat_interleave(len(self.members))
        return rate

    def part(self, replicas: slice) -> "EncoderGroup":
        """Those of some replicas, in the same memory."""
        pace = None if self.pace is None else self.pace[replicas]
        return replace(self, learner=self.learner.part(self.elements(replicas)), pace=pace)


# A guest's network: its columns, hidden width, latent width and activations.
Network = Callable[[int, int, int, tuple[Activation, Activation]], Net]


class SplitModel:
    """Guests' encoders are those of DVFL; the host's head is DVFL's host encoder followed by its owner's head for one
    host (the paper's appendix on models)."""

    def __init__(
        self,
        shape: Shape,
        settings: SplitSettings,
        seeds: Sequence[int],
        device: torch.device,
        *,
        summed: bool = False,  # the head reads the sum of the guests' encodings in place of their concatenation
        apart: bool = False,  # every guest is a group of its own
        network: Network = encoder,
        pace: Tensor | None = None,  # (replicas, guests): guests' learning rates times this, where they differ
    ) -> None:
        self.shape, self.device, self.replicas, self.summed = shape, device, len(seeds), summed
        widths = sizes(shape.rule, shape.columns, settings.w_g, settings.w_h)
        self.latents = widths.guest_latent
        if summed and len(set(self.latents)) > 1:
            raise UserError(f"guests' encodings of widths {self.latents} cannot be summed; w_g makes them equal")
        everyone = range(len(shape.columns))
        members = [(guest,) for guest in everyone] if apart else alike(shape, widths, [None] * len(shape.columns))
        self.groups = []
        for group in members:
            first = group[0]
            hidden, latent = widths.guest_hidden[first], widths.guest_latent[first]
            net = network(shape.columns[first], hidden, latent, widths.guest_activations)
            rows = [net.init(torch_generator(seed, "guest", guest)) for seed in seeds for guest in group]
            learner = Learner(torch.stack(rows).to(device), settings.guest_rule)
            own = None if pace is None else pace[:, list(group)].to(device)
            self.groups.append(EncoderGroup(group, net, learner, own))
        self.supervision = self._supervision(widths, settings)
        head = [self.head.init(torch_generator(seed, "host", 0)) for seed in seeds]
        self.host = Learner(torch.stack(head).to(device), settings.host_rule)
        self.target_centre, self.target_spread = 0.0, 1.0  # of a regression's labels

    @property
    def head(self) -> Mlp:
        head = self.supervision.head
        assert isinstance(head, Mlp)
        return head

    @property
    def learners(self) -> list[Learner]:
        return [*(group.learner for group in self.groups), self.host]

    def part(self, replicas: slice) -> "SplitPart":
        """Some replicas, in the same memory."""
        return SplitPart(self, replicas)

    def aggregate(self, pieces: Sequence[Tensor]) -> Tensor:
        """What the head reads, (replicas, batch, inputs), of the groups' (replicas, members, batch, latent)."""
        if self.summed:
            return torch.stack([piece.sum(1) for piece in pieces]).sum(0)
        return joined(pieces, [group.members for group in self.groups], self.latents)

    def disperse(self, dx: Tensor) -> list[Tensor]:
        """The gradients of the groups' encodings, from that of what the head read."""
        if self.summed:
            return [dx[:, None].repeat(1, len(group.members), 1, 1) for group in self.groups]  # each uses its own up
        return parted(dx, [group.members for group in self.groups], self.latents)

    @torch.no_grad()
    def predict(self, tables: Sequence[Tensor], guests: Collection[int] | None = None) -> Tensor:
        """The head's output for aligned tables, (rows, columns) a guest: (replicas, rows, outputs).

        A table may be (replicas, rows, columns) where each replica has its own. `guests`: numbers of those that are
        there, where not all are; the encodings of the others are zero.
        """
        outputs = []
        for pieces in self._encoded(tables):
            for group, piece in zip(self.groups, pieces, strict=True):
                gone = [n for n, guest in enumerate(group.members) if guests is not None and guest not in guests]
                piece[:, gone] = 0.0
            outputs.append(self.head.forward(self.host.parameters, self.aggregate(pieces))[-1])
        return torch.cat(outputs, 1) * self.target_spread + self.target_centre

    @torch.no_grad()
    def encode(self, tables: Sequence[Tensor]) -> list[Tensor]:
        """Each guest's encodings of its table: (replicas, rows, latent)."""
        groups = [torch.cat(pieces, 2) for pieces in zip(*self._encoded(tables), strict=True)]
        place = {
            guest: (number, own) for number, group in enumerate(self.groups) for own, guest in enumerate(group.members)
        }
        return [groups[number][:, own] for number, own in (place[guest] for guest in range(len(tables)))]

    def tensors(self) -> list[tuple[str, dict[str, Tensor]]]:
        """Each party's name and views of its tensors, (replicas, ..)."""
        parties = []
        for group in self.groups:
            for number, guest in enumerate(group.members):
                flat = group.learner.parameters.unflatten(0, (self.replicas, -1))[:, number]
                tensors = {f"encoder.{name}": view for name, view in group.net.named(flat).items()}
                parties.append((f"guest-{guest + 1}", tensors))
        head = {f"head.{name}": view for name, view in self.head.named(self.host.parameters).items()}
        return [*parties, ("host-1", head)]

    def _encoded(self, tables: Sequence[Tensor]) -> Iterator[list[Tensor]]:
        """The groups' encodings (replicas, members, some rows, latent), as many rows at once as fit well."""
        given = [table.to(self.device) for table in tables]
        rows = given[0].shape[-2]
        at_once = max(64, _ELEMENTS_AT_ONCE // (self.replicas * max(sum(self.latents), *self.shape.columns)))
        with suited(self.device, min(rows, at_once) * self.host.parameters.numel()):
            for start in range(0, rows, at_once):
                pieces = []
                for group in self.groups:
                    x = torch.stack([given[guest][..., start : start + at_once, :] for guest in group.members], -3)
                    tape = group.net.forward(
                        group.learner.parameters, x.expand(self.replicas, -1, -1, -1).flatten(0, 1)
                    )
                    pieces.append(tape[-1].unflatten(0, (self.replicas, -1)))
                yield pieces

    def _supervision(self, widths: Sizes, settings: SplitSettings) -> Supervision:
        joint, w_h = sum(self.latents), widths.host_latent
        inputs = self.latents[0] if self.summed else joint  # only the first layer is another (the paper on VFB2)
        own = owner_head(widths, 1, w_h, self.shape.outputs)
        activations = (widths.host_activation, widths.host_activation, *own.activations)
        net = Mlp((inputs, between(joint, w_h), *own.widths), activations)
        if settings.head is not None:
            net = leaky((inputs, *settings.head, self.shape.outputs))
        return CrossEntropy(net, settings.smoothing) if self.shape.classes else SquaredError(net)


class SplitPart:
    """Some replicas of a split model, and the steps that a round is made of."""

    def __init__(self, model: SplitModel, replicas: slice) -> None:
        self._model = model
        self.groups = [group.part(replicas) for group in model.groups]
        self.host = model.host.part(replicas)
        self._tapes: list[list[Tensor]] = [[] for _ in model.groups]

    def encode(self, number: int, x: Tensor) -> Tensor:
        """A group's encodings (replicas, members, batch, latent) of (elements, batch, columns)."""
        group = self.groups[number]
        self._tapes[number] = group.net.forward(group.learner.parameters, x)
        code: Tensor = self._tapes[number][-1].unflatten(0, (-1, len(group.members)))
        return code

    def learn(self, x: Tensor, y: Tensor, keep: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The head's forward and backward pass on its inputs (replicas, batch, inputs): losses, and their gradient.

        `keep`: factors of dropout.
        """
        seen = x if keep is None else x * keep
        learned = self._model.supervision.learn(self.host.parameters, seen, y, self.host.gradient, to_input=True)
        assert learned.dx is not None
        return learned.loss, learned.dx if keep is None else learned.dx.mul_(keep)

    def update_host(self, rate: Rate, alive: Tensor | None) -> None:
        """One step of the heads that `alive` (replicas,) marks."""
        self.host.update(rate, alive)

    def update_guests(self, number: int, dy: Tensor, rate: Rate, alive: Tensor | None) -> None:
        """A group's backward pass from the gradient of its encodings; one step of those `alive` (replicas, members)."""
        group = self.groups[number]
        learner = group.learner
        group.net.backward(learner.parameters, self._tapes[number], dy.flatten(0, 1), learner.gradient, to_input=False)
        learner.update(group.rates(rate), None if alive is None else alive.flatten())


def paces(variants: Sequence[SplitSettings], guests: int) -> Tensor | None:
    """What guests that learn faster make of their rates, (replicas, guests); None where nobody does."""
    if all(one.inflated is None or one.inflation == 1 for one in variants):
        return None
    return torch.tensor([[one.inflation if g == one.inflated else 1.0 for g in range(guests)] for one in variants])
