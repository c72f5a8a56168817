"""SplitNN for vertical data, with a choice of what the host does when a message is lost.

Gupta and Raskar, "Distributed learning of deep neural network over multiple agents" (2018), in the vertical form of
Ceballos et al., "SplitNN-driven vertical partitioning" (2020): guests send the encodings of a batch, the host (which
has the labels) concatenates them, computes the loss, and sends each guest the gradient of its encodings.

Those papers know no faults. The variants are the DVFL paper's: a connection or guest may fail before the forward and
before the backward message of every round; a host fails after it has called on the guests, and computes no gradients.
`wait` stalls at the first lost message; `skip` gives the round up; `zeros` and `buffer` put zeros or the guest's last
batch in the place of what is missing. Ours beyond the paper: `retries` (wait asks again and counts), and `mean`, which
puts the running mean of the guest's encodings there. A round in which nobody was heard has nothing to learn from and
changes nothing; the paper does not say. A guest whose forward message was lost gets no gradient.
"""

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.parties.faults.chains import Chains
from dvfl.simulation.rounds import Round
from dvfl.simulation.stack_faults import cannot_progress, chains
from dvfl.strategies.split.split_training import EndToEnd, Masks

Missing = Literal["wait", "skip", "zeros", "buffer", "mean"]
Bools = NDArray[np.bool_]

_MEAN_RATE = 0.1  # share of the newest batch in the running mean


