"""Blocks on a real Ray cluster of two nodes on this machine: a worker is killed, a node is killed; the same numbers."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from unlucky import Noting, Wrapped, held_on, killed_always, killed_once, made_here, refused

from dvfl.cli import main
from dvfl.errors import RunFailed, UserError
from dvfl.reproduce.blocks import BlockFolder, Outcome, Training
from dvfl.reproduce.outcome.experiment import Source
from dvfl.reproduce.ray_cluster import ray_workers
from dvfl.reproduce.sources import Sources
from dvfl.reproduce.workers import Workers, complete

FEW = (("epochs", 2),)
DIGITS = Source("digits")
WANTED = [
    Training("splitnn-zeros", faults, seed, FEW, DIGITS) for faults in ((), ("guest:0.3:0.5",)) for seed in range(2)
]

pytest.importorskip("ray", reason="the extra dvfl[ray] is not installed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes with a CPU each. `second` is the one that may die."""
    environment = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        from ray.cluster_utils import Cluster

        small = {"num_cpus": 1, "object_store_memory": 80 << 20}
        made = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
        made.second = made.add_node(**small)
        yield made
        made.shutdown()


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources(None, 128)


@pytest.fixture(scope="module")
def expected(sources: Sources, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """What this process makes of the same blocks."""
    return made_here(WANTED, sources, tmp_path_factory.mktemp("blocks"))


@pytest.fixture(scope="module")
def workers(cluster: Any) -> Iterator[Workers]:
    with ray_workers(cluster.address, "auto") as made:
        yield made


def test_a_cluster_without_gpus_takes_blocks_on_its_cpus(workers: Workers) -> None:
    assert workers.device == "cpu"
    assert workers.machine["workers"] == workers.machine["ray_nodes"] == 2 and workers.machine["threads"] == 1


def test_a_killed_worker_changes_nothing(
    workers: Workers, sources: Sources, expected: dict[str, Outcome], tmp_path: Path
) -> None:
    marks, out, watcher, again = tmp_path / "marks", tmp_path / "blocks", Noting(), Noting()
    marks.mkdir()
    unlucky: Workers = Wrapped(workers, partial(killed_once, marks))
    complete(WANTED, "paper", sources, BlockFolder(out), unlucky, watcher)
    assert BlockFolder(out).outcomes == expected and len(list(out.iterdir())) == 4
    assert sorted(watcher.begun) == [1, 2, 3, 4] and len(list(marks.iterdir())) == 5

    complete(WANTED, "paper", sources, BlockFolder(out), workers, again)
    assert again.begun == []


def test_a_block_that_all_workers_die_of_is_named_when_the_others_are_done(
    workers: Workers, sources: Sources, tmp_path: Path
) -> None:
    deadly: Workers = Wrapped(workers, partial(killed_always, WANTED[0]))
    with pytest.raises(RunFailed, match=r"block splitnn-zeros, no faults, seed 0: .* died 3 times"):
        complete(WANTED[:2], "paper", sources, BlockFolder(tmp_path), deadly, Noting())
    assert list(BlockFolder(tmp_path).outcomes) == [WANTED[1].key]


def test_what_a_worker_refuses_is_refused_here(workers: Workers) -> None:
    with pytest.raises(UserError) as caught:
        list(workers.finished([tuple(WANTED)], refused, Noting()))
    assert str(caught.value) == "outages.csv is not there"


def test_a_killed_node_changes_nothing(
    cluster: Any, workers: Workers, sources: Sources, expected: dict[str, Outcome], tmp_path: Path
) -> None:
    def kill() -> None:
        while not (tmp_path / "begun").exists():
            time.sleep(0.05)
        cluster.remove_node(cluster.second, allow_graceful=False)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    held: Workers = Wrapped(workers, partial(held_on, cluster.second.node_id, tmp_path))
    complete(WANTED, "paper", sources, BlockFolder(tmp_path / "blocks"), held, Noting())
    killer.join()
    assert BlockFolder(tmp_path / "blocks").outcomes == expected
    assert len(list((tmp_path / "blocks").iterdir())) == 4


@pytest.mark.parametrize("address", ["nowhere", "ray://head:10001", "head:port", "head:70000"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(UserError, match="auto, local or HOST:PORT is right"), ray_workers(address, "cpu"):
        pass


def test_an_address_where_nobody_listens_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    begun = time.monotonic()
    assert main(["reproduce", "table1", "--ray", address, "--out", str(tmp_path / "new")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"dvfl: --ray {address}: nothing answers there") and error.count("\n") == 1
    assert time.monotonic() - begun < 15 and not (tmp_path / "new").exists()


def test_an_address_where_somebody_else_listens_is_refused_soon(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("dvfl.reproduce.ray_cluster._REACHED_IN", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert main(["reproduce", "table1", "--ray", address, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert (
        error.startswith(f"dvfl: --ray {address}: no Ray cluster lets this process in within 3 s")
        and error.count("\n") == 1
    )
