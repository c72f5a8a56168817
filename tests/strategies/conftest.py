"""Real digits, embedded in scikit-learn, as small vertical data; split networks as one would first write them."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from torch import Tensor, nn

from dvfl.data.split.vertical import GuestTable, VerticalData
from dvfl.strategies.plain_loops import optimizer, sequential
from dvfl.strategies.split.split_training import EndToEnd

CLASSES = tuple("0123456789")


def vertical(
    images: NDArray[np.float32], y: NDArray[np.int64], train: int, test: int, parts: Sequence[int], sizes: str
) -> VerticalData:
    """Blocks of columns, `parts` wide, one a guest; rows in a fixed shuffle, since the file is ordered by writer."""
    order = np.random.default_rng(0).permutation(len(y))
    images, y = images[order], y[order]
    assert sum(parts) == images.shape[1]
    blocks = np.split(images, np.cumsum(parts)[:-1], axis=1)
    guests = tuple(
        GuestTable(f"guest-{i + 1}", block[:train].copy(), block[-test:].copy(), unit=True)
        for i, block in enumerate(blocks)
    )
    return VerticalData("digits", guests, y[:train], y[-test:], CLASSES, sizes=sizes)


@pytest.fixture(scope="session")
def digits() -> VerticalData:
    """Four strips of 16 columns, 600 training rows."""
    images, y = load_digits(return_X_y=True)
    return vertical((images / 16).astype(np.float32), y.astype(np.int64), 600, 400, (16,) * 4, "table")


@pytest.fixture(scope="session")
def unequal_digits() -> VerticalData:
    """Guests of three shapes, the first and the third alike."""
    images, y = load_digits(return_X_y=True)
    return vertical((images / 16).astype(np.float32), y.astype(np.int64), 600, 400, (16, 8, 16, 24), "table")


@pytest.fixture(scope="session")
def six_guests() -> VerticalData:
    """Enough guests for a square inside a code, of two shapes."""
    images, y = load_digits(return_X_y=True)
    return vertical((images / 16).astype(np.float32), y.astype(np.int64), 600, 400, (8, 8, 16, 8, 16, 8), "table")


@pytest.fixture(scope="session")
def large_digits() -> VerticalData:
    """Enlarged to the paper's 28 x 28 pixels: four strips of 196 columns, 25 batches of 64."""
    bunch = load_digits()
    images = np.kron(bunch.images / 16, np.ones((4, 4)))[:, 2:30, 2:30].reshape(-1, 784)
    return vertical(images.astype(np.float32), bunch.target.astype(np.int64), 1600, 197, (196,) * 4, "mnist")


class PlainSplit:
    """A split network of one replica as PyTorch modules, one optimiser a party, autograd for the gradients."""

    def __init__(self, simulation: EndToEnd) -> None:
        self.simulation, data, model = simulation, simulation.data, simulation.model
        rows = {guest: (group, number) for group in model.groups for number, guest in enumerate(group.members)}
        self.guests = [
            sequential(group.net, group.learner.parameters[number])
            for group, number in (rows[guest] for guest in range(len(data.guests)))
        ]
        self.host = sequential(model.head, model.host.parameters[0])
        s = simulation.settings
        self.guest_steps = [optimizer(list(guest.parameters()), s.guest_rule) for guest in self.guests]
        self.host_step = optimizer(list(self.host.parameters()), s.host_rule)
        self.tables = [torch.from_numpy(guest.train) for guest in data.guests]
        self.labels = torch.from_numpy(data.y_train)
        self.start = [_flat(module) for module in (*self.guests, self.host)]

    def encode(self, rows: Tensor) -> list[Tensor]:
        """Every guest's encodings of rows."""
        return [guest(table[rows]) for guest, table in zip(self.guests, self.tables, strict=True)]

    def learn(self, x: Tensor, rows: Tensor, host: bool, guests: Sequence[bool], rate: float = 1.0) -> float:
        """Forward and backward on what the host reads; steps of the parties that learn, at a share of their rates."""
        for steps in (*self.guest_steps, self.host_step):
            steps.zero_grad()
        loss = nn.functional.cross_entropy(self.host(x), self.labels[rows])
        loss.backward()  # type: ignore[no-untyped-call]
        for steps, learns in zip((*self.guest_steps, self.host_step), (*guests, host), strict=True):
            if learns:
                for group in steps.param_groups:
                    group["lr"] = steps.defaults["lr"] * rate
                steps.step()
        return float(loss.detach())

    def apart(self) -> float:
        """How far the simulation has come to other parameters, in proportion to how far a party has moved: the worst.

        In so short a training the steps are small beside the parameters themselves, so these would be no measure. It is
        about 1e-6, and 1e-3 where rounding decides on which side of its kink a unit lies for some row.
        """
        parties = dict(self.simulation.model.tensors())
        names = [*(f"guest-{number + 1}" for number in range(len(self.guests))), "host-1"]
        worst = 0.0
        for name, module, start in zip(names, (*self.guests, self.host), self.start, strict=True):
            ours, theirs = torch.cat([tensor[0].flatten() for tensor in parties[name].values()]), _flat(module)
            worst = max(worst, float((ours - theirs).norm() / ((theirs - start).norm() + 1e-12)))
        return worst


def _flat(module: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


@pytest.fixture
def plain_split() -> Callable[[EndToEnd], PlainSplit]:
    """Makes the plain network that starts where a simulation of one replica stands."""
    return PlainSplit
