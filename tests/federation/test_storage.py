"""What a party saved is there whole after any end, or an error says what to do."""

import errno
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from dvfl.errors import RunFailed, UserError
from dvfl.federation import storage as module
from dvfl.federation.storage import Checkpoint, DiskStorage


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


@pytest.mark.parametrize("step", ["save_file", "write_json"])
def test_a_disk_that_fills_up_keeps_the_last_checkpoint(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path, 1)
    storage = DiskStorage(tmp_path)

    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, step, full)
    with pytest.raises(RunFailed, match=r"No space left on device.*what was saved before is kept"):
        storage.save(Checkpoint({"weights": torch.zeros(3)}, {"epoch": 2}))
    monkeypatch.undo()
    loaded = DiskStorage(tmp_path).load()
    assert loaded is not None and loaded.values == {"epoch": 1}
    assert loaded.tensors["weights"].tolist() == [1.0] * 3


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
