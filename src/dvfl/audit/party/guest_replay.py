"""What a real guest pushed while it trained: its table, the plan and its noise's secret say all of it, so its training
is repeated."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.audit.recordings.releases import earlier, kept
from dvfl.federation.guest.guest_training import GuestTraining
from dvfl.federation.protocol.plan import Plan

_MOST = 4_000_000  # rows, each as often as it is learned from, beyond which repeating takes too long


def kept_epochs(plan: Plan, *, noisy: bool) -> list[int]:
    """Epochs, from 1, whose pushes an attacker puts beside the sweep."""
    epochs = range(1, plan.guest_epochs + 1)
    return [epoch for epoch in epochs if kept(epoch, plan.guest_epochs, plan.period, noisy=noisy)]


def can_be_replayed(plan: Plan, rows: int, *, noisy: bool) -> bool:
    """Whether it does not take too long."""
    return rows * max(kept_epochs(plan, noisy=noisy), default=0) <= _MOST


def replayed(training: GuestTraining, plan: Plan, slots: NDArray[np.int32], *, noisy: bool) -> Tensor | None:
    """What an untrained guest pushes of some slots that it trains on, or means of it: (some, 1, slots, latent)."""
    wanted, pushed = kept_epochs(plan, noisy=noisy), []
    order = np.argsort(slots)
    for epoch in range(1, max(wanted, default=0) + 1):
        codes = torch.zeros(1, len(slots), training.latent)
        first = 0
        while first < training.iterations:
            sent, values, losses = training.rounds(epoch - 1, first)
            first += len(losses)
            place = np.minimum(np.searchsorted(slots, sent, sorter=order), len(slots) - 1)
            known = slots[order[place]] == sent
            codes[0, torch.from_numpy(order[place[known]])] = torch.from_numpy(values[known])
        if epoch in wanted:
            pushed.append(codes)
    return earlier(pushed, noisy=noisy)
