"""Which slot each row of a table has: its ids, looked up in `slots.parquet`."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import types

from dvfl.data.tables.reading import WHOLE, check_file, first_line, is_parquet, offer
from dvfl.errors import UserError

MOST_SLOTS = 2**31  # a slot is an int32 on the wire
_AT_ONCE = 2_000_000  # ids that are hashed at once: for all of 10 million it would take 850 MB
_AGAIN = "align the table again"


def find_slots(
    ids: pa.ChunkedArray, table: Path, id_column: str, slots: Path, *, some: bool = False, later: Path | None = None
) -> NDArray[np.int32]:
    """The slot of every row of `table`; raises for repeated ids and for those that have none, never showing them.

    With `some`, rows may have come since, or be nobody else's: -1 where there is no slot. `later` has more of them.
    """
    missing = ids.null_count
    if missing:
        raise UserError(f"{table}: {missing} of {len(ids)} rows have no '{id_column}'; every row needs one")
    ids = _plain(ids, table, id_column)
    try:
        found = _look_up(ids, table, id_column, slots)
        if later is not None:
            found = np.maximum(found, _look_up(ids, table, id_column, later))
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{slots} cannot be read as .parquet: {first_line(error)}") from error
    lost = int((found < 0).sum())
    if lost and (not some or lost == len(found)):
        raise UserError(f"{table}: {lost} of {len(ids)} rows have an '{id_column}' without a slot in {slots}; {_AGAIN}")
    doubled = _repeats(found[found >= 0])  # slots do not repeat, so it is the ids
    if doubled:
        raise UserError(f"{table}: {doubled} of {len(ids)} rows repeat an earlier '{id_column}'; each may occur once")
    return found


def _look_up(ids: pa.ChunkedArray, table: Path, id_column: str, slots: Path) -> NDArray[np.int32]:
    """The slot of every id, -1 where it has none."""
    if check_file(slots) != ".parquet":
        raise UserError(f"{slots}: slots lie in a .parquet file with the columns 'id' and 'slot'")
    found = np.full(len(ids), -1, np.int32)
    numbers: list[NDArray[np.int32]] = []
    with pq.ParquetFile(slots) as file:
        _check_columns(file.schema_arrow, slots)
        for batch in file.iter_batches(_AT_ONCE, columns=["id", "slot"]):
            known = _plain(batch.column("id"), slots, "id")
            ids = _alike(ids, known.type, table, id_column, slots)
            known = pc.cast(known, ids.type)
            number = _numbers(batch.column("slot"), slots)
            place = pc.fill_null(pc.index_in(ids, value_set=known), -1).to_numpy()
            rows = np.flatnonzero(place >= 0)
            if len(known.unique()) < len(known) or (found[rows] >= 0).any():
                raise UserError(f"{slots}: an id occurs in it more than once; {_AGAIN}")
            found[rows] = number[place[rows]]
            numbers.append(number)
    doubled = _repeats(np.concatenate(numbers)) if numbers else 0
    if doubled:
        raise UserError(f"{slots}: {doubled} ids have the slot of another; {_AGAIN}")
    return found


def _plain(ids: pa.Array | pa.ChunkedArray, path: Path, id_column: str) -> pa.Array | pa.ChunkedArray:
    """The ids as int64 or as text, whatever kinds of either the file has."""
    if types.is_dictionary(ids.type):
        ids = pc.cast(ids, ids.type.value_type)
    if _is_text(ids.type):
        return ids
    if types.is_integer(ids.type) or types.is_floating(ids.type):
        try:
            return pc.cast(ids, pa.int64())
        except pa.ArrowInvalid as error:
            raise UserError(
                f"{path}: the ids in '{id_column}' are not all whole numbers of 64 bits; write them as text"
            ) from error
    raise UserError(f"{path}: the ids in '{id_column}' are of the type {ids.type}; use whole numbers or text")


def _alike(ids: pa.ChunkedArray, wanted: pa.DataType, table: Path, id_column: str, slots: Path) -> pa.ChunkedArray:
    """The table's ids of the type that the slots' ids have; those of CSV, which has none, may be read as numbers."""
    if _is_text(ids.type) == _is_text(wanted):
        return ids
    if not is_parquet(table) and pc.all(pc.match_substring_regex(ids, f"^({WHOLE})$")).as_py():
        with suppress(pa.ArrowInvalid):  # more than 64 bits
            return pc.cast(ids, pa.int64())
    own, other = ("text", "whole numbers") if _is_text(ids.type) else ("whole numbers", "text")
    raise UserError(f"{table}: the ids in '{id_column}' are {own} and those in {slots} are {other}; write them alike")


def _is_text(kind: pa.DataType) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _check_columns(schema: pa.Schema, slots: Path) -> None:
    for name in ("id", "slot"):
        if name not in schema.names:
            raise UserError(f"{slots} has no column '{name}'{offer(name, schema.names)}")
    if not types.is_integer(schema.field("slot").type):
        raise UserError(
            f"{slots}: the column 'slot' is of the type {schema.field('slot').type}; whole numbers are right"
        )


def _numbers(slot: pa.Array, slots: Path) -> NDArray[np.int32]:
    if slot.null_count or pc.min(slot).as_py() < 0 or pc.max(slot).as_py() >= MOST_SLOTS:
        raise UserError(f"{slots}: the column 'slot' must hold whole numbers from 0 to {MOST_SLOTS - 1}; {_AGAIN}")
    number: NDArray[np.int32] = slot.to_numpy().astype(np.int32)
    return number


def _repeats(numbers: NDArray[np.int32]) -> int:
    return int((np.diff(np.sort(numbers)) == 0).sum())
