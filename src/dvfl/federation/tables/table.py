"""A guest's own table, of any size: prepared once as standardised numbers in a file, read from there a batch at a time.

Nothing here holds the whole table in memory: the source is read block by block, and batches by positioned reads. (A
memory map would do as well, but the pages it touches count as the process's own.)
"""

import hashlib
import json
import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dvfl.data.tables.blocks import TableFile, open_blocks
from dvfl.data.tables.columns import Column, ColumnEncoder
from dvfl.data.tables.kinds import PLURAL, Kind
from dvfl.data.tables.reading import check_file, naming
from dvfl.data.tables.survey import Survey
from dvfl.errors import UserError
from dvfl.federation.tables.slots import find_slots
from dvfl.files import replacing, write_bytes, write_json, writing

Values = Literal["standardise", "unit"]
Schema = dict[str, Any]  # plain data: "values", "source" (every column's name and kind) and "encoder"

IN_MEMORY = 256 << 20  # bytes up to which the prepared rows are simply held
_FORMAT = 1
_ROWS, _SLOTS, _ABOUT = "prepared.f32", "prepared.slots", "prepared.json"
_HEAD = 1 << 20  # bytes at either end of the source that are hashed


class Surveyed(NamedTuple):
    """A table that was read and not prepared."""

    rows: int
    width: int
    schema: Schema
    ids: pa.ChunkedArray


