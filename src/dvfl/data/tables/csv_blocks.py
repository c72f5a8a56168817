"""Reads CSV as text, block by block, and says what a column of such text holds."""

import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path
from threading import Event
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from dvfl.data.tables.kinds import Kind
from dvfl.data.tables.reading import SEPARATORS, dates

BLOCK = 4 << 20  # bytes of text; a longer row cannot be read
# What pandas takes for a missing value, a true and a false one: whole tables are read by it.
MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
TRUE, FALSE = ("True", "TRUE", "true"), ("False", "FALSE", "false")
_STOP_S = 1.0  # one that has read far ahead does not look any more
_END = b"\n" * 16  # blank lines are no rows, unless a quoted value swallows them


def text_blocks(path: Path, suffix: str) -> Iterator[pa.RecordBatch]:
    """The rows as columns of text, null where missing; the first block has none, only the columns."""
    try:
        with _reader(path, suffix, []) as reader:
            header: list[str] = reader.schema.names
        # As pandas names a column without a name; a frame saved with its row numbers has one.
        names = [name or f"Unnamed: {i}" for i, name in enumerate(header)]
        yield pa.RecordBatch.from_arrays([pa.array([], pa.string())] * len(names), names=names)
        last = None
        with _reader(path, suffix, header) as reader:
            for batch in reader:
                yield pa.RecordBatch.from_arrays(batch.columns, names=names)
                last = batch.column(len(names) - 1)[-1].as_py() if batch.num_rows else last
    except pa.ArrowInvalid as error:
        raise ValueError(_in_words(str(error))) from error
    if last is not None and last.endswith(_END.decode()):
        raise ValueError("a quoted value near its end is never closed")


def kind_of_text(text: pa.Array, before: Kind | None) -> Kind | None:
    """What the column holds, given what the blocks before held; None as long as all values are missing."""
    text = text.drop_null()
    if len(text) == 0 or before == "category":
        return before
    if before in (None, "number") and _numbers(text) is not None:
        return "number"
    if before in (None, "boolean") and pc.all(pc.is_in(text, pa.array(TRUE + FALSE))).as_py():
        return "boolean"
    if before in (None, "time") and pd.api.types.is_datetime64_any_dtype(dates(text.to_pandas()).dtype):
        return "time"
    return "category"  # also where blocks differ: what is text somewhere is text everywhere


def values_of_text(text: pa.Array, kind: Kind) -> NDArray[np.float64] | pd.Series:
    """The column as what `kind_of_text` said of the whole."""
    if kind == "number":
        x = _numbers(text)
        if x is None:
            raise ValueError("a column of numbers now holds text: it was changed while it was read")
        return x
    if kind == "boolean":
        known = pc.if_else(pc.is_in(text, pa.array(TRUE)), 1.0, 0.0)
        return _floats(pc.if_else(pc.is_valid(text), known, None))
    return dates(text.to_pandas()) if kind == "time" else text.to_pandas()


def _numbers(text: pa.Array) -> NDArray[np.float64] | None:
    """The numbers that all of the text is, NaN for null; None where some of it is something else."""
    try:
        x = _floats(pc.cast(text, pa.float64()))
    except pa.ArrowInvalid:
        trimmed = pc.utf8_trim_whitespace(text)
        return None if trimmed.equals(text) else _numbers(trimmed)
    # Arrow also knows spellings of NaN that are not among the missing ones: these are text.
    return x if np.count_nonzero(np.isnan(x)) == text.null_count else None


def _floats(array: pa.Array) -> NDArray[np.float64]:
    x: NDArray[np.float64] = array.to_numpy(zero_copy_only=False)
    return x


@contextmanager
def _reader(path: Path, suffix: str, text: list[str]) -> Iterator[Any]:
    """Arrow's reader of the file; it leaves the columns named in `text` as they are."""
    file = _Text(path, suffix)
    try:
        with pacsv.open_csv(
            file,
            # One thread: it is as fast, takes less memory, and knows the numbers of rows.
            read_options=pacsv.ReadOptions(block_size=BLOCK, use_threads=False),
            parse_options=pacsv.ParseOptions(delimiter=SEPARATORS[suffix], newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                column_types={name: pa.string() for name in text}, null_values=MISSING, strings_can_be_null=True
            ),
        ) as reader:
            try:
                yield reader
            finally:
                file.stop()
    finally:
        file.stop()


def _in_words(error: str) -> str:
    """What Arrow says, without the row that it quotes: an error must not show what the table holds."""
    fields = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", error)
    if fields:
        row, right, found = fields.groups()
        return f"row {row}, the header counted, has {found} fields; {right} is right"
    if "invalid UTF8" in error:
        return "it is not text in UTF-8"
    if "straddling" in error:
        return f"a row is longer than {BLOCK >> 20} MiB, or a quoted value is never closed"
    return "it is empty" if "Empty CSV" in error else "it is not CSV"


class _Text(RawIOBase):
    """The file's bytes, unpacked; refuses what is not text, and ends in blank lines.

    Arrow reads ahead on a thread of its own. One that is still at it when the interpreter ends aborts the process.
    """

    def __init__(self, path: Path, suffix: str) -> None:
        self._file: IO[bytes] | gzip.GzipFile = gzip.GzipFile(path) if suffix.endswith(".gz") else path.open("rb")
        self._end = _END
        self._stopped, self._over = False, Event()  # nobody will read any more

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = b"" if self._stopped else self._file.read(len(buffer))
        if b"\0" in content:
            self._over.set()
            raise ValueError("it holds zero bytes, so it is not text")
        if not content and not self._stopped:
            content, self._end = self._end[: len(buffer)], self._end[len(buffer) :]
        if not content:
            self._over.set()
        buffer[: len(content)] = content
        return len(content)

    def stop(self) -> None:
        """Ends here, and waits a moment for whoever reads ahead to see it."""
        self._stopped = True
        self._over.wait(_STOP_S)

    def close(self) -> None:
        self._file.close()
        super().close()
