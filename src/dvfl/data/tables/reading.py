"""Reads one table from CSV or Parquet, with its ids checked and its dates recognised."""

import gzip
import io
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from dvfl.data.tables.kinds import is_nested
from dvfl.errors import UserError, nearest

SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t"}
SUFFIXES = (*SEPARATORS, ".parquet")
WHOLE = r"0|-?[1-9]\d*"  # as an integer is written
DATE = r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?"
SHOWN = 8  # column names in an error; more would hide what it says


@dataclass(frozen=True)
class Table:
    """A file's rows; `ids` are apart from the columns, unique and never missing."""

    path: Path
    ids: pd.Series
    columns: pd.DataFrame

    def __len__(self) -> int:
        return len(self.ids)


def read_table(path: Path, id_column: str) -> Table:
    """The table in `path`; raises, in one line, for whatever is wrong with it."""
    frame = _read(path, id_column)
    if id_column not in frame.columns:
        raise UserError(
            f"{path} has no column '{id_column}' to join on{offer(id_column, [str(name) for name in frame.columns])}"
        )
    if len(frame) == 0:
        raise UserError(f"{path} has a header but no rows")
    ids = frame[id_column]
    missing = int(ids.isna().sum())
    if missing:
        raise UserError(f"{path}: {missing} of {len(ids)} rows have no '{id_column}'; every row needs one")
    if is_nested(ids):
        raise UserError(f"{path}: the ids in '{id_column}' are lists or structures; use numbers or text")
    doubled = int(ids.duplicated().sum())
    if doubled:
        raise UserError(f"{path}: {doubled} of {len(ids)} rows repeat an earlier '{id_column}'; each may occur once")
    return Table(path, ids, frame.drop(columns=id_column))


def check_file(path: Path) -> str:
    """Which of the `SUFFIXES` the path has; raises where it has none of them, or is no file with content."""
    suffix = next((end for end in SUFFIXES if path.name.lower().endswith(end)), None)
    if suffix is None:
        raise UserError(f"{path}: '{path.suffix}' is not a kind of table we read; use {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise UserError(f"{path} is {'a folder' if path.is_dir() else 'not there'}; a table is a file")
    if path.stat().st_size == 0:
        raise UserError(f"{path} is empty")
    return suffix


def join_ids(tables: Sequence[Table]) -> list[pd.Index]:
    """Every table's ids, as whole numbers where all tables can have them so, otherwise as the files have them.

    A CSV file does not say whether 007 is a number. Its ids are text unless those of all CSV files are written as
    whole numbers and those of all Parquet files are: so no leading zero is lost, and CSV joins with either type.
    """
    whole = all(
        (_is_whole_number(table.ids) if is_parquet(table.path) else _is_whole_text(table.ids)) for table in tables
    )
    return [pd.Index([int(i) for i in table.ids] if whole else table.ids.to_numpy(object)) for table in tables]


def describe_ids(ids: pd.Index) -> str:
    """What an error calls these ids; never the ids themselves, which may be confidential."""
    kinds = {type(value) for value in ids.tolist()}
    named = {int: "whole numbers", str: "text", float: "numbers"}
    return " and ".join(sorted(named.get(kind, kind.__name__) for kind in kinds))


def dates(series: pd.Series) -> pd.Series:
    """The column as times where every value is an ISO date, since CSV has no type for them."""
    values = series.dropna()
    if len(values) == 0 or pd.api.types.infer_dtype(values) != "string":
        return series
    if not values.str.fullmatch(DATE).all():
        return series
    times = pd.to_datetime(series, format="ISO8601", utc=True, errors="coerce")
    return times if times.notna().sum() == len(values) else series


def offer(id_column: str, names: Sequence[str]) -> str:
    """What an error says of the columns that are there, when one is not."""
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    close = nearest(id_column, names)
    return f"; it has {shown}{close if 'did you mean' in close else ''}"


def is_parquet(path: Path) -> bool:
    """Whether the file says of what type its columns are; the others are text."""
    return path.name.lower().endswith(".parquet")


def first_line(error: Exception) -> str:
    """What an error of a library says, short enough for one of ours."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _read(path: Path, id_column: str) -> pd.DataFrame:
    suffix = check_file(path)
    try:
        return _read_parquet(path) if suffix == ".parquet" else _read_csv(path, SEPARATORS[suffix], id_column)
    except pd.errors.EmptyDataError as error:
        raise UserError(f"{path} is empty") from error
    except (OSError, ValueError, EOFError, zlib.error, pa.ArrowException) as error:
        # ParserError, UnicodeDecodeError and BadGzipFile are among these.
        raise UserError(f"{path} cannot be read as {suffix}: {first_line(error)}") from error


def _read_parquet(path: Path) -> pd.DataFrame:
    frame = pd.read_parquet(path, engine="pyarrow")
    # A frame saved with the ids as its index still has them as a column.
    return frame if frame.index.names == [None] else frame.reset_index()


def _read_csv(path: Path, separator: str, id_column: str) -> pd.DataFrame:
    content = path.read_bytes()
    if path.suffix.lower() == ".gz":
        content = gzip.decompress(content)
    if b"\0" in content:
        raise ValueError("it holds zero bytes, so it is not text")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # index_col=False: or surplus fields would be taken for row names, and every column for its neighbour.
            frame = pd.read_csv(
                io.BytesIO(content),
                sep=separator,
                dtype={id_column: str},
                encoding="utf-8-sig",
                low_memory=False,
                index_col=False,
            )
    except pd.errors.ParserWarning as error:
        raise ValueError("its rows have more fields than its header has names") from error
    for name in frame.columns:
        if name != id_column:
            frame[name] = dates(frame[name])
    return frame


def _is_whole_number(ids: pd.Series) -> bool:
    numeric = pd.api.types.is_numeric_dtype(ids.dtype) and not pd.api.types.is_bool_dtype(ids.dtype)
    return bool(numeric and (ids % 1 == 0).all())


def _is_whole_text(ids: pd.Series) -> bool:
    return bool(ids.str.fullmatch(WHOLE).all())


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Puts the file's name before an error that does not have it."""
    try:
        yield
    except UserError as error:
        if str(path) in str(error):
            raise
        raise UserError(f"{path}: {error}") from error