class Table:
    """Prepared rows: their numbers on request, and the slot of each."""

    def __init__(self, folder: Path, rows: int, width: int, schema: Schema, identity: str) -> None:
        self.rows, self.width, self.schema, self.identity = rows, width, schema, identity
        self.slots: NDArray[np.int32] = np.fromfile(folder / _SLOTS, np.int32)
        self._path = folder / _ROWS
        self._held: NDArray[np.float32] | None = None
        if rows * width * 4 <= IN_MEMORY:
            self._held = np.fromfile(self._path, np.float32).reshape(rows, width)
            return
        self._file = os.open(self._path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def take(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """The rows of these numbers, in this order: (n, width)."""
        rows = np.asarray(rows, np.int64)
        if len(rows) and (rows.min() < 0 or rows.max() >= self.rows):
            raise IndexError(f"rows from {rows.min()} to {rows.max()} of a table of {self.rows}")
        out = np.empty((len(rows), self.width), np.float32)
        if self._held is not None:
            return self._held.take(rows, axis=0, out=out)
        # Rows that follow each other are read together: a sweep reads its rows in order.
        starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
        for start, stop in zip(starts, np.append(starts, len(rows))[1:], strict=True):
            wanted = int(stop - start) * self.width * 4
            content = os.pread(self._file, wanted, int(rows[start]) * self.width * 4)
            if len(content) < wanted:
                raise UserError(f"{self._path} has become shorter; remove its folder, and it is prepared again")
            out[start:stop] = np.frombuffer(content, np.float32).reshape(-1, self.width)
        return out


def open_table(
    path: Path,
    *,
    id_column: str,
    slots: Path,
    prepared: Path,
    values: Values,
    schema: Schema | None,
    some: bool = False,
    later: Path | None = None,
) -> Table:
    """The table in `path`, prepared in the folder `prepared` unless an earlier start did it and nothing has changed.

    `schema` is that of the training rows, from a checkpoint or for test rows; None: these are the training rows. With
    `some`, rows without a slot are left out: they have come since. `later` has slots of such rows.
    """
    check_file(path)
    check_file(slots)
    origin = {
        "format": _FORMAT,
        "table": _fingerprint(path),
        "slots": _fingerprint(slots),
        "id_column": id_column,
        "values": values,
        "later": None if later is None else _fingerprint(later),
    }
    about = _prepared_before(prepared, origin, schema)
    if about is None:
        with writing(prepared), naming(path):
            file, ids = open_blocks(path, id_column, None if schema is None else _kinds(schema))
            found = find_slots(ids, path, id_column, slots, some=some, later=later)
            del ids  # they may be as large as a column of text, and the columns come next
            encoder, now = _learn(file, values, schema)
            about = {
                **origin,
                "fitted": schema is None,
                "rows": int((found >= 0).sum()),
                "width": encoder.width,
                "schema": now,
            }
            _write(prepared, file, encoder, found, about)
    return Table(prepared, about["rows"], about["width"], about["schema"], _identity(about))


def read_prepared(folder: Path) -> Table:
    """What a start of the party prepared in a folder, as it was then; nothing there is touched."""
    try:
        about = json.loads((folder / _ABOUT).read_text())
        return Table(folder, about["rows"], about["width"], about["schema"], _identity(about))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder}: no rows are prepared there ({error}); start the guest once") from None


def survey_table(path: Path, *, id_column: str, values: Values, schema: Schema | None) -> Surveyed:
    """What `open_table` would find, without preparing or writing anything."""
    check_file(path)
    with naming(path):
        file, ids = open_blocks(path, id_column, None if schema is None else _kinds(schema))
        encoder, now = _learn(file, values, schema)
    return Surveyed(len(ids), encoder.width, now, ids)


def check_schema(saved: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raises where the columns are no longer those that training began with."""
    before, after = _kinds(saved), _kinds(now)
    mend = "or start a new run"
    if saved.get("values") != now["values"]:
        raise UserError(f"values = '{now['values']}' was not so when training began; put it back, {mend}")
    for name in before:
        if name not in after:
            raise UserError(f"the column '{name}', which was there when training began, is gone; bring it back, {mend}")
    for name in after:
        if name not in before:
            raise UserError(f"the column '{name}' was not there when training began; take it out, {mend}")
    for name, kind in before.items():
        # A file with nothing but 0 and 1 in a column may be read as either.
        if after[name] != kind and {after[name], kind} != {"number", "boolean"}:
            raise UserError(
                f"the column '{name}' held {PLURAL[kind]} when training began and now holds {PLURAL[after[name]]};"
                f" write it as before, {mend}"
            )


def _kinds(schema: Mapping[str, Any]) -> dict[str, Kind]:
    try:
        return {column["name"]: column["kind"] for column in schema["source"]}
    except (KeyError, TypeError) as error:
        raise UserError(f"not a saved schema of a table ({error})") from error


def _learn(file: TableFile, values: Values, schema: Schema | None) -> tuple[ColumnEncoder, Schema]:
    """How to encode the file's columns, from its rows or from the schema that they must match."""
    now: Schema = {
        "values": values,
        "source": [{"name": name, "kind": kind} for name, kind in file.kinds.items()],
    }
    if schema is not None:
        check_schema(schema, now)
    survey = Survey(file.kinds)
    for frame in file.blocks():
        survey.add(frame)
    survey.refuse_infinite()
    fitted = _as_they_are(survey) if values == "unit" else None
    if schema is not None:
        return ColumnEncoder.from_dict(schema.get("encoder", {})), schema
    encoder = fitted or survey.encoder()
    return encoder, {**now, "encoder": encoder.to_dict()}


def _as_they_are(survey: Survey) -> ColumnEncoder:
    """For columns that lie between 0 and 1: all are taken, constant ones too, since their place has a meaning."""
    right = "with values = 'unit' every column is numbers from 0 to 1, none missing"
    for name, kind in survey.kinds.items():
        if kind != "number":
            raise UserError(f"the column '{name}' holds {PLURAL[kind]}; {right}")
    for name, count, low, high in zip(
        survey.numeric, survey.moments.count, survey.moments.low, survey.moments.high, strict=True
    ):
        if count < survey.rows:
            raise UserError(f"the column '{name}' lacks {survey.rows - count} of {survey.rows} values; {right}")
        if low < 0 or high > 1:
            raise UserError(f"the column '{name}' holds numbers from {low:g} to {high:g}; {right}")
    return ColumnEncoder.of([Column(name, "number", 0, False, 0.0, 1.0) for name in survey.numeric])


def _write(
    folder: Path, file: TableFile, encoder: ColumnEncoder, slots: NDArray[np.int32], about: dict[str, Any]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # First of all, so that what it says is never said of other files; and what a killed start left behind.
    for old in (folder / _ABOUT, *folder.glob(".prepared.*")):
        old.unlink(missing_ok=True)
    with replacing(folder / _ROWS) as temporary, temporary.open("wb") as out:
        at = 0
        for frame in file.blocks():
            has = slots[at : at + len(frame)] >= 0
            at += len(frame)
            if len(has) == len(frame):  # a file that grew meanwhile is refused below
                out.write(np.ascontiguousarray(encoder.transform(frame)[has]).data)
        changed = at != len(slots) or _fingerprint(file.path) != about["table"]
        if changed:
            raise UserError(f"{file.path} was changed while it was read; start again")
    write_bytes(folder / _SLOTS, slots[slots >= 0].tobytes())
    write_json(folder / _ABOUT, about)


def _prepared_before(folder: Path, origin: dict[str, Any], schema: Schema | None) -> dict[str, Any] | None:
    """What an earlier start wrote of itself, where it is whole and of the same files."""
    try:
        about: dict[str, Any] = json.loads((folder / _ABOUT).read_text())
        same = {key: about[key] for key in origin} == origin
        # Training rows learn from themselves; what was encoded by another schema is of no use to them.
        fits = about["schema"] == schema if schema is not None else about["fitted"]
        rows, width = about["rows"], about["width"]
        sizes = [(folder / name).stat().st_size for name in (_ROWS, _SLOTS)]
        return about if same and fits and sizes == [rows * width * 4, rows * 4] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _identity(about: Mapping[str, Any]) -> str:
    """Of what rows were prepared from, and how; by whom they were prepared does not matter."""
    made_from = {name: value for name, value in about.items() if name != "fitted"}
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()


def _fingerprint(path: Path) -> dict[str, Any]:
    """Tells whether a file is still the same, without reading all of it."""
    try:
        state = path.stat()
        with path.open("rb") as file:
            digest = hashlib.sha256(file.read(_HEAD))
            file.seek(max(0, state.st_size - _HEAD))
            digest.update(file.read(_HEAD))
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error
    return {"size": state.st_size, "modified_ns": state.st_mtime_ns, "sha256_of_ends": digest.hexdigest()}
