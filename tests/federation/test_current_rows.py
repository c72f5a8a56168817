"""A guest's rows as its files have them now, and what its host is answered with."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from clinics import ROWS, TESTED, Clinics
from world import MemoryStorage, plan_key

from dvfl.federation.guest.guest import GuestParty
from dvfl.federation.guest.guest_answers import GuestAnswers
from dvfl.federation.guest.table_watcher import CurrentRows
from dvfl.federation.local.entrypoints import _opened_guest
from dvfl.federation.party.runtime import Here as Machine
from dvfl.federation.party.settings import Slots, read_federation, read_guest
from dvfl.federation.party.storage import DiskStorage
from dvfl.federation.protocol.plan import Plan, sign
from dvfl.federation.protocol.wire import Ask, Fresh, Here, Refused, Welcome, decode, encode
from dvfl.federation.tables.table import Table

GUEST = "guest-1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    clinics = Clinics(tmp_path)
    clinics.write_label_files()
    clinics.create()
    for party in (GUEST, "host-1"):
        clinics.enter(party)
    return clinics.folder(GUEST)


def opened(folder: Path) -> tuple[GuestParty, CurrentRows, list[str]]:
    federation, said = read_federation(folder), list[str]()
    party = read_guest(folder, federation)
    files = CurrentRows(folder, federation, party, said.append)
    return _opened_guest(folder, federation, party, DiskStorage(folder / "state"), Machine()), files, said


def touched(path: Path, frame: pd.DataFrame) -> None:
    frame.to_parquet(path, index=False)
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 10**9))  # on coarse clocks, too


def test_nothing_is_read_again_as_long_as_nothing_changes(folder: Path) -> None:
    guest, files, _ = opened(folder)
    assert files.look(guest.schema) is None
    assert not (folder / "state" / "current-0").exists()


def test_a_changed_table_is_read_with_the_scales_of_training(folder: Path) -> None:
    guest, files, _ = opened(folder)
    table = pd.read_parquet(folder / "table.parquet")
    slot = dict(pd.read_parquet(folder / "slots.parquet").itertuples(index=False))
    table.loc[0, "a"] += 1.0
    touched(folder / "table.parquet", table)
    tables = files.look(guest.schema)
    assert tables is not None and [one.rows for one in tables] == [ROWS, TESTED]
    before, after = guest.tables[0], tables[0]
    assert after.schema == before.schema
    changed = np.flatnonzero((after.take(np.arange(ROWS)) != before.take(np.arange(ROWS))).any(1))
    assert after.slots[changed].tolist() == [slot[table.loc[0, "id"]]]
    assert files.look(guest.schema) is None


def test_rows_without_a_slot_are_left_out_and_rows_that_were_aligned_later_have_theirs(folder: Path) -> None:
    guest, files, _ = opened(folder)
    table = pd.read_parquet(folder / "table.parquet")
    new = table.iloc[:2].assign(id=["newcomer", "nobody"])
    touched(folder / "table.parquet", pd.concat([table, new]))
    pd.DataFrame({"id": ["newcomer"], "slot": pd.Series([ROWS + TESTED + 3], dtype="int32")}).to_parquet(
        folder / "state" / "later.parquet"
    )
    tables = files.look(guest.schema)
    assert tables is not None and tables[0].rows == ROWS + 1
    assert ROWS + TESTED + 3 in tables[0].slots


def test_a_file_that_cannot_be_used_changes_nothing_and_is_said(folder: Path) -> None:
    guest, files, said = opened(folder)
    table = pd.read_parquet(folder / "table.parquet")
    touched(folder / "table.parquet", table.drop(columns="a"))
    assert files.look(guest.schema) is None
    assert len(said) == 1 and "rows are encoded as they were before" in said[0] and "'a'" in said[0]
    assert files.look(guest.schema) is None and len(said) == 1
    touched(folder / "table.parquet", table)
    assert files.look(guest.schema) is not None


# Answers.


def planned(folder: Path) -> Plan:
    return replace(read_federation(folder).plan("0" * 32, Slots(ROWS, TESTED + 10)), guest_epochs=1, period=1)


def trained(folder: Path) -> tuple[GuestParty, Plan]:
    plan = planned(folder)
    federation = read_federation(folder)
    own = opened(folder)[0]
    guest = GuestParty(
        GUEST,
        own.tables[0],
        own.tables[1],
        MemoryStorage(),
        plan_key().public_key(),
        federation=federation.hash,
        now_ms=1,
        log=print,
        lineage=1,
    )
    text = sign(plan, "train", 1, plan_key()).text()
    guest.welcomed("host-1", Welcome("host-1", 1, 1, 0, 0, False, False, False, False, text))
    return guest, plan


def asked(answers: GuestAnswers, *slots: int, run: str = "0" * 32, left_ms: int = 5000) -> Fresh | Here | Refused:
    question = encode(Ask(run, left_ms, np.array(slots, np.int32)))
    return decode(asyncio.run(answers._answer("host-1", question)), Fresh, Here, Refused)


def said(answers: GuestAnswers) -> tuple[str, str, str]:
    here = asked(answers, run="")
    assert isinstance(here, Here)
    return here.guest, here.run, here.origin


def test_it_answers_when_it_is_trained_with_the_rows_it_has(folder: Path) -> None:
    guest, plan = trained(folder)
    answers = GuestAnswers(guest, Machine(), None)
    assert isinstance(asked(answers, 3), Refused)
    while not guest.trained:
        guest.train()
    swept = {int(slot): row for one in guest.sweep() for slot, row in zip(one.slots, one.values, strict=True)}
    answer = asked(answers, 3, ROWS + 1, plan.all_slots - 1)
    assert isinstance(answer, Fresh)
    assert answer.encoder == guest.encoder_hash and sorted(answer.slots) == [3, ROWS + 1]
    for slot, row in zip(answer.slots, answer.values, strict=True):
        np.testing.assert_allclose(row, swept[int(slot)], atol=1e-6)
    (origin,) = {one.sweep.origin for one in guest.sweep() if one.sweep is not None}
    assert answer.origin == origin and said(answers) == (GUEST, plan.run, origin)
    nothing = asked(answers, plan.all_slots - 1)
    assert isinstance(nothing, Fresh) and len(nothing.slots) == 0


def test_it_says_that_it_is_there_at_any_time_and_refuses_what_it_cannot_answer(folder: Path) -> None:
    guest, plan = trained(folder)
    answers = GuestAnswers(guest, Machine(), None)
    assert said(answers) == (GUEST, plan.run, "")
    while not guest.trained:
        guest.train()
    assert said(answers) == (GUEST, plan.run, "")  # its encoder is not made yet
    assert isinstance(asked(answers, 3, run="1" * 32), Refused)
    assert isinstance(asked(answers, plan.all_slots), Refused)
    assert isinstance(asked(answers, *range(40), left_ms=0), Refused)
    assert guest.counts["messages_dropped"] == 1


def test_no_more_of_a_large_table_is_read_than_was_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dvfl.federation.tables.table.IN_MEMORY", 0)
    guest, _ = trained(folder)
    while not guest.trained:
        guest.train()
    taken: list[int] = []
    take = Table.take
    monkeypatch.setattr(Table, "take", lambda self, rows: taken.append(len(rows)) or take(self, rows))
    assert isinstance(asked(GuestAnswers(guest, Machine(), None), 3, 5), Fresh)
    assert taken == [2]
