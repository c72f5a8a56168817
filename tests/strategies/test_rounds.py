"""Rounds in pieces on threads, and the feed."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from dvfl.data import VerticalData, load
from dvfl.parties.faults.fault_set import Fault, Faults
from dvfl.parties.numerics.learner import Adam
from dvfl.settings.training import FedVSSettings, Settings, SplitSettings
from dvfl.simulation import cpu_threads as machine
from dvfl.simulation.rounds import Feed, Rounds, cut
from dvfl.strategies import STRATEGIES
from dvfl.strategies.decoupled.dvfl import Dvfl

CPU = torch.device("cpu")
FAULTS = Faults((Fault("guest", 0.3, 0.3), Fault("connection", 0.3, 0.3), Fault("host", 0.3, 0.3)))


@pytest.fixture
def three_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every stack is cut in three, whatever its size and the machine's."""
    before = torch.get_num_threads()
    monkeypatch.setattr(machine, "_WORTH_THREADS", 0)
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def outputs(data: VerticalData, settings: Settings) -> torch.Tensor:
    simulation = Dvfl(data, settings, (0, 1), faults=FAULTS)
    simulation.run()
    return simulation.outputs()


def test_a_stack_cut_over_threads_learns_what_the_whole_does(request: pytest.FixtureRequest) -> None:
    data = load("digits", guests=3)  # strips of unequal height: two groups of guests
    settings = Settings(hosts=2, guest_epochs=2, host_epochs=3, owner_epochs=3)
    settings = replace(settings, guest_dropout=0.2, host_dropout=0.2, owner_dropout=0.3)
    whole = outputs(data, settings)
    request.getfixturevalue("three_threads")
    torch.testing.assert_close(outputs(data, settings), whole, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in STRATEGIES if STRATEGIES[name].settings is not Settings])
def test_a_split_network_cut_over_threads_learns_what_the_whole_does(name: str, request: pytest.FixtureRequest) -> None:
    data, settings = load("digits"), SplitSettings(epochs=2, dropout=0.3, guest_rule=Adam(1e-3), retries=20)
    if name == "fedvs":
        settings = FedVSSettings(epochs=2, dropout=0.3, guest_rule=Adam(1e-3))

    def outputs() -> torch.Tensor:
        simulation = STRATEGIES[name](data, settings, range(4), faults=FAULTS)
        simulation.run()
        return simulation.outputs()

    whole = outputs()
    request.getfixturevalue("three_threads")
    torch.testing.assert_close(outputs(), whole, rtol=1e-3, atol=1e-4)


def test_an_error_on_a_thread_is_raised(three_threads: None) -> None:
    def fails(t: object) -> None:
        raise ArithmeticError("as it should")

    with pytest.raises(ArithmeticError, match="as it should"):
        Rounds([lambda t: None, fails], CPU, 2).run(3)


def test_every_part_runs_every_round(three_threads: None) -> None:
    seen: list[list[object]] = [[], [], []]
    Rounds([kept.append for kept in seen], CPU, 3).run(5)
    assert seen == [[0, 1, 2, 3, 4]] * 3


@pytest.mark.parametrize(("elements", "pieces"), [(4, 2), (5, 3), (1, 4), (7, 1)])
def test_pieces_of_a_stack_are_disjoint_and_whole(elements: int, pieces: int) -> None:
    slices = cut(elements, pieces)
    assert [index for piece in slices for index in range(elements)[piece]] == list(range(elements))
    assert len(slices) == min(elements, pieces)


def test_a_feed_gives_the_entry_of_each_round() -> None:
    feed = Feed(CPU, 3)
    feed.load("x", np.arange(6).reshape(3, 2))
    assert feed.at("x", 1).tolist() == [2, 3]
