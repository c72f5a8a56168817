"""Ids in a party's own files, and the files of the slots that alignment gave them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import types

from dvfl.align.ids import IdRules, normalised
from dvfl.align.matching import Slots
from dvfl.align.rows import Rows
from dvfl.data.tables.blocks import read_ids
from dvfl.federation.party.settings import Alignment
from dvfl.files import replacing, writing

SLOTS, LATER = "slots.parquet", "later.parquet"  # in the state folder: a new run aligns anew


class OwnIds(NamedTuple):
    """A party's ids: as in its files, and as alignment compares them. Training rows first, then test rows."""

    written: tuple[pa.ChunkedArray, pa.ChunkedArray]
    rows: Rows


def slots_file(folder: Path, named: str, alignment: Alignment) -> Path:
    """Where a party's slots are: those that it was given, or those that alignment drew."""
    return folder / named if alignment.way == "given" else folder / "state" / SLOTS


def own_ids(table: Path, test: Path | None, id_column: str, rules: IdRules) -> OwnIds:
    """Reads them; what is wrong with them is said without showing any."""
    columns = [read_ids(path, id_column) for path in (table, test) if path is not None]
    rows = [
        normalised(column, rules, str(path), id_column) for column, path in zip(columns, (table, test), strict=False)
    ]
    if test is None:
        columns.append(columns[0].slice(0, 0))
        rows.append([])
    return OwnIds((columns[0], columns[1]), Rows(*rows))


def later_ids(own: OwnIds, state: Path, rules: IdRules) -> OwnIds:
    """Those of them that have no slot yet, all as rows that are only ever encoded."""
    known = {
        one
        for path in (state / SLOTS, state / LATER)
        if path.exists()
        for one in normalised(pq.read_table(path, columns=["id"]).column(0), rules, str(path), "id")
    }
    parts = [[at for at, one in enumerate(rows) if one not in known] for rows in own.rows]
    written = [column.take(pa.array(new, pa.int64())) for column, new in zip(own.written, parts, strict=True)]
    later = [rows[at] for rows, new in zip(own.rows, parts, strict=True) for at in new]
    return OwnIds((own.written[0].slice(0, 0), _joined(written)), Rows([], later))


def write_slots(path: Path, own: OwnIds, slots: Slots, earlier: Path | None = None) -> None:
    """Writes `id` and `slot` of the rows that have one; with `earlier`, after what that file holds."""
    columns, numbers = [*own.written], [*slots]
    if earlier is not None and earlier.exists():
        before = pq.read_table(earlier)
        columns.insert(0, before.column("id"))
        numbers.insert(0, before.column("slot").to_numpy())
    slot: NDArray[np.int32] = np.concatenate(numbers)
    has = pa.array(slot >= 0)
    table = pa.table({"id": _joined(columns).filter(has), "slot": pa.array(slot).filter(has)})
    with writing(path), replacing(path, private=True) as temporary:  # it links ids to what travels
        pq.write_table(table, temporary)


def _joined(columns: Sequence[pa.ChunkedArray] | Iterable[pa.ChunkedArray]) -> pa.ChunkedArray:
    """One after the other: whole numbers where all are, else text."""
    plain = [pc.cast(one, one.type.value_type) if types.is_dictionary(one.type) else one for one in columns]
    whole = all(types.is_integer(one.type) or types.is_floating(one.type) for one in plain)
    kind = pa.int64() if whole else pa.large_string()
    return pa.chunked_array([chunk for one in plain for chunk in pc.cast(one, kind).chunks], kind)
