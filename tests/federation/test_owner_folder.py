"""The owner's folder as predictions read it, beside the owner's process."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from digits import make_digits
from test_owner import collected, made, status

from dvfl.errors import UserError
from dvfl.federation.keys.credentials import key_path, read_plan_key
from dvfl.federation.owner.owner import OwnerParty
from dvfl.federation.owner.owner_folder import OwnerFolder
from dvfl.federation.party.lifecycle import STATUS
from dvfl.federation.party.owner_settings import OwnerSettings
from dvfl.federation.party.storage import Checkpoint, DiskStorage

HASH = "a" * 64


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_digits(tmp_path / "practice") / "owner"


def party(folder: Path) -> OwnerParty:
    """An owner with a small world's plan, signed with this folder's key."""
    here = made()
    return OwnerParty(
        "owner",
        here._labels,
        here._test,
        OwnerSettings(epochs=3, batch=16),
        here.plan,
        read_plan_key(key_path(folder, "plan")),
        DiskStorage(folder / "state"),
        collect_deadline_s=60,
        now_ms=0,
        log=print,
    )


def says(folder: Path, **told: object) -> None:
    (folder / STATUS).write_text(json.dumps({"running": True, "pid": os.getpid(), **told}))


def test_how_far_a_run_is_through_all_its_phases(folder: Path) -> None:
    assert "no run has begun; owner does not run" in OwnerFolder(folder).how_far()
    says(folder, state="aligning", aligned=3, to_align=7)
    assert OwnerFolder(folder).how_far() == "not trained yet: ids are being aligned, 3 of 7"
    says(folder, state="aligning", aligned=0, to_align=0)
    assert OwnerFolder(folder).how_far() == "not trained yet: ids are being aligned"
    owner, read = party(folder), OwnerFolder(folder)
    says(folder, progress="guests in epoch 1 of 3, hosts at step 2 of 12")
    assert read.how_far() == "not trained yet: guests in epoch 1 of 3, hosts at step 2 of 12"
    for host in ("host-1", "host-2"):
        owner.told(host, status(host, frozen=HASH))
    owner.settle(now_ms=1)
    read.refresh()
    assert "being collected" in read.how_far()
    collected(owner).settle(now_ms=2)
    owner.train(now_ms=3)
    owner.save()
    read.refresh()
    assert "epoch 1 of 25 of the head" in read.how_far()
    assert read.saved is not None and read.saved.model is None
    while owner.state == "training":
        owner.train(now_ms=4)
    read.refresh()
    assert read.saved.model is not None and read.saved.model.hosts == {"host-1": HASH, "host-2": HASH}
    assert read.saved.model.score == owner.score and read.saved.signed.phase == "done"


def test_an_owner_that_was_killed_or_says_nothing_any_more_is_not_up(folder: Path) -> None:
    read = OwnerFolder(folder)
    assert not read.status()["up"]
    says(folder)
    assert read.status()["up"]
    os.utime(folder / STATUS, (1, 1))
    assert not read.status()["up"]
    says(folder, pid=2**22 + 1)
    assert not read.status()["up"]


def test_ids_are_found_however_they_are_written_and_later_ones_once_they_are_there(folder: Path) -> None:
    state = folder / "state"
    state.mkdir()
    pd.DataFrame({"id": ["A 1", "7"], "slot": np.array([4, 9], np.int32)}).to_parquet(state / "slots.parquet")
    read = OwnerFolder(folder)
    assert [read.slot(one) for one in ("A 1", " A 1 ", "\uff21 1", "7", "007", "a 1", "")] == [4, 4, 4, 9, -1, -1, -1]
    pd.DataFrame({"id": ["new"], "slot": np.array([11], np.int32)}).to_parquet(state / "later.parquet")
    assert read.slot("new") == -1
    read.refresh()
    assert (read.slot("new"), read.slot("7")) == (11, 9)


def test_nothing_in_the_folder_is_touched(folder: Path) -> None:
    party(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    OwnerFolder(folder).refresh()
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_checkpoint_whose_file_was_exchanged_is_refused(folder: Path) -> None:
    party(folder)
    for file in (folder / "state").glob("*.safetensors"):
        file.write_bytes(b"other")
    with pytest.raises(UserError, match=r"not the file that checkpoint\.json names"):
        OwnerFolder(folder)


def test_the_state_of_another_party_is_refused(folder: Path) -> None:
    plan = party(folder).signed.text()
    for values in ({}, {"plan": plan}, {"plan": 7}):
        DiskStorage(folder / "state").save(Checkpoint({}, values))
        with pytest.raises(UserError, match="not the state of an owner"):
            OwnerFolder(folder)


def test_slots_that_cannot_be_read_are_named_and_those_from_before_stay(folder: Path) -> None:
    party(folder)
    slots = folder / "state" / "slots.parquet"
    pd.DataFrame({"id": ["a"], "slot": np.array([3], np.int32)}).to_parquet(slots)
    read = OwnerFolder(folder)
    pd.DataFrame({"id": ["a"]}).to_parquet(folder / "other.parquet")
    for content in (b"", b"no parquet at all", (folder / "other.parquet").read_bytes()):
        slots.write_bytes(content)
        with pytest.raises(UserError, match=r"slots\.parquet cannot be read as \.parquet of 'id' and 'slot'"):
            read.refresh()
        assert read.slot("a") == 3
