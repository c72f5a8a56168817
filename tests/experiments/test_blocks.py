"""Trainings as blocks: what shares a stack, what a block gives, and how finished ones are kept."""

import json
from pathlib import Path

import pytest

from dvfl.data import VerticalData, load
from dvfl.data.outages import read_outages
from dvfl.errors import UserError
from dvfl.experiments.blocks import BlockFolder, Outcome, Training, blocks, replica_bytes, run, settings_of
from dvfl.strategies import strategy
from dvfl.strategies.presets import preset

FEW = (("epochs", 2),)


@pytest.fixture(scope="module")
def data() -> VerticalData:
    return load("digits")


def few(name: str, seed: int, *faults: str) -> Training:
    return Training(name, faults, seed, FEW)


def test_a_strategys_trainings_share_a_block_whatever_their_faults(data: VerticalData) -> None:
    wanted = [few("splitnn-zeros", seed, *faults) for faults in ((), ("guest:0.3:0.1",)) for seed in range(3)]
    assert blocks(wanted, "paper", data, "cpu") == [tuple(wanted)]


def test_strategies_and_settings_that_differ_do_not_share_one(data: VerticalData) -> None:
    wanted = [few("splitnn-zeros", 0), few("vfb2", 0), Training("vfb2", (), 0, (("epochs", 3),))]
    assert blocks(wanted, "paper", data, "cpu") == [(training,) for training in wanted]


def test_what_waits_has_a_block_for_every_condition(data: VerticalData) -> None:
    wanted = [few("splitnn-wait", seed, *faults) for faults in ((), ("host:0.3:1",)) for seed in range(2)]
    assert blocks(wanted, "paper", data, "cpu") == [tuple(wanted[:2]), tuple(wanted[2:])]


def test_a_block_is_no_larger_than_memory_allows(data: VerticalData, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [few("vfb2", seed) for seed in range(10)]
    each = replica_bytes("vfb2", settings_of(wanted[0], "paper", data), data)
    monkeypatch.setattr("dvfl.experiments.blocks.memory_of", lambda device: 4.5 * each)
    assert [len(block) for block in blocks(wanted, "paper", data, "cpu")] == [3, 3, 4]


def test_blocks_to_spread_are_so_many_at_least_where_there_are_trainings_enough(data: VerticalData) -> None:
    wanted = [few("vfb2", seed) for seed in range(10)] + [few("vafl", seed) for seed in range(2)]
    cut = blocks(wanted, "paper", data, "cpu", least=4)
    assert [len(block) for block in cut] == [2, 3, 2, 3, 1, 1]
    assert [training for block in cut for training in block] == wanted


def test_histories_and_tables_of_rows_are_counted(data: VerticalData) -> None:
    short, whole = (preset("paper", data, name) for name in ("splitnn-zeros", "dvfl"))
    assert replica_bytes("splitnn-zeros", short, data) < replica_bytes("vafl", short, data)
    assert replica_bytes("fedonce", preset("paper", data, "fedonce"), data) < replica_bytes("dvfl", whole, data)


def test_a_block_gives_what_each_training_gives_alone(data: VerticalData) -> None:
    block = [few("splitnn-zeros", 0), few("splitnn-zeros", 1, "connection:0.3:0.5")]
    together = run(block, "paper", data, "cpu", read_outages)
    alone = [run([training], "paper", data, "cpu", read_outages)[0] for training in block]
    assert [one.accuracy for one in together] == pytest.approx([one.accuracy for one in alone], abs=0.6)
    assert all(one.stalled is None and one.repeated is None for one in together)


def test_a_stalled_training_has_a_round_and_no_accuracy(data: VerticalData) -> None:
    (outcome,) = run([few("splitnn-wait", 0, "guest:1:0.5")], "paper", data, "cpu", read_outages)
    assert outcome == Outcome(accuracy=None, stalled=0, repeated=0)


def test_after_every_epoch_the_watcher_is_told(data: VerticalData) -> None:
    seen = []
    run([few("vfb2", 0)], "paper", data, "cpu", read_outages, lambda simulation: seen.append(simulation.done))
    assert seen == [1, 2]


def test_changed_settings_reach_the_simulation(data: VerticalData) -> None:
    settings = settings_of(few("vafl", 0), "paper", data)
    assert isinstance(settings, strategy("vafl").settings) and settings.epochs == 2


def test_finished_blocks_are_read_back(tmp_path: Path) -> None:
    block = (few("vfb2", 0, "host:0.3:1"), few("vfb2", 1, "host:0.3:1"))
    outcomes = [Outcome(97.5, None, None), Outcome(None, 3, 7)]
    BlockFolder(tmp_path).write(block, outcomes, 1.5)
    again = BlockFolder(tmp_path)
    assert again.outcomes == dict(zip(block, outcomes, strict=True)) and again.seconds == 1.5


@pytest.mark.parametrize("text", ["", "{}", json.dumps({"seconds": 1, "trainings": [{"training": {}}]})])
def test_a_spoiled_block_is_named_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "dvfl-1.json").write_text(text)
    with pytest.raises(UserError, match=r"dvfl-1\.json: no finished block .* delete it"):
        BlockFolder(tmp_path)
