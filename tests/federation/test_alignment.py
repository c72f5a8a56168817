"""`dvfl align` and what guests and owner have afterwards, with real processes and a real broker."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dvfl.cli.app import main
from dvfl.federation.custody.founding import OWNER, Founding, found, write_federation
from dvfl.federation.local.supervisor import Supervisor
from dvfl.federation.owner.owner_alignment import Aligned
from dvfl.federation.party.lifecycle import STATUS
from dvfl.federation.party.settings import (
    Alignment,
    GuestEntry,
    Optimiser,
    OwnerHead,
    Quorum,
    Training,
    read_federation,
)

GUESTS, HOST = ("guest-1", "guest-2"), "host-1"
TRAINING = Training(0, "table", 16, 3, 4, 1, Optimiser("adam", 0.01), Optimiser("adam", 0.01), w_g=8, w_h=8)
HEAD = OwnerHead(Optimiser("sgd", 0.1), epochs=5, batch=16)
PATIENCE_S = 60.0


def made(folder: Path, ids: dict[str, list[str]], alignment: Alignment | None = None, quorum: int = 1) -> Path:
    """A federation whose parties have these ids."""
    alignment = alignment or Alignment(reserve=20)
    entries = dict.fromkeys(GUESTS, GuestEntry(1))
    found(folder, Founding("kin", entries, (HOST,), TRAINING, HEAD, False, {}, alignment))
    for place in (folder, *(folder / party for party in (*GUESTS, HOST, OWNER))):
        write_federation(place, replace(read_federation(place), quorum=Quorum(guests=quorum)))
    for party, own in ids.items():
        write(folder, party, own)
    return folder


def write(folder: Path, party: str, ids: list[str]) -> None:
    draw = np.random.default_rng(len(ids))
    if party == OWNER:
        labels = pd.DataFrame({"id": ids, "label": draw.integers(2, size=len(ids))})
        labels.to_parquet(folder / party / "labels.parquet", index=False)
    else:
        table = pd.DataFrame({"id": ids, "a": draw.normal(size=len(ids))})
        table.to_parquet(folder / party / "table.parquet", index=False)


@contextmanager
def running(folder: Path, *parties: str) -> Iterator[Supervisor]:
    supervisor = Supervisor(folder)
    try:
        for party in parties:
            supervisor.start_party(party)
        yield supervisor
    finally:
        supervisor.stop()


def connected(folder: Path, guest: str) -> None:
    """Waits until a guest has reached the broker."""
    until = time.monotonic() + PATIENCE_S
    while True:
        with suppress(OSError, ValueError, KeyError):
            if json.loads((folder / guest / STATUS).read_text())["connected"]:
                return
        assert time.monotonic() < until
        time.sleep(0.05)


def slots(folder: Path, party: str, file: str = "slots.parquet") -> dict[str, int]:
    table = pd.read_parquet(folder / party / "state" / file)
    return dict(zip(table["id"], table["slot"].tolist(), strict=True))


def people(first: int, last: int) -> list[str]:
    return [f"person {number}" for number in range(first, last)]


IDS = {"guest-1": people(0, 60), "guest-2": people(30, 90), OWNER: people(40, 100)}


@pytest.mark.parametrize("way", ["union", "star"])
def test_rows_of_one_person_have_one_slot_and_rows_that_come_later_get_theirs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    folder = made(tmp_path / "kin", IDS, Alignment(way, reserve=20))  # type: ignore[arg-type]
    align = ["align", str(folder / OWNER)]
    with running(folder, HOST, *GUESTS):
        assert main(align) == 0
        told = capsys.readouterr().out
        assert "60, of which 20 are known to all guests" in told and "10 labels that no guest has" in told
        first = {party: slots(folder, party) for party in IDS}
        assert set(first["guest-1"]) == set(IDS["guest-1"]) and set(first[OWNER]) == set(people(40, 90))
        for one in people(40, 60):
            assert first["guest-1"][one] == first["guest-2"][one] == first[OWNER][one]
        assert (first["guest-1"]["person 35"] == first["guest-2"]["person 35"]) == (way == "union")
        aligned = Aligned.read(folder / OWNER)
        assert aligned is not None
        assert (aligned.training, aligned.reserve) == (90 if way == "union" else 100, 20)
        # Somebody whom guest-2 knows already, somebody whom nobody knows, and a label for each.
        write(folder, "guest-1", [*people(0, 60), "person 61", "newcomer"])
        write(folder, OWNER, [*people(40, 100), "newcomer"])
    with running(folder, HOST, *GUESTS):
        assert main(align) == 0
        later = slots(folder, "guest-1", "later.parquet")
        assert set(later) == {"person 61", "newcomer"}
        assert later["newcomer"] == slots(folder, OWNER, "later.parquet")["newcomer"] >= aligned.training
        if way == "union":
            assert later["person 61"] == first["guest-2"]["person 61"]
        assert slots(folder, "guest-1") == first["guest-1"]


def test_a_guest_that_never_comes_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path / "kin", IDS, Alignment(silence_s=5.0))
    with running(folder, HOST, "guest-1"):
        connected(folder, "guest-1")
        assert main(["align", str(folder / OWNER)]) == 0
    told = capsys.readouterr()
    assert "guest-2: no answer; in the next run" in told.out
    assert "no answer from guest-2 within 5 s; this run goes on without" in told.err
    assert slots(folder, OWNER).keys() == set(people(40, 60))


def test_below_the_quorum_it_ends_and_names_who_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path / "kin", IDS, Alignment(silence_s=5.0), quorum=2)
    with running(folder, HOST, "guest-1"):
        connected(folder, "guest-1")
        assert main(["align", str(folder / OWNER)]) == 1
    assert "no answer from guest-2 within 5 s; start them, or take them out" in capsys.readouterr().err


def test_no_id_in_common_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path / "kin", {**IDS, OWNER: people(200, 230)})
    with running(folder, HOST, *GUESTS):
        assert main(["align", str(folder / OWNER)]) == 2
    assert "labels.parquet: no guest has any of its 30 ids" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([*people(0, 9), "person 3", " person 3"], "2 of 11 rows repeat an earlier 'id'"),
        ([0.5, 1.5, 2.5], "looks like a feature"),
        ([True, False], "'id'"),
    ],
)
def test_a_guest_whose_ids_cannot_be_aligned_ends_and_shows_none(tmp_path: Path, ids: list[str], said: str) -> None:
    folder = made(tmp_path / "kin", {**IDS, "guest-1": ids})
    with running(folder, "guest-1") as supervisor:
        process = supervisor.processes["guest-1"]
        until = time.monotonic() + PATIENCE_S
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        assert process.poll() == 2
        words = supervisor.last_words("guest-1")
    assert said in words and "table.parquet" in words and "person" not in words


def test_slots_that_are_given_need_no_alignment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path / "kin", IDS, Alignment("given"))
    assert main(["align", str(folder / OWNER)]) == 2
    assert "[alignment] way = 'given'" in capsys.readouterr().err


def test_another_folder_than_the_owners_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path / "kin", IDS)
    assert main(["align", str(folder / "guest-1")]) == 2
    assert main(["align", str(folder / "nowhere")]) == 2
    assert "no such folder" in capsys.readouterr().err
