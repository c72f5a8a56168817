"""What a party saved is there whole after any end, or an error says what to do."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from small_disk import FULL, READ_ONLY, SmallDisk, small_disk

from dvfl.errors import RunFailed, UserError
from dvfl.federation.party import storage as module
from dvfl.federation.party.storage import Checkpoint, DiskStorage

HALF_WRITTEN = """
import os, pathlib, signal, sys
from dvfl.files import replacing
with replacing(pathlib.Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def saved(folder: Path, number: float) -> DiskStorage:
    storage = DiskStorage(folder)
    storage.save(Checkpoint({"weights": torch.full((3,), number)}, {"epoch": int(number)}))
    return storage


def test_an_empty_folder_has_no_checkpoint(tmp_path: Path) -> None:
    assert DiskStorage(tmp_path / "state").load() is None


def test_the_newest_checkpoint_is_loaded(tmp_path: Path) -> None:
    for number in range(1, 5):
        saved(tmp_path, number)
        loaded = DiskStorage(tmp_path).load()
        assert loaded is not None
        assert loaded.values == {"epoch": number}
        assert loaded.tensors["weights"].tolist() == [number] * 3


def test_what_a_killed_process_left_half_written_is_removed(tmp_path: Path) -> None:
    saved(tmp_path, 1)
    killed = subprocess.Popen([sys.executable, "-c", HALF_WRITTEN, str(tmp_path / "checkpoint.json")])
    assert killed.wait(30) == -signal.SIGKILL
    assert list(tmp_path.glob(".checkpoint.json.*"))
    saved(tmp_path, 2)
    assert not list(tmp_path.glob(".*"))


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    saved(tmp_path, 1)
    file = tmp_path / json.loads((tmp_path / "checkpoint.json").read_text())["file"]
    file.write_bytes(file.read_bytes()[:-1] + b"\x01")
    with pytest.raises(UserError, match=r"not the file that checkpoint\.json names"):
        DiskStorage(tmp_path).load()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "file": "../x", "sha256": "", "values": {}}'])
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    saved(tmp_path, 1)
    (tmp_path / "checkpoint.json").write_text(text)
    with pytest.raises(UserError, match="begin anew"):
        DiskStorage(tmp_path).load()


def test_tables_of_a_killed_process_are_as_they_were_left(tmp_path: Path) -> None:
    arrays, whole = DiskStorage(tmp_path).table("guest-1", 10, 4)
    assert not whole
    arrays.values[3], arrays.incarnations[3] = 1.5, 7
    again, whole = DiskStorage(tmp_path).table("guest-1", 10, 4)  # nobody closed the first
    assert whole
    assert again.values[3].tolist() == [1.5] * 4
    assert again.incarnations[3] == 7


def test_tables_from_before_a_loss_of_power_are_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    DiskStorage(tmp_path).table("guest-1", 10, 4)[0].values[:] = 1
    monkeypatch.setattr(module, "_boot", lambda: "another start of the machine")
    arrays, whole = DiskStorage(tmp_path).table("guest-1", 10, 4)
    assert not whole
    assert not np.any(arrays.values)


def test_tables_that_were_closed_outlive_a_restart_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = DiskStorage(tmp_path)
    storage.table("guest-1", 10, 4)[0].values[:] = 1
    storage.close()
    monkeypatch.setattr(module, "_boot", lambda: "another start of the machine")
    arrays, whole = DiskStorage(tmp_path).table("guest-1", 10, 4)
    assert whole
    assert np.all(arrays.values == 1)


def test_a_table_of_another_size_is_made_anew(tmp_path: Path) -> None:
    DiskStorage(tmp_path).table("guest-1", 10, 4)[0].values[:] = 1
    arrays, whole = DiskStorage(tmp_path).table("guest-1", 11, 4)
    assert not whole
    assert arrays.values.shape == (11, 4)


def test_a_table_for_which_there_is_no_room_is_refused_before_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="MB are needed for tables and not free"):
        DiskStorage(tmp_path).table("guest-1", 1 << 40, 64)


def test_blobs_are_put_found_and_dropped_by_their_beginning(tmp_path: Path) -> None:
    storage = DiskStorage(tmp_path)
    for name in ("chunk.host-1.0", "chunk.host-1.1", "chunk.host-2.0"):
        storage.put(name, name.encode())
    storage.drop("chunk.host-1.")
    assert [storage.get(f"chunk.host-{host}.0") for host in (1, 2)] == [None, b"chunk.host-2.0"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFailed, match=r"file/state cannot be written"):
        DiskStorage(tmp_path / "file" / "state")


# On a small disk.


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 2) as mounted:
        yield mounted


def checkpoint(number: int) -> Checkpoint:
    return Checkpoint({"weights": torch.full((20_000,), float(number))}, {"epoch": number, "losses": [0.5] * 10_000})


def loaded(state: Path, to: Path) -> Checkpoint:
    """The checkpoint in a folder that cannot be written, from a copy of it."""
    found = DiskStorage(shutil.copytree(state, to)).load()
    assert found is not None
    return found


def number(found: Checkpoint | None) -> int:
    """Which of them it is, by all that it holds."""
    assert found is not None and set(found.tensors["weights"].tolist()) == {found.values["epoch"]}
    return int(found.values["epoch"])


@pytest.mark.parametrize("left", [0, 100 << 10])  # with 100 KB the tensors fit, and the manifest does not
def test_a_full_disk_keeps_the_last_checkpoint(disk: SmallDisk, tmp_path: Path, left: int) -> None:
    state = disk.root / "state"
    storage = DiskStorage(state)
    storage.save(checkpoint(1))
    disk.fill(left)
    file = "checkpoint.json" if left else "checkpoint-b.safetensors"
    with pytest.raises(RunFailed, match=f"{file} {FULL}"):
        storage.save(checkpoint(2))
    assert number(loaded(state, tmp_path / "copy")) == 1
    disk.empty()
    storage.save(checkpoint(2))
    assert number(DiskStorage(state).load()) == 2


def test_a_read_only_disk_keeps_the_last_checkpoint(disk: SmallDisk, tmp_path: Path) -> None:
    state = disk.root / "state"
    storage = DiskStorage(state)
    storage.save(checkpoint(1))
    storage.put("chunk.host-1.0", b"encodings")
    assert disk.remount("ro")
    for write in (
        lambda: storage.save(checkpoint(2)),
        lambda: storage.put("chunk.host-1.1", b"encodings"),
        lambda: storage.drop("chunk."),
        storage.close,
        lambda: DiskStorage(state),
    ):
        with pytest.raises(RunFailed, match=READ_ONLY):
            write()
    assert number(loaded(state, tmp_path / "copy")) == 1
    assert disk.remount("rw")
    assert number(DiskStorage(state).load()) == 1


def test_tables_can_be_written_though_the_disk_is_full_by_then(disk: SmallDisk) -> None:
    arrays, _ = DiskStorage(disk.root / "state").table("guest-1", 10_000, 10)
    disk.fill()
    files = list((disk.root / "state").glob("*.table"))
    assert sum(512 * file.stat().st_blocks for file in files) >= sum(array.nbytes for array in arrays)
    for array in arrays:
        array[:] = 1  # a page without room would end this process
