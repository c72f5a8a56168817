"""VAFL: guests act one at a time, and the host keeps every row's last encoding of every guest.

Chen et al., "VAFL: a method of vertical asynchronous federated learning" (2020). A guest that is ready sends the
encodings of a batch of its choice; the host combines them with what it last heard of the same rows from the others,
updates its head, and sends that guest alone its gradient. There, guests choose rows at random, so what the host holds
of the others may be old; encodings are perturbed for privacy.

The DVFL paper's variant, simulated here, is a skyline: all guests go through the same batches in one fixed order, so
what the host holds is at most an epoch old; nothing is perturbed. A lost forward message leaves the host's table as it
was and nobody learns; a lost gradient leaves the guest as it was. Rows that were never heard of are zeros.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.simulation.rounds import Round
from dvfl.strategies.split.split_training import EndToEnd, Masks
from dvfl.strategies.split.splitnn import Requests, both


class Vafl:
    """One activation a guest in every round."""

    summed = False
    apart = True  # guests take turns
    repeated: NDArray[np.int64] | None = None

    def open(self, training: EndToEnd) -> None:
        self._training, self._requests = training, Requests(training)
        model, rows = training.model, training.rows.entries
        # What the host holds of every row: (replicas x rows, latent) a guest.
        self._tables = [torch.zeros(model.replicas * rows, latent, device=model.device) for latent in model.latents]
        self._first_row = (torch.arange(model.replicas, device=model.device) * rows)[:, None]

    @property
    def stalled(self) -> list[int | None]:
        """Nobody waits for anybody."""
        return [None] * self._requests.shape[0]

    def masks(self, start: int, count: int) -> Masks:
        """Whether each guest's turn was `heard`, so that the host learned, and `told`: (rounds, replicas, guests)."""
        if not self._requests:
            return {}
        replicas, guests = self._requests.shape
        heard, told = (np.zeros((count, replicas, guests), bool) for _ in range(2))
        for number in range(count):
            for guest in range(guests):
                asked = np.zeros((replicas, guests), bool)
                asked[:, guest] = True
                reached = self._requests.reach(start + number, asked)
                up = self._requests.host_up(start + number, np.ones(replicas, bool))
                heard[number] |= reached & up[:, None]
                told[number] |= self._requests.reach(start + number, reached & up[:, None])
        return {"heard": heard, "told": told}

    def check(self, going: NDArray[np.bool_]) -> None:
        self._requests.check(going, needs_all=False)

    def part(self, replicas: slice) -> Callable[[Round], Tensor]:
        run, masked = self._training, self._training.masked
        model, feed, part = run.model, run.feed, run.model.part(replicas)
        alive = run.alive(replicas)
        ends = np.cumsum(model.latents).tolist()
        columns = [slice(end - latent, end) for end, latent in zip(ends, model.latents, strict=True)]

        def body(t: Round) -> Tensor:
            rows = run.rows.at(feed, t)
            mine = rows[replicas]
            y, places = run.rows.labels_of(mine, replicas), (mine + self._first_row[replicas]).flatten()
            held = [table.index_select(0, places).view(*mine.shape, -1) for table in self._tables]
            keep = run.keep(t, replicas)
            losses = torch.zeros(len(mine), device=model.device)
            for guest in range(len(model.groups)):
                code = part.encode(guest, run.inputs(guest, rows, t, replicas))[:, 0]
                heard, told = (
                    both(feed.at(name, t)[replicas, guest] if masked else None, alive) for name in ("heard", "told")
                )
                held[guest] = code if heard is None else torch.where(heard[:, None, None], code, held[guest])
                x = torch.cat(held, -1)
                loss, dx = part.learn(x, y, keep)
                losses += loss if heard is None else loss * heard
                part.update_host(run.rate("host rate", t, replicas), heard)
                dy = dx[..., columns[guest]]
                dy = dy if run.defence is None else run.defence.sent_to(guest, dy, t, replicas)
                mask = None if told is None else told[:, None]
                part.update_guests(guest, dy[:, None].contiguous(), run.rate("guest rate", t, replicas), mask)
            for table, code in zip(self._tables, held, strict=True):
                table.index_copy_(0, places, code.flatten(0, 1))
            return losses / len(model.groups)

        return body

    def state(self) -> dict[str, Tensor]:
        tables = {f"table.{guest}": table for guest, table in enumerate(self._tables)}
        return {**{f"requests.{key}": value for key, value in self._requests.state().items()}, **tables}

    def restore(self, state: dict[str, Tensor]) -> None:
        prefix = "requests."
        self._requests.restore({key.removeprefix(prefix): v for key, v in state.items() if key.startswith(prefix)})
        for guest, table in enumerate(self._tables):
            table.copy_(state[f"table.{guest}"])
