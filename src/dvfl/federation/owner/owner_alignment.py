"""The owner's part of alignment on its own files: all guests asked, its slots and who is present written down."""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dvfl.align.ids import IdRules
from dvfl.align.matching import Matched
from dvfl.align.star.star import star_owner
from dvfl.align.tasks import Owner, Progress, Storage
from dvfl.align.union.union import union_owner
from dvfl.errors import RunFailed, UserError
from dvfl.federation.keys.sealing import Identity
from dvfl.federation.owner.alignment_service import AlignmentService, Silent
from dvfl.federation.party.runtime import Surroundings
from dvfl.federation.party.settings import Federation, OwnerFile
from dvfl.federation.party.tasks import threads
from dvfl.federation.tables.id_files import LATER, SLOTS, later_ids, own_ids, write_slots
from dvfl.federation.transport.line import OwnerLine
from dvfl.files import replacing, write_json, writing

ALIGNMENT, PRESENCE = "alignment.json", "presence.parquet"  # in the state folder
_WITHOUT = "alignment.without"  # guests that were left out


@dataclass(frozen=True)
class Aligned:
    """What alignment came to, as `alignment.json` says it."""

    way: str
    rounds: int  # that are over: 1, and one for each delta
    rows: int  # training rows of the guest that has most
    training: int  # slots
    encode_only: int
    reserve: int  # slots that nobody has yet
    labels: int  # of the owner, test rows too
    unmatched: int  # of those, ids that no guest has
    whole: int  # ids with a label that every guest has
    guests: dict[str, int]  # rows of each
    without: list[str]  # guests that were left out because they did not answer
    seconds: float

    @staticmethod
    def read(folder: Path) -> "Aligned | None":
        """What is written in a party's folder."""
        path = folder / "state" / ALIGNMENT
        return Aligned(**json.loads(path.read_text())) if path.exists() else None


class OwnerAlignment:
    """One round of alignment, from the owner's files to its files."""

    def __init__(self, folder: Path, federation: Federation, party: OwnerFile, storage: Storage) -> None:
        self._folder, self._federation, self._party, self._storage = folder, federation, party, storage
        self.before = Aligned.read(folder)
        self._rules = IdRules(federation.alignment.case)
        data = party.data
        test = None if data.test_labels is None else folder / data.test_labels
        self._own = own_ids(folder / data.labels, test, data.id, self._rules)
        if self.before is not None:
            self._own = later_ids(self._own, folder / "state", self._rules)
        self._owner = self._made()

    @property
    def progress(self) -> Progress:
        return self._owner.progress

    async def run(
        self,
        own: Identity,
        lines: Mapping[str, OwnerLine],
        here: Surroundings,
        *,
        drop: Callable[[str, object], None],
        log: Callable[[str], None],
    ) -> Aligned:
        """Aligns with every guest that answers; leaves out those that do not, as long as there is a quorum."""
        began = time.monotonic()
        silence_s = self._federation.alignment.silence_s
        while True:
            service = AlignmentService(self._owner, own, lines, here, deadline_s=silence_s, drop=drop, log=log)
            try:
                await service.run()
                break
            except Silent as silent:
                self._leave_out(silent.guests, log)
        return self._write(self._owner.result, time.monotonic() - began)

    def _made(self) -> Owner:
        alignment = self._federation.alignment
        guests = tuple(name for name in self._federation.guests if name not in self._without())
        side = star_owner if alignment.way == "star" else union_owner
        return side(
            self._party.party,
            self._own.rows,
            guests,
            self._rules,
            self._storage,
            secret=secrets.token_bytes(32),
            reserve=alignment.reserve,
            pad=alignment.pad,
            threads=threads(),
            round=0 if self.before is None else self.before.rounds,
        )

    def _without(self) -> list[str]:
        kept = self._storage.get(_WITHOUT)
        return json.loads(kept) if kept else []

    def _leave_out(self, silent: list[str], log: Callable[[str], None]) -> None:
        without = [*self._without(), *silent]
        left = [guest for guest in self._federation.guests if guest not in without]
        said = f"no answer from {', '.join(silent)} within {self._federation.alignment.silence_s:.0f} s"
        if self.before is not None or len(left) < max(1, self._federation.quorum.guests):
            raise RunFailed(f"{self._party.party}: {said}; start them, or take them out with dvfl federation remove")
        log(f"{said}; this run goes on without, and they take part in the next")
        self._storage.drop("align.")
        self._storage.put(_WITHOUT, json.dumps(without).encode())
        self._owner = self._made()

    def _write(self, result: Matched, seconds: float) -> Aligned:
        state, before = self._folder / "state", self.before
        slots = result.slots[self._party.party]
        if before is None and (slots.train < 0).all():
            self._storage.drop("align.")  # once that is mended, all begins anew
            raise UserError(
                f"{self._folder / self._party.data.labels}: no guest has any of its {len(slots.train)} ids; do all"
                " parties write them alike, and with the same case in [alignment]?"
            )
        if before is None:
            write_slots(state / SLOTS, self._own, slots)
        else:
            write_slots(state / LATER, self._own, slots, earlier=state / LATER)
        with writing(state / PRESENCE), replacing(state / PRESENCE, private=True) as temporary:
            columns = {guest: result.presence[:, place] for place, guest in enumerate(result.guests)}
            pq.write_table(pa.table({"slot": np.arange(len(result.presence), dtype=np.int32), **columns}), temporary)
        has = np.concatenate(slots)
        aligned = Aligned(
            way=self._federation.alignment.way,
            rounds=1 if before is None else before.rounds + 1,
            rows=int(result.presence[: result.training].sum(0).max()),
            training=result.training,
            encode_only=result.encode_only,
            reserve=result.reserve,
            labels=len(has) + (before.labels if before else 0),
            unmatched=result.unmatched + (before.unmatched if before else 0),
            whole=int(result.presence[has[has >= 0]].all(1).sum()) + (before.whole if before else 0),
            guests={guest: int(result.presence[:, place].sum()) for place, guest in enumerate(result.guests)},
            without=self._without(),
            seconds=seconds,
        )
        with writing(state / ALIGNMENT):
            write_json(state / ALIGNMENT, asdict(aligned))
        return aligned
