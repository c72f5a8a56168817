"""A real federation in small: clinics with tables of their own, each party's folder apart from all others'."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd

from dvfl.federation.custody.admission import Changed, admit, check_request, create, remove
from dvfl.federation.custody.enrolment import Request, read_request
from dvfl.federation.custody.founding import write_party
from dvfl.federation.custody.joining import join_as_guest, join_as_host, take
from dvfl.federation.party.configuration import read
from dvfl.federation.party.settings import (
    INVITATION,
    PARTY,
    REQUEST,
    Alignment,
    BrokerEntry,
    GuestData,
    Optimiser,
    OwnerData,
    OwnerFile,
    OwnerHead,
    Slots,
    Training,
)

ROWS, TESTED = 96, 32
NAME = "clinics"
TRAINING = Training(0, "table", 16, 3, 4, 1, Optimiser("adam", 0.01), Optimiser("adam", 0.01), w_g=12, w_h=8)
HEAD = OwnerHead(Optimiser("sgd", 0.1), epochs=20, batch=16, dropout=0.1)


def chosen(columns: Sequence[int]) -> tuple[int | None, int | None]:
    """A preset that leaves the widths alone."""
    return None, None


@dataclass(frozen=True)
class Clinics:
    """The places where the parties live; what they send each other is only read from there."""

    root: Path

    @property
    def owner(self) -> Path:
        return self.root / "ministry" / "owner"

    @property
    def invitation(self) -> Path:
        return self.owner / INVITATION

    def folder(self, party: str) -> Path:
        return self.root / f"site-of-{party}" / party

    def create(self, name: str = NAME) -> "Clinics":
        data = OwnerData("labels.parquet", test_labels="test_labels.parquet")
        create(self.owner, name, TRAINING, HEAD, data, {"preset": "tuned"}, Alignment("given"), now=datetime.now(UTC))
        return self

    def join(self, party: str, *, port: int = 4222) -> Request:
        """As a host if its name says so, else as a guest with its table and slots."""
        folder = self.folder(party)
        if party.startswith("host"):
            address = f"127.0.0.1:{port}"
            return join_as_host(folder, self.invitation, party, BrokerEntry(address), address)
        self.write_table(party)
        return join_as_guest(folder, self.invitation, party, GuestData(test_table="test_table.parquet"), "standardise")

    def admit(self, party: str, *, replacing: bool = False, now: datetime | None = None) -> Changed:
        request = read_request(self.folder(party) / REQUEST)
        check_request(self.owner, request, replacing=replacing)
        return admit(self.owner, request, chosen, now=now or datetime.now(UTC))

    def remove(self, party: str) -> Changed:
        return remove(self.owner, party, chosen)

    def take(self, party: str, file: Path, *, now: datetime | None = None) -> None:
        take(self.folder(party), file, now=now or datetime.now(UTC))

    def enter(self, party: str, *, port: int = 4222) -> Changed:
        """Joined, admitted, and the answer taken by all who were admitted before, too."""
        self.join(party, port=port)
        changed = self.admit(party)
        for one in (party, *changed.others):
            self.take(one, changed.file)
        return changed

    def write_table(self, party: str) -> Path:
        """A guest's rows: numbers that tell something of the label, and a category."""
        rng = np.random.default_rng(sum(party.encode()))
        x = rng.normal(size=(ROWS + TESTED, 3)) + 2 * self._labels()[:, None]
        frame = pd.DataFrame({"id": self._ids(), "a": x[:, 0], "b": x[:, 1], "c": x[:, 2]})
        frame["ward"] = rng.choice(["north", "south", "west"], len(frame))
        folder = self.folder(party)
        folder.mkdir(parents=True, exist_ok=True)
        frame[:ROWS].sample(frac=1, random_state=1).to_parquet(folder / "table.parquet", index=False)
        frame[ROWS:].to_parquet(folder / "test_table.parquet", index=False)
        self._write_slots(folder)
        return folder / "table.parquet"

    def write_labels(self) -> None:
        """The owner's labels and slots, and how many slots there are."""
        self.write_label_files()
        write_party(self.owner, replace(read(OwnerFile, self.owner / PARTY), slots=Slots(ROWS, TESTED)))

    def write_label_files(self) -> None:
        """The owner's labels and slots, which may be there before the federation is."""
        self.owner.mkdir(parents=True, exist_ok=True)
        frame = pd.DataFrame({"id": self._ids(), "label": np.where(self._labels() == 1, "ill", "well")})
        frame[:ROWS].to_parquet(self.owner / "labels.parquet", index=False)
        frame[ROWS:].to_parquet(self.owner / "test_labels.parquet", index=False)
        self._write_slots(self.owner)

    def _write_slots(self, folder: Path) -> None:
        rng = np.random.default_rng(7)
        slots = np.concatenate([rng.permutation(ROWS), ROWS + rng.permutation(TESTED)])
        pd.DataFrame({"id": self._ids(), "slot": slots}).to_parquet(folder / "slots.parquet", index=False)

    def _ids(self) -> list[str]:
        return [f"patient-{number:03d}" for number in range(ROWS + TESTED)]

    def _labels(self) -> np.ndarray:
        return np.random.default_rng(3).integers(2, size=ROWS + TESTED)
