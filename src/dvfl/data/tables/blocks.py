"""A table file of any size: what its columns hold, and its rows block by block, never all at once."""

import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from dvfl.data.tables.csv_blocks import kind_of_text, text_blocks, values_of_text
from dvfl.data.tables.kinds import Kind
from dvfl.data.tables.reading import check_file, first_line, naming, offer
from dvfl.errors import UserError

VALUES = 1 << 20  # of a block of Parquet, about
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")  # row labels that pandas saved and that have no name


@dataclass(frozen=True)
class TableFile:
    """A file whose columns are known; the ids are apart from them."""

    path: Path
    id_column: str
    kinds: dict[str, Kind]  # of every other column

    def blocks(self) -> Iterator[pd.DataFrame]:
        """The rows in order, as columns of these kinds."""
        suffix = check_file(self.path)
        with _reading(self.path, suffix):
            if suffix == ".parquet":
                yield from _parquet_blocks(self.path, list(self.kinds))
                return
            for batch in text_blocks(self.path, suffix):
                if batch.num_rows:
                    yield pd.DataFrame(
                        {name: values_of_text(batch.column(name), kind) for name, kind in self.kinds.items()}
                    )


def open_blocks(
    path: Path, id_column: str, known: Mapping[str, Kind] | None = None
) -> tuple[TableFile, pa.ChunkedArray]:
    """The file, and the ids of its rows.

    CSV does not say what its columns hold: the whole file is read to find out, and where a column could be of the
    kind that is `known` of it from earlier rows, it is.
    """
    suffix = check_file(path)
    with _reading(path, suffix):
        kinds, ids = (_survey_parquet if suffix == ".parquet" else _survey_csv)(path, suffix, id_column, known or {})
    if len(ids) == 0:
        raise UserError(f"{path} has a header but no rows")
    if not kinds:
        raise UserError(f"{path} has no column besides '{id_column}'; a guest needs at least one")
    return TableFile(path, id_column, kinds), ids


def read_ids(path: Path, id_column: str) -> pa.ChunkedArray:
    """The ids of a table's rows alone."""
    suffix = check_file(path)
    with _reading(path, suffix):
        if suffix == ".parquet":
            with pq.ParquetFile(path) as file:
                _check_names(path, id_column, [n for n in file.schema_arrow.names if not _UNNAMED_INDEX.fullmatch(n)])
                ids = file.read([id_column]).column(0)
        else:
            ids = _text_ids(path, suffix, id_column)
    if len(ids) == 0:
        raise UserError(f"{path} has a header but no rows")
    return ids


def _text_ids(path: Path, suffix: str, id_column: str) -> pa.ChunkedArray:
    chunks: list[pa.Array] = []
    for batch in text_blocks(path, suffix):
        if not chunks:
            _check_names(path, id_column, batch.schema.names)
        chunks.append(batch.column(id_column))
    return pa.chunked_array(chunks)


Surveyed = tuple[dict[str, Kind], pa.ChunkedArray]


def _survey_csv(path: Path, suffix: str, id_column: str, known: Mapping[str, Kind]) -> Surveyed:
    found: dict[str, Kind | None] = {}
    ids: list[pa.Array] = []
    for batch in text_blocks(path, suffix):
        if not ids:
            _check_names(path, id_column, batch.schema.names)
            found = {name: "category" if known.get(name) == "category" else None for name in batch.schema.names}
            del found[id_column]
        for name, before in found.items():
            found[name] = kind_of_text(batch.column(name), before)
        ids.append(batch.column(id_column))
    return {name: kind or known.get(name, "number") for name, kind in found.items()}, pa.chunked_array(ids)


def _survey_parquet(path: Path, suffix: str, id_column: str, known: Mapping[str, Kind]) -> Surveyed:
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        names = [name for name in schema.names if not _UNNAMED_INDEX.fullmatch(name)]
        _check_names(path, id_column, names)
        kinds = {name: _kind(schema.field(name), known) for name in names if name != id_column}
        return kinds, file.read([id_column]).column(0)


def _kind(field: pa.Field, known: Mapping[str, Kind]) -> Kind:
    """What `kind_of` says of the column once pandas has it."""
    kind = field.type
    if types.is_null(kind):
        return known.get(field.name, "number")
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_timestamp(kind) or types.is_date(kind) or types.is_duration(kind):
        return "time"
    if types.is_nested(kind):
        raise UserError(f"the column '{field.name}' holds lists or structures; give each of their parts its own column")
    return "category"


def _parquet_blocks(path: Path, names: list[str]) -> Iterator[pd.DataFrame]:
    # Through a buffer: otherwise a whole row group of every column would be in memory.
    with pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
        for batch in file.iter_batches(max(1024, VALUES // len(names)), columns=names):
            # Without what pandas noted: it would make row labels of columns.
            yield batch.replace_schema_metadata().to_pandas(date_as_object=False)


def _check_names(path: Path, id_column: str, names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"the column name '{twice}' stands for more than one column")
    if id_column not in names:
        raise UserError(f"{path} has no column '{id_column}' to join on{offer(id_column, names)}")


@contextmanager
def _reading(path: Path, suffix: str) -> Iterator[None]:
    """Turns what goes wrong while reading into one line that names the file."""
    try:
        with naming(path):
            yield
    except (OSError, ValueError, EOFError, zlib.error, pa.ArrowException) as error:
        raise UserError(f"{path} cannot be read as {suffix}: {first_line(error)}") from error
