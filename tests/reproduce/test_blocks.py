"""Trainings as blocks: what shares a stack, what a block gives, and how finished ones are kept."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dvfl.data import VerticalData
from dvfl.data.outages import read_outages
from dvfl.errors import UserError
from dvfl.parties.numerics.learner import Sgd
from dvfl.reproduce.blocks import (
    BlockFolder,
    Outcome,
    Training,
    blocks,
    plain_settings,
    replica_bytes,
    run,
    settings_of,
)
from dvfl.reproduce.outcome.experiment import Source
from dvfl.reproduce.sources import Sources
from dvfl.strategies import STRATEGIES
from dvfl.strategies.presets import preset

FEW = (("epochs", 2),)


DIGITS = Source("digits")


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources(None, None)


@pytest.fixture(scope="module")
def data(sources: Sources) -> VerticalData:
    return sources.data(DIGITS, 0)


def few(name: str, seed: int, *faults: str) -> Training:
    return Training(name, faults, seed, FEW, DIGITS)


def test_a_strategys_trainings_share_a_block_whatever_their_faults(sources: Sources) -> None:
    wanted = [few("splitnn-zeros", seed, *faults) for faults in ((), ("guest:0.3:0.1",)) for seed in range(3)]
    assert blocks(wanted, "paper", sources, "cpu") == [tuple(wanted)]


def test_strategies_and_settings_that_differ_do_not_share_one(sources: Sources) -> None:
    wanted = [few("splitnn-zeros", 0), few("vfb2", 0), Training("vfb2", (), 0, (("epochs", 3),), DIGITS)]
    assert blocks(wanted, "paper", sources, "cpu") == [(training,) for training in wanted]


def test_what_waits_has_a_block_for_every_condition(sources: Sources) -> None:
    wanted = [few("splitnn-wait", seed, *faults) for faults in ((), ("host:0.3:1",)) for seed in range(2)]
    assert blocks(wanted, "paper", sources, "cpu") == [tuple(wanted[:2]), tuple(wanted[2:])]


def test_a_block_is_no_larger_than_memory_allows(
    data: VerticalData, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [few("vfb2", seed) for seed in range(10)]
    each = replica_bytes("vfb2", settings_of(wanted[0], "paper", data), data)
    monkeypatch.setattr("dvfl.reproduce.blocks.memory_of", lambda device: 4.5 * each)
    assert [len(block) for block in blocks(wanted, "paper", sources, "cpu")] == [3, 3, 4]


def test_blocks_to_spread_are_so_many_at_least_where_there_are_trainings_enough(sources: Sources) -> None:
    wanted = [few("vfb2", seed) for seed in range(10)] + [few("vafl", seed) for seed in range(2)]
    cut = blocks(wanted, "paper", sources, "cpu", least=4)
    assert [len(block) for block in cut] == [2, 3, 2, 3, 1, 1]
    assert [training for block in cut for training in block] == wanted


def test_histories_and_tables_of_rows_are_counted(data: VerticalData) -> None:
    short, whole = (preset("paper", data, name) for name in ("splitnn-zeros", "dvfl"))
    assert replica_bytes("splitnn-zeros", short, data) < replica_bytes("vafl", short, data)
    assert replica_bytes("fedonce", preset("paper", data, "fedonce"), data) < replica_bytes("dvfl", whole, data)


def test_copies_that_are_compared_are_counted(data: VerticalData) -> None:
    s = preset("paper", data)
    each = [replace(s, guest_objective=guest) for guest in ("reconstruction", "simclr")]
    each.append(replace(each[1], host_objective="simclr"))
    counted = [replica_bytes("dvfl", one, data) for one in each]
    assert counted == sorted(counted) and len(set(counted)) == 3


def test_a_block_gives_what_each_training_gives_alone(sources: Sources) -> None:
    block = [few("splitnn-zeros", 0), few("splitnn-zeros", 1, "connection:0.3:0.5")]
    together = run(block, "paper", sources, "cpu", read_outages)
    alone = [run([training], "paper", sources, "cpu", read_outages)[0] for training in block]
    assert [one.accuracy for one in together] == pytest.approx([one.accuracy for one in alone], abs=0.6)
    assert all(one.stalled is None and one.repeated is None for one in together)


def test_a_stalled_training_has_a_round_and_no_accuracy(sources: Sources) -> None:
    (outcome,) = run([few("splitnn-wait", 0, "guest:1:0.5")], "paper", sources, "cpu", read_outages)
    assert (outcome.accuracy, outcome.stalled, outcome.repeated) == (None, 0, 0)


def test_after_every_epoch_the_watcher_is_told(sources: Sources) -> None:
    seen = []
    run([few("vfb2", 0)], "paper", sources, "cpu", read_outages, lambda simulation: seen.append(simulation.done))
    assert seen == [1, 2]


def test_changed_settings_reach_the_simulation(data: VerticalData) -> None:
    settings = settings_of(few("vafl", 0), "paper", data)
    assert isinstance(settings, STRATEGIES.find("vafl").settings) and settings.epochs == 2


def test_finished_blocks_are_read_back(tmp_path: Path) -> None:
    block = (few("vfb2", 0, "host:0.3:1"), few("vfb2", 1, "host:0.3:1"))
    outcomes = [Outcome(97.5, None, None, 3.5), Outcome(None, 3, 7)]
    BlockFolder(tmp_path).write(block, {}, outcomes, 1.5)
    again = BlockFolder(tmp_path)
    assert [again.outcomes[training.key] for training in block] == outcomes
    assert sum(again.seconds.values()) == 1.5


def test_a_training_that_was_made_with_other_settings_is_refused(tmp_path: Path, data: VerticalData) -> None:
    training, folder = few("vfb2", 0), BlockFolder(tmp_path)
    settings = plain_settings(training, "paper", data)
    folder.write([training], settings, [Outcome(97.5)], 1.0)
    folder.check([training], settings)
    with pytest.raises(UserError, match="vfb2 was trained with batch 64, and this version says 32; another --out"):
        BlockFolder(tmp_path).check([training], {**settings, "batch": 32})


def test_rules_in_a_change_are_told_apart() -> None:
    one, other = (Training("dvfl", (), 0, (("owner_rule", Sgd(rate)),)) for rate in (0.1, 0.2))
    assert one.key != other.key
    assert one.key == Training("dvfl", (), 0, (("owner_rule", Sgd(0.1)),)).key


@pytest.mark.parametrize("name", ["splitnn-wait", "fedvs"])
def test_seeds_with_rows_of_their_own_share_a_stack(sources: Sources, name: str) -> None:
    split = Source("digits", split="random")
    wanted = [Training(name, (), seed, FEW, split) for seed in (0, 1)]
    assert blocks(wanted, "paper", sources, "cpu") == [tuple(wanted)]
    together = run(wanted, "paper", sources, "cpu", read_outages)
    alone = [run([training], "paper", sources, "cpu", read_outages)[0] for training in wanted]
    assert [one.accuracy for one in together] == pytest.approx([one.accuracy for one in alone], abs=0.6)


def test_a_reference_learns_from_the_pooled_columns(sources: Sources) -> None:
    few_labels, all_labels = (
        run([Training("svm", (), 0, (), replace(DIGITS, labelled=rows))], "paper", sources, "cpu", read_outages)
        for rows in (64, 1000)
    )
    assert 70 < few_labels[0].accuracy < 95 < all_labels[0].accuracy  # type: ignore[operator]


@pytest.mark.parametrize("text", ["", "{}", json.dumps({"seconds": 1, "trainings": [{"training": {}}]})])
def test_a_spoiled_block_is_named_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "dvfl-1.json").write_text(text)
    with pytest.raises(UserError, match=r"dvfl-1\.json: no finished block .* delete it"):
        BlockFolder(tmp_path)