class Requests:
    """The requests of a split network's rounds: forward from every guest, backward to those that were heard."""

    def __init__(self, training: EndToEnd) -> None:
        seeds, guests = training.seeds, training.guest_names
        links = [f"{guest}>{host}" for host in training.host_names for guest in guests]
        self._seeds = seeds
        self.guests = chains("guest", training.known_faults, seeds, guests)
        self.links = chains("connection", training.known_faults, seeds, links)
        self.host = chains("host", training.known_faults, seeds, training.host_names)
        self.shape = (len(seeds), len(guests))

    def __bool__(self) -> bool:
        return any(one is not None for one in (self.guests, self.links, self.host))

    def reach(self, t: int, asked: Bools) -> Bools:
        """Which of the guests that are asked (replicas, guests) are up with their connection in round `t`."""
        reached = asked
        for one in (self.guests, self.links):
            if one is not None:
                reached = reached & one.request(t, asked)
        return reached

    def host_up(self, t: int, asked: Bools) -> Bools:
        """Whether the host of each replica that asks it (replicas,) is up."""
        return asked if self.host is None else asked & self.host.request(t, asked[:, None])[:, 0]

    def check(self, going: Bools, *, needs_all: bool) -> None:
        """Stops where a replica that is `going` has lost for good all that it needs, or one where it needs them all."""
        for name, one in self._named():
            gone = one.gone()
            lost = gone.any(1) if needs_all else gone.all(1)
            cannot_progress(gone, lost & going, name, self._seeds)

    def state(self) -> dict[str, Tensor]:
        return {f"{name}.{key}": value.clone() for name, one in self._named() for key, value in one.state().items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        for name, one in self._named():
            one.restore({key: state[f"{name}.{key}"] for key in one.state()})

    def _named(self) -> Iterator[tuple[str, Chains]]:
        for name, one in (("guest", self.guests), ("connection", self.links), ("host", self.host)):
            if one is not None:
                yield name, one


class SplitNN:
    """One of the variants."""

    summed = apart = False

    def __init__(self, missing: Missing) -> None:
        self._missing = missing

    def open(self, training: EndToEnd) -> None:
        self._training, self._requests = training, Requests(training)
        replicas = len(training.seeds)
        self._stalled = np.full(replicas, -1, np.int64)
        self._repeated = np.zeros(replicas, np.int64)
        batch, device = training.rows.batch, training.device
        latents = [training.model.latents[group.members[0]] for group in training.model.groups]
        members = [len(group.members) for group in training.model.groups]
        rows = {"buffer": batch, "mean": 1}.get(self._missing, 0)  # what stands in for missing messages
        self._substitutes = [
            torch.zeros(replicas, count, rows, latent, device=device)
            for count, latent in zip(members, latents, strict=True)
        ]

    @property
    def stalled(self) -> list[int | None]:
        return [int(at) if at >= 0 else None for at in self._stalled]

    @property
    def repeated(self) -> NDArray[np.int64] | None:
        return self._repeated if self._missing == "wait" else None

    def masks(self, start: int, count: int) -> Masks:
        """Guests `heard` forward and `told` back (rounds, replicas, guests); hosts that `learn` (rounds, replicas)."""
        if not self._requests:
            return {}
        replicas, guests = self._requests.shape
        heard, told = (np.zeros((count, replicas, guests), bool) for _ in range(2))
        learn = np.zeros((count, replicas), bool)
        for number in range(count):
            t = start + number
            if self._missing == "wait":
                learn[number] = self._waited(t)
                heard[number] = told[number] = learn[number][:, None]
                continue
            heard[number] = self._requests.reach(t, np.ones((replicas, guests), bool))
            enough = heard[number].all(1) if self._missing == "skip" else heard[number].any(1)
            learn[number] = self._requests.host_up(t, np.ones(replicas, bool)) & enough
            told[number] = self._requests.reach(t, heard[number] & learn[number][:, None])
        return {"heard": heard, "told": told, "learn": learn}

    def check(self, going: Bools) -> None:
        """What waits stalls; what skips needs all, the others need somebody."""
        if self._missing != "wait":
            self._requests.check(going, needs_all=self._missing == "skip")

    def part(self, replicas: slice) -> Callable[[Round], Tensor]:
        run, masked = self._training, self._training.masked
        model, feed, part = run.model, run.feed, run.model.part(replicas)
        substitutes = [tensor[replicas] for tensor in self._substitutes]
        alive = run.alive(replicas)  # not stopped early
        guests_alive = None if alive is None else alive[:, None].expand(-1, len(model.latents))

        def body(t: Round) -> Tensor:
            rows = run.rows.at(feed, t)
            heard, told, learn = (feed.at(name, t)[replicas] if masked else None for name in ("heard", "told", "learn"))
            pieces = []
            for number, group in enumerate(model.groups):
                piece = part.encode(number, run.inputs(number, rows, t, replicas))
                if heard is not None:
                    piece = self._complete(piece, group.of(heard)[..., None, None], substitutes[number])
                pieces.append(piece)
            x = model.aggregate(pieces)
            loss, dx = part.learn(x, run.rows.labels_of(rows[replicas], replicas), run.keep(t, replicas))
            learn, told = both(learn, alive), both(told, guests_alive)
            part.update_host(run.rate("host rate", t, replicas), learn)
            dys = model.disperse(dx if run.defence is None else run.defence.sent(dx, t, replicas))
            rate = run.rate("guest rate", t, replicas)
            for number, (group, dy) in enumerate(zip(model.groups, dys, strict=True)):
                part.update_guests(number, dy, rate, None if told is None else group.of(told))
            return loss if learn is None else loss * learn

        return body

    def state(self) -> dict[str, Tensor]:
        substitutes = {f"substitute.{number}": tensor for number, tensor in enumerate(self._substitutes)}
        counts = {"stalled": self._stalled, "repeated": self._repeated}
        requests = {f"requests.{key}": value for key, value in self._requests.state().items()}
        return {**requests, **substitutes, **{name: torch.from_numpy(count.copy()) for name, count in counts.items()}}

    def restore(self, state: dict[str, Tensor]) -> None:
        self._requests.restore({key.removeprefix("requests."): v for key, v in state.items() if "requests." in key})
        for number, tensor in enumerate(self._substitutes):
            tensor.copy_(state[f"substitute.{number}"])
        self._stalled, self._repeated = state["stalled"].numpy().copy(), state["repeated"].numpy().copy()

    def _complete(self, piece: Tensor, there: Tensor, substitute: Tensor) -> Tensor:
        """A group's encodings with something in the place of those that are not `there`."""
        if self._missing == "zeros":
            return piece.masked_fill(~there, 0)
        if self._missing == "buffer":
            substitute.copy_(torch.where(there, piece, substitute))
            return substitute.clone()
        if self._missing == "mean":
            newest = torch.where(there, piece.mean(2, keepdim=True), substitute)
            substitute.lerp_(newest, _MEAN_RATE)
            return torch.where(there, piece, substitute)
        return piece  # wait and skip learn from whole rounds only

    def _waited(self, t: int) -> Bools:
        """Which replicas get through round `t`; the others stall for good once their retries are used up."""
        guests = self._requests.shape[1]
        going = self._stalled < 0
        through = going.copy()
        for way in ("forward", "backward"):
            missing = np.repeat(through[:, None], guests, 1)
            host_missing = through & (way == "forward")
            for attempt in range(self._training.settings.retries + 1):
                if attempt:
                    self._repeated += missing.sum(1) + host_missing
                missing = missing & ~self._requests.reach(t, missing)
                host_missing = host_missing & ~self._requests.host_up(t, host_missing)
                if not (missing.any() or host_missing.any()):
                    break
            through = through & ~missing.any(1) & ~host_missing
        self._stalled[going & ~through] = t
        return through


def both(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Where both masks are true; None is a mask that is true everywhere."""
    if one is None or other is None:
        return other if one is None else one
    return one & other
