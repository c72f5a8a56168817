"""Blocks by a pool of processes: the numbers of this process, whoever dies; nothing lost, nothing twice."""

import json
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from unlucky import Noting, Wrapped, gpus_seen, killed_always, killed_once, made_here, refused

from dvfl.cli import main
from dvfl.errors import RunFailed, UserError
from dvfl.reproduce.blocks import BlockFolder, Outcome, Training, Watch, plain_settings
from dvfl.reproduce.outcome.experiment import Source
from dvfl.reproduce.sources import Sources
from dvfl.reproduce.worker_pool import WorkerPool
from dvfl.reproduce.workers import Beside, Block, Finished, ThisProcess, Workers, attempt, complete, outcome

FEW = (("epochs", 2),)
DIGITS = Source("digits")
WANTED = [
    Training("splitnn-zeros", faults, seed, FEW, DIGITS) for faults in ((), ("guest:0.3:0.5",)) for seed in range(3)
]
WANTED += [Training("splitnn-wait", ("guest:1:0.5",), 0, FEW, DIGITS)]
ONE_EACH: list[Block] = [(WANTED[0],), (WANTED[-1],)]


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources(None, 128)


@pytest.fixture(scope="module")
def expected(sources: Sources, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """What this process makes of the same blocks."""
    return made_here(WANTED, sources, tmp_path_factory.mktemp("blocks"))


def test_a_pool_with_a_worker_killed_gives_the_numbers_of_one_process(
    sources: Sources, expected: dict[str, Outcome], tmp_path: Path
) -> None:
    marks, out = tmp_path / "marks", tmp_path / "blocks"
    marks.mkdir()
    workers: Workers = Wrapped(WorkerPool(2, "cpu"), partial(killed_once, marks))
    watcher = Noting()
    complete(WANTED, "paper", sources, BlockFolder(out), workers, watcher)

    assert BlockFolder(out).outcomes == expected
    written = [pair["training"] for file in out.iterdir() for pair in json.loads(file.read_text())["trainings"]]
    assert len(written) == len(WANTED) and len(list(out.iterdir())) == 5
    # The first block was begun twice, every other once.
    assert sorted(watcher.begun) == [1, 1, 2, 3, 4, 5] and len(list(marks.iterdir())) == 6

    again = Noting()
    complete(WANTED, "paper", sources, BlockFolder(out), workers, again)
    assert again.begun == []


def test_a_block_that_all_workers_die_of_is_named_when_the_others_are_done(sources: Sources, tmp_path: Path) -> None:
    workers: Workers = Wrapped(WorkerPool(2, "cpu"), partial(killed_always, WANTED[0]))
    with pytest.raises(RunFailed, match=r"block splitnn-zeros, no faults, seed 0: .* died 3 times"):
        complete([block[0] for block in ONE_EACH], "paper", sources, BlockFolder(tmp_path), workers, Noting())
    assert list(BlockFolder(tmp_path).outcomes) == [WANTED[-1].key]


def test_references_run_side_by_side_before_the_rest(sources: Sources, tmp_path: Path) -> None:
    wanted = [WANTED[-1], *(Training("svm", (), seed, (), Source("digits", labelled=64)) for seed in (0, 1))]
    watcher = Noting()
    complete(wanted, "paper", sources, BlockFolder(tmp_path), ThisProcess("cpu"), watcher)
    assert [block[0].strategy for block in watcher.blocks] == ["svm", "svm", "splitnn-wait"]
    assert len(BlockFolder(tmp_path).outcomes) == 3


def test_what_a_worker_refuses_is_refused_here_with_its_traceback() -> None:
    with pytest.raises(UserError, match=r"outages\.csv is not there") as caught:
        list(WorkerPool(1, "cpu").finished(ONE_EACH, refused, Noting()))
    assert "in refused" in caught.value.__notes__[0]


def test_a_block_that_fails_is_named_with_the_reason() -> None:
    def broken(block: Block, *, watch: Watch) -> list[Outcome]:
        raise ZeroDivisionError("no rounds")

    with pytest.raises(RunFailed, match=r"block splitnn-zeros, no faults, seed 0: ZeroDivisionError: no rounds"):
        outcome(attempt(broken, ONE_EACH[0]))


def test_every_worker_is_shown_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    made: list[Finished] = list(WorkerPool(2, "cuda").finished(ONE_EACH, gpus_seen, Noting()))
    assert sorted(outcomes[0].repeated for _, outcomes, _ in made) == [3, 5]


def test_more_workers_than_gpus_are_refused() -> None:
    with pytest.raises(UserError, match=r"--workers 99: one a GPU is right"):
        WorkerPool(99, "cuda")


def test_memory_and_threads_are_divided_among_workers_on_a_cpu() -> None:
    assert WorkerPool(4, "cpu").memory == pytest.approx(ThisProcess("cpu").memory / 4)
    assert WorkerPool(4, "cpu").machine["workers"] == 4 and WorkerPool(64, "cpu").machine["threads"] == 1


def test_what_was_stopped_goes_on_with_the_blocks_it_had_left(
    sources: Sources, expected: dict[str, Outcome], tmp_path: Path
) -> None:
    here, whole = ThisProcess("cpu"), Noting()
    here.pieces = 4
    block = (WANTED[1], WANTED[2])  # the second of four pieces of six
    settings = plain_settings(block[0], "paper", sources.example(DIGITS))
    BlockFolder(tmp_path).write(block, settings, [expected[training.key] for training in block], 1.0)
    complete(WANTED, "paper", sources, BlockFolder(tmp_path), here, whole)
    assert [len(block) for block in whole.blocks] == [1, 1, 2, 1] and BlockFolder(tmp_path).outcomes == expected


def test_a_pool_and_a_cluster_at_once_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "table1", "--workers", "2", "--ray", "auto", "--out", str(tmp_path)]) == 2
    assert "--workers does not go with --ray" in capsys.readouterr().err


def test_without_ray_the_extra_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as good as not installed
    assert main(["reproduce", "table1", "--ray", "auto", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "dvfl: ray not installed; pip install 'dvfl[ray]' is right\n"


def test_what_is_finished_beside_can_be_fetched_as_it_comes_and_in_the_end() -> None:
    gate = threading.Event()

    def finished() -> Iterator[Finished]:
        yield (), [], 1.0
        gate.wait(10)
        yield (), [], 2.0

    beside = Beside(finished())
    first: list[Finished] = []
    while not first:
        first += beside.ready()
    assert len(first) == 1 and not list(beside.ready())
    gate.set()
    assert len(list(beside.all())) == 1


def test_what_is_finished_beside_a_gpu_costs_only_the_seconds_that_are_waited_for_it() -> None:
    begun = threading.Event()

    def finished() -> Iterator[Finished]:
        yield (), [], 100.0
        begun.wait(10)
        time.sleep(0.05)
        yield (), [], 100.0

    beside = Beside(finished())
    first: list[Finished] = []
    while not first:
        first += beside.ready()
    begun.set()
    waited = [seconds for _, _, seconds in beside.all()]
    assert [seconds for _, _, seconds in first] == [0.0] and 0.04 < sum(waited) < 5


def test_what_goes_wrong_beside_is_raised_in_the_end() -> None:
    def finished() -> Iterator[Finished]:
        yield (), [], 1.0
        raise RunFailed("died")

    beside = Beside(finished())
    each = beside.all()
    next(each)
    with pytest.raises(RunFailed, match="died"):
        next(each)
    assert not list(beside.ready())
