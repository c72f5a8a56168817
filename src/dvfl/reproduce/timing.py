"""How long a party of its own takes per epoch: forward and backward, and waiting for others."""

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import torch
from torch import Tensor

from dvfl.data.split.vertical import VerticalData
from dvfl.parties.guest import Guest
from dvfl.parties.host import Host
from dvfl.parties.numerics.operations import squared_error
from dvfl.parties.objectives.contrastive import Contrastive, nt_xent
from dvfl.parties.objectives.objective import CrossEntropy, Objective
from dvfl.reproduce.paper.time import EPOCHS, OWN_PROCESS, PROCESS
from dvfl.settings.training import Settings, SplitSettings
from dvfl.simulation.cpu_threads import suited
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.presets import preset
from dvfl.strategies.split.split_training import EndToEnd
from dvfl.strategies.split.splitnn import SplitNN

_WARM_UP, _ROUNDS, _REPEATS = 5, 20, 5
Seconds = dict[str, float | None]


def times(data: VerticalData, preset_name: str, device: str) -> dict[str, Seconds]:
    """Of the strategies that the paper's appendix compares."""
    mse, simclr = preset(preset_name, data), preset(preset_name, data, "dvfl", "simclr")
    split = preset(preset_name, data, "splitnn-wait")
    assert isinstance(mse, Settings) and isinstance(simclr, Settings) and isinstance(split, SplitSettings)
    return {
        "dvfl": decoupled(data, mse, device),
        "dvfl, SimCLR": decoupled(data, replace(simclr, host_objective="simclr"), device),
        "splitnn-wait": coupled(data, split, device),
    }


@torch.no_grad()
def decoupled(data: VerticalData, settings: Settings, device: str) -> Seconds:
    """DVFL's guest, host and owner, seconds by quantity."""
    stack = Dvfl(data, replace(settings, hosts=max(1, settings.hosts)), (0,), device=device).stack
    guest, host, owner = stack.groups[0].guest, stack.host, stack.owner
    assert isinstance(guest, Guest) and isinstance(host, Host) and isinstance(owner.supervision, CrossEntropy)
    guest, host = guest.part(slice(0, 1)), host.part(slice(0, 1))
    batch, rounds = settings.batch, -(-data.rows // settings.batch)
    x = torch.from_numpy(data.guests[0].train[:batch]).to(device)[None]
    b = torch.rand(1, batch, stack.joint, device=device)
    e = torch.rand(1, batch, sum(stack.owner_widths), device=device)
    y = torch.from_numpy(data.y_train[:batch]).to(device)[None]
    timed = _Timed(device, rounds)
    guest_forward = timed(lambda: _forward(guest.objective, guest.learner.parameters, x))
    guest_all = timed(lambda: guest.step(x, 1e-3, seen=_copies(guest.objective, x)))
    host_forward = timed(lambda: _forward(host.objective, host.learner.parameters[:, -host.objective.size :], b))
    host_all = timed(lambda: host.step(b, 1e-3, copies=_copies(host.objective, b)))
    owner_forward = timed(lambda: owner.predict(e))
    owner_all = timed(lambda: owner.step(e, y, 1e-3))
    return {
        "guest forward": guest_forward,
        "guest waiting": 0.0,
        "guest backward": guest_all - guest_forward,
        "host forward": host_forward,
        "host backward": host_all - host_forward,
        "owner forward": owner_forward,
        "owner backward": owner_all - owner_forward,
        PROCESS: EPOCHS * guest_all,
        OWN_PROCESS: settings.guest_epochs * guest_all,
    }


@torch.no_grad()
def coupled(data: VerticalData, settings: SplitSettings, device: str) -> Seconds:
    """SplitNN's guest and host, seconds by quantity; the host has the labels."""
    model = EndToEnd(data, settings, (0,), algorithm=SplitNN("wait"), device=device).model
    group, part = model.groups[0], model.part(slice(0, 1))
    own, batch, rounds = group.learner.part(slice(0, 1)), settings.batch, -(-data.rows // settings.batch)
    x = torch.from_numpy(data.guests[0].train[:batch]).to(device)[None]
    joint = torch.rand(1, batch, model.head.in_width, device=device)
    y = torch.from_numpy(data.y_train[:batch]).to(device)[None]
    timed = _Timed(device, rounds)
    tape = group.net.forward(own.parameters, x)
    forward = timed(lambda: group.net.forward(own.parameters, x))

    def back() -> None:
        group.net.backward(own.parameters, tape, torch.ones_like(tape[-1]), own.gradient, to_input=False)
        own.update(1e-3)

    def answer() -> None:
        part.learn(joint, y)
        part.update_host(1e-3, None)

    host_forward = timed(lambda: model.head.forward(part.host.parameters, joint))
    host_all, backward = timed(answer), timed(back)
    return {
        "guest forward": forward,
        "guest waiting": host_all,
        "guest backward": backward,
        "host forward": host_forward,
        "host backward": host_all - host_forward,
        "owner forward": None,
        "owner backward": None,
        PROCESS: EPOCHS * (forward + host_all + backward),
        OWN_PROCESS: settings.epochs * (forward + host_all + backward),
    }


class _Timed:
    """Seconds of an epoch of rounds, by the median of some repeats."""

    def __init__(self, device: str, rounds: int) -> None:
        self._device, self._rounds = torch.device(device), rounds

    def __call__(self, body: Callable[[], object]) -> float:
        spans = []
        with suited(self._device, 0):
            for _ in range(_WARM_UP):
                body()
            for _ in range(_REPEATS):
                start = self._now()
                for _ in range(_ROUNDS):
                    body()
                spans.append((self._now() - start) / _ROUNDS)
        return median(spans) * self._rounds

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            return time.perf_counter()
        return time.process_time()  # what others do meanwhile is not counted


def _copies(objective: Objective, x: Tensor) -> Tensor | None:
    """The copies that an objective compares; making them is not counted, as in the paper."""
    return x.repeat(1, objective.copies, 1) if objective.copies > 1 else None


def _forward(objective: Objective, flat: Tensor, x: Tensor) -> object:
    given, start, made = x.repeat(1, objective.copies, 1), 0, x
    for net in objective.nets.values():
        made = net.forward(flat[:, start : start + net.size], given)[-1]
        given, start = made, start + net.size
    return nt_xent(made, objective.temperature) if isinstance(objective, Contrastive) else squared_error(made, x)
