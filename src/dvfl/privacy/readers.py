"""What attackers learn with: stacked regressions and networks that choose penalties and stopping on known rows alone.

Everything is a stack (stack, rows, width), as at the parties: one attacker a replica, or a replica and a guest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dvfl.parties.learner import Adam, Learner
from dvfl.parties.objectives import CrossEntropy
from dvfl.parties.operations import squared_error
from dvfl.parties.randomness import torch_generator
from dvfl.parties.sizes import leaky

Reader = Callable[[Tensor], Tensor]  # (stack, rows, seen) to (stack, rows, wanted)

_PENALTIES = tuple(10.0**power for power in range(-6, 5))  # times the mean eigenvalue


@dataclass(frozen=True)
class Effort:
    """How hard attackers try."""

    known: tuple[int, ...] = (10, 50, 100, 1000, 10_000)  # pairs of columns and encodings
    labels: tuple[int, ...] = (1, 10, 100)  # of each class
    hidden: tuple[int, ...] = (256, 256)  # of networks
    rates: tuple[float, ...] = (3e-3, 1e-3, 3e-4)  # one network each; held-out known rows choose
    steps: int = 1500
    batch: int = 256


SMALL = Effort((10, 50, 100, 1000), (1, 10), (128,), (2e-3,), 400, 64)


def ridge(z: Tensor, x: Tensor) -> Reader:
    """A linear map from known pairs; the penalty is the one with the least leave-one-out error, for each element."""
    z, x = z.double(), x.double()
    centre, offset = z.mean(1, keepdim=True), x.mean(1, keepdim=True)
    spread = z.std(1, keepdim=True, correction=0).clamp_(min=1e-6)
    seen, aim, rows = (z - centre) / spread, x - offset, z.shape[1]
    wide = rows < z.shape[2]  # more columns than rows: the small side is decomposed
    small = seen @ seen.mT if wide else seen.mT @ seen
    values, vectors = torch.linalg.eigh(small)
    values = values.clamp(min=0)
    root = values.clamp(min=1e-12).sqrt()[:, None]
    left = vectors if wide else seen @ vectors / root  # (stack, rows, rank)
    share = left.mT @ aim
    mean = values.mean(1, keepdim=True).clamp(min=1e-12)
    errors = []
    for penalty in _PENALTIES:
        kept = values / (values + penalty * mean)
        influence = (left.square() * kept[:, None]).sum(2, keepdim=True) + 1 / rows
        error = (aim - left @ (kept[..., None] * share)) / (1 - influence).clamp(min=1e-3)
        errors.append(error.square().sum((1, 2)))
    best = torch.stack(errors).argmin(0)
    penalty = torch.tensor(_PENALTIES, dtype=torch.float64, device=z.device)[best][:, None] * mean
    if wide:
        weights = seen.mT @ (vectors @ ((vectors.mT @ aim) / (values + penalty)[..., None]))
    else:
        weights = vectors @ ((vectors.mT @ (seen.mT @ aim)) / (values + penalty)[..., None])

    def read(other: Tensor) -> Tensor:
        return ((other.double() - centre) / spread @ weights + offset).float()

    return read


def network(z: Tensor, x: Tensor, effort: Effort, seeds: Sequence[int], *, classes: int = 0) -> Reader:
    """A network from known pairs, `x` (stack, rows, columns) or class numbers (stack, rows) with `classes`.

    The first fifth of the known rows is held out; rate and stopping are those that do best there, for each element.
    """
    stack, rows, width = z.shape
    centre, spread = z.mean(1, keepdim=True), z.std(1, keepdim=True, correction=0).clamp_(min=1e-6)
    if classes:
        aim, offset, scale = x, 0.0, 1.0
    else:
        offset, scale = x.mean(1, keepdim=True), x.std((1, 2), keepdim=True, correction=0).clamp_(min=1e-6)
        aim = (x - offset) / scale
    net = leaky((width, *effort.hidden, classes or x.shape[2]))
    tries = len(effort.rates)
    start = [net.init(torch_generator(seed, "reader", number)) for number, seed in enumerate(seeds)]
    learner = Learner(torch.stack(start).to(z.device).repeat_interleave(tries, 0), Adam(effort.rates[0], 1e-5))
    rate = torch.tensor(effort.rates, device=z.device).repeat(stack)
    seen = ((z - centre) / spread).repeat_interleave(tries, 0)
    aim = aim.repeat_interleave(tries, 0)
    held = held_out(rows)
    train, test = seen[:, held:], seen[:, :held]
    train_aim, test_aim = aim[:, held:], aim[:, :held]
    supervision = CrossEntropy(net)
    best = learner.parameters.clone()
    least = torch.full((stack * tries,), torch.inf, device=z.device)
    batch, pause = min(effort.batch, train.shape[1]), max(1, effort.steps // 30)
    draw = torch_generator(0, "reader's batches")
    for step in range(effort.steps + 1):
        if step % pause == 0:
            made = net.forward(learner.parameters, test)[-1]
            loss = _loss(made, test_aim, classes)
            better = loss < least
            least = torch.where(better, loss, least)
            best = torch.where(better[:, None], learner.parameters, best)
        chosen = torch.randint(train.shape[1], (batch,), generator=draw).to(z.device)
        if classes:
            supervision.learn(learner.parameters, train[:, chosen], train_aim[:, chosen], learner.gradient)
        else:
            tape = net.forward(learner.parameters, train[:, chosen])
            _, dy = squared_error(tape[-1], train_aim[:, chosen])
            net.backward(learner.parameters, tape, dy, learner.gradient, to_input=False)
        learner.update(rate)
    pick = least.view(stack, tries).argmin(1) + torch.arange(stack, device=z.device) * tries
    parameters = best[pick].contiguous()

    def read(other: Tensor) -> Tensor:
        return net.forward(parameters, ((other - centre) / spread).contiguous())[-1] * scale + offset

    return read


def held_out(rows: int) -> int:
    """How many of the known rows, the first of them, a network does not train on."""
    return min(max(1, rows // 5), 2000)


def _loss(made: Tensor, aim: Tensor, classes: int) -> Tensor:
    if not classes:
        return (made - aim).square().mean((1, 2))
    return (
        torch.nn.functional.cross_entropy(made.flatten(0, 1), aim.flatten(), reduction="none").view(aim.shape).mean(1)
    )
