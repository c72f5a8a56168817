"""What attackers learn with: stacked regressions and networks that choose penalties and stopping on known rows alone.

Everything is a stack (stack, rows, width), as at the parties: one attacker a replica, or a replica and a guest.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dvfl.parties.networks.sizes import leaky
from dvfl.parties.numerics.learner import Adam, Learner
from dvfl.parties.numerics.operations import squared_error
from dvfl.parties.numerics.randomness import torch_generator
from dvfl.parties.objectives.objective import CrossEntropy
from dvfl.simulation.rounds import Feed, Rounds

Reader = Callable[[Tensor], Tensor]  # (stack, rows, seen) to (stack, rows, wanted)

_PENALTIES = tuple(10.0**power for power in range(-6, 5))  # times the mean eigenvalue
_LEAST_SPREAD = 0.3  # of a column, as a share of all columns' together
_BEYOND = 0.5  # a guess leaves the range of known values by so much of it at most, however odd what is seen
_PAUSE = 48  # steps of a network between two looks at held-out rows
_HELD_OUT, _MOST_HELD_OUT = 5, 2000  # one known row in so many, and no more than so many


@dataclass(frozen=True)
class Effort:
    """How hard attackers try."""

    known: tuple[int, ...] = (10, 50, 1000, 10_000)  # pairs of columns and encodings
    labels: tuple[int, ...] = (1, 10, 100)  # of each class
    hidden: tuple[int, ...] = (256, 256)  # of networks
    rates: tuple[float, ...] = (3e-3, 1e-3, 3e-4)  # one network each; held-out known rows choose
    steps: int = 1200
    batch: int = 256
    # Times the others' learning rate that an active guest tries; the first where it has too few labels to choose by.
    factors: tuple[float, ...] = (10.0, 3.0, 30.0)


SMALL = Effort((10, 50, 1000), (1, 10), (128,), (2e-3,), 384, 64, (10.0,))


def ridge(z: Tensor, x: Tensor) -> Reader:
    """A linear map from known pairs; the penalty is the one with the least leave-one-out error, for each element."""
    return judged_ridge(z, x)[0]


def judged_ridge(z: Tensor, x: Tensor, *, scaled: bool = True) -> tuple[Reader, Tensor]:
    """The same, and its leave-one-out error, a sum of squares: (stack,). Not `scaled`: columns keep their spread."""
    z, x = z.double(), x.double()
    centre, spread = _standard(z)
    if not scaled:
        spread = torch.ones_like(spread)
    offset, rows = x.mean(1, keepdim=True), z.shape[1]
    seen, aim = (z - centre) / spread, x - offset
    wide = rows < z.shape[2]  # more columns than rows: the small side is decomposed
    values, vectors = torch.linalg.eigh(seen @ seen.mT if wide else seen.mT @ seen)
    values = values.clamp(min=0)
    left = vectors if wide else seen @ vectors / values.clamp(min=1e-12).sqrt()[:, None]  # (stack, rows, rank)
    share = left.mT @ aim
    mean = values.mean(1, keepdim=True).clamp(min=1e-12)
    errors, missed = [], torch.empty_like(aim)
    for penalty in _PENALTIES:
        kept = values / (values + penalty * mean)
        influence = (left.square() * kept[:, None]).sum(2, keepdim=True) + 1 / rows
        # No coarser bound: where the map goes through all known rows, both sides of the fraction are next to nothing.
        error = torch.baddbmm(aim, left, kept[..., None] * share, alpha=-1, out=missed)
        errors.append(error.div_((1 - influence).clamp(min=1e-11)).square_().sum((1, 2)))
    least, best = torch.stack(errors).min(0)
    penalty = torch.tensor(_PENALTIES, dtype=torch.float64, device=z.device)[best][:, None] * mean
    if wide:
        weights = seen.mT @ (vectors @ (share / (values + penalty)[..., None]))
    else:
        weights = vectors @ ((vectors.mT @ (seen.mT @ aim)) / (values + penalty)[..., None])

    least_x, most_x = x.amin(1, keepdim=True), x.amax(1, keepdim=True)
    extent = most_x - least_x
    beyond = extent.maximum(extent.mean(2, keepdim=True)) * _BEYOND

    def read(other: Tensor) -> Tensor:
        made: Tensor = (other.double() - centre) / spread @ weights + offset
        return made.maximum(least_x - beyond).minimum(most_x + beyond).float()

    return read, least


def best_ridge(views: Iterable[tuple[Tensor, Tensor]], x: Tensor, *, scaled: bool = True) -> Tensor:
    """What ridge makes of the one of several views of the same rows that has the least leave-one-out error.

    A view is what is seen of the known rows, whose `x` is known, and of the rows that are guessed. Each element has its
    own choice.
    """
    guess = least = None
    for known, others in views:
        reader, error = judged_ridge(known, x, scaled=scaled)
        made = reader(others)
        if guess is None or least is None:
            guess, least = made, error
        else:
            guess = torch.where((error < least)[:, None, None], made, guess)
            least = torch.minimum(error, least)
    if guess is None:
        raise ValueError("no view to choose from")
    return guess


def network(z: Tensor, x: Tensor, effort: Effort, seeds: Sequence[int], *, classes: int = 0) -> Reader:
    """A network from known pairs, `x` (stack, rows, columns) or class numbers (stack, rows) with `classes`.

    A fifth of the known rows, drawn, is held out; rate and stopping are those that do best there, for each element.
    """
    stack, rows, width = z.shape
    if rows < 2:
        raise ValueError(f"{rows} known row: a network needs 2, one to learn from and one to judge by")
    centre, spread = _standard(z)
    offset: Tensor | float = 0.0
    scale: Tensor | float = 1.0
    aim = x
    if not classes:
        offset, scale = x.mean(1, keepdim=True), x.std((1, 2), keepdim=True, correction=0).clamp_(min=1e-6)
        aim = (x - offset) / scale
    net = leaky((width, *effort.hidden, classes or x.shape[2]))
    tries = len(effort.rates)
    start = [net.init(torch_generator(seed, "reader")) for seed in seeds]
    learner = Learner(torch.stack(start).to(z.device).repeat_interleave(tries, 0), Adam(effort.rates[0], 1e-5))
    rate = torch.tensor(effort.rates, device=z.device).repeat(stack)
    test, train = (
        (((z[:, own] - centre) / spread).repeat_interleave(tries, 0), aim[:, own].repeat_interleave(tries, 0))
        for own in held_out(rows, z.device)
    )
    supervision = CrossEntropy(net)
    best = learner.parameters.clone()
    least = torch.full((stack * tries,), torch.inf, device=z.device)

    def step(chosen: Tensor) -> None:
        shown, wanted = train[0].index_select(1, chosen), train[1].index_select(1, chosen)
        if classes:
            supervision.learn(learner.parameters, shown, wanted, learner.gradient)
        else:
            tape = net.forward(learner.parameters, shown)
            _, dy = squared_error(tape[-1], wanted)
            net.backward(learner.parameters, tape, dy, learner.gradient, to_input=False)
        learner.update(rate)

    for _ in trained(step, train[0].shape[1], effort, z.device):
        loss = _loss(net.forward(learner.parameters, test[0])[-1], test[1], classes)
        better = loss < least
        least = torch.where(better, loss, least)
        best = torch.where(better[:, None], learner.parameters, best)
    pick = least.view(stack, tries).argmin(1) + torch.arange(stack, device=z.device) * tries
    parameters = best[pick].contiguous()

    def read(other: Tensor) -> Tensor:
        return net.forward(parameters, ((other - centre) / spread).contiguous())[-1] * scale + offset

    return read


def trained(step: Callable[[Tensor], None], rows: int, effort: Effort, device: torch.device) -> Iterator[int]:
    """Makes steps on batches of `rows`; pauses before the first and after every so many, and says how many are done."""
    draw = torch_generator(0, "reader's batches")
    feed, batch = Feed(device, _PAUSE), min(effort.batch, rows)
    rounds = Rounds([lambda t: step(feed.at("rows", t))], device, 1)
    yield 0
    for done in range(0, effort.steps, _PAUSE):
        count = min(_PAUSE, effort.steps - done)
        feed.load("rows", torch.randint(rows, (count, batch), generator=draw).numpy())
        rounds.run(count)
        yield done + count


def held_out(rows: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Numbers of the known rows that a network is judged by, and of those that it trains on."""
    order = torch.randperm(rows, generator=torch_generator(0, "reader's held-out rows")).to(device)
    held = min(max(1, rows // _HELD_OUT), _MOST_HELD_OUT)
    return order[:held], order[held:]


def deviation(values: Tensor) -> Tensor:
    """Standard deviation of every column over rows: (stack, 1, width).

    `Tensor.std` over a middle dimension takes about ten times as long on a CPU.
    """
    return (values - values.mean(1, keepdim=True)).square_().mean(1, keepdim=True).sqrt_()


def _standard(z: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and spread of every column over known rows: (stack, 1, width) each.

    A column that hardly varies there may well do so elsewhere (a unit of ReLU that is silent for a few rows), and would
    drown all others if it were scaled up to them.
    """
    centre, spread = z.mean(1, keepdim=True), deviation(z)
    least = spread.square().mean(2, keepdim=True).sqrt() * _LEAST_SPREAD
    return centre, spread.maximum(least.clamp(min=1e-6))


def _loss(made: Tensor, aim: Tensor, classes: int) -> Tensor:
    if not classes:
        return (made - aim).square().mean((1, 2))
    each = torch.nn.functional.cross_entropy(made.flatten(0, 1), aim.flatten(), reduction="none")
    return each.view(aim.shape).mean(1)
