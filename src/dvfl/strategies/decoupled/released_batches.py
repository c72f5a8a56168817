"""Pushed batches as they leave the guests: flat, clipped, with noise, all of an epoch at once.

Rounds write encodings as they are, since a round that is repeated as a graph draws nothing. Before any host reads them
they are released where they lie.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from dvfl.errors import UserError
from dvfl.parties.memory.replay import BatchStore, Numbers
from dvfl.release.flattening import Flattening
from dvfl.release.release import drawn_once, released
from dvfl.simulation.stack import Stack


def release_batches(
    stack: Stack, stores: Sequence[BatchStore], places: Numbers, order: NDArray[np.int32], epoch: int
) -> None:
    """Flattens and clips an epoch's batches, at `places` (rounds,) of the stores, and adds noise, each guest its own.

    `order` (rounds, replicas, batch), or (rounds, replicas, guests, batch), is what they are made of. A row that comes
    again in the epoch, to fill a batch, is sent as it was the first time: no more of it leaves the guest.
    """
    s, device = stack.settings, stack.device
    where = torch.from_numpy(places).to(device)
    for group, store in zip(stack.groups, stores, strict=True):
        for replica, seed in enumerate(stack.seeds):
            for number, guest in enumerate(group.members):
                element = replica * len(group.members) + number
                z = store.batches[where, element].float()  # (rounds, batch, latent)
                if s.flatten:
                    z = Flattening.of(z.flatten(0, 1))(z)
                if s.clip is None:
                    store.rewrite(where, element, z)
                    continue
                drawn = drawn_once(z.shape, device, seed, guest, "pushed", epoch) if s.noise else torch.zeros_like(z)
                sent = released(z, s.clip, s.noise, drawn)
                rows = order[:, replica] if order.ndim == 3 else order[:, replica, guest]
                first = torch.from_numpy(_first_places(rows.ravel())).to(device)
                store.rewrite(where, element, sent.flatten(0, 1).index_select(0, first).view(z.shape))


def check_epoch_fits(stack: Stack, rounds: int, rounds_at_once: int) -> None:
    """Refuses a history so short that rows which come again in an epoch would be sent with other noise."""
    if stack.settings.clip is not None and rounds_at_once < rounds:
        raise UserError(
            f"history_bytes {stack.settings.history_bytes} with clip: all {rounds} rounds of an epoch must fit, and"
            f" {rounds_at_once} do; more bytes, or leave history_bytes out"
        )


def _first_places(rows: NDArray[np.int32]) -> NDArray[np.int64]:
    """For every place in a list of rows, the first that has the same row."""
    _, first, which = np.unique(rows, return_index=True, return_inverse=True)
    return np.asarray(first[which], np.int64)
