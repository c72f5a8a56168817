"""What a pandas column holds: numbers, booleans, times or categories; and its values as plain arrays."""

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from dvfl.errors import UserError

Kind = Literal["number", "boolean", "time", "category"]

# What `pandas.api.types.infer_dtype` calls the contents of a column of Python objects.
INFERRED: dict[str, Kind] = {
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "boolean": "boolean",
    "datetime": "time",
    "datetime64": "time",
    "date": "time",
    "timedelta": "time",
    "timedelta64": "time",
    "empty": "number",  # only missing values: nothing to encode, whatever it is
}

PLURAL: dict[Kind, str] = {"number": "numbers", "boolean": "true or false", "time": "times", "category": "text"}


def kind_of(series: pd.Series, name: str) -> Kind:
    """How the column is to be read."""
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):  # before the others, which look at the categories' type
        return "category"
    if types.is_complex_dtype(dtype):
        raise UserError(f"the column '{name}' holds complex numbers; split them into two columns")
    if types.is_bool_dtype(dtype):
        return "boolean"
    if types.is_numeric_dtype(dtype):
        return "number"
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return "time"
    if types.is_object_dtype(dtype):
        return INFERRED.get(types.infer_dtype(series, skipna=True), "category")
    return "category"


def numbers(series: pd.Series, name: str, kind: Kind) -> NDArray[np.float64]:
    """The values as float64, NaN where missing; times in seconds. Raises where they are not of this kind."""
    found = kind_of(series, name)
    if series.isna().all():
        return np.full(len(series), np.nan)
    # A file with nothing but 0 and 1 in a column may be read as either.
    if found != kind and {found, kind} != {"number", "boolean"}:
        raise UserError(f"the column '{name}' held {PLURAL[kind]} in training and now holds {PLURAL[found]}")
    if kind == "time":
        series = _seconds(series, name)
    x: NDArray[np.float64] = series.to_numpy(dtype=np.float64, na_value=np.nan)
    if kind == "boolean" and not np.isin(x[~np.isnan(x)], (0.0, 1.0)).all():
        raise UserError(f"the column '{name}' held true or false in training and now holds other numbers")
    return x


def texts(series: pd.Series, name: str) -> tuple[NDArray[np.intp], list[str]]:
    """A code for each row, -1 where missing, and the text that each code stands for."""
    if is_nested(series):
        raise UserError(f"the column '{name}' holds lists or structures; give each of their parts its own column")
    codes, uniques = pd.factorize(series)
    levels = [as_text(value) for value in uniques]
    # Different values may read alike, such as 1 and "1": they are one level.
    distinct = sorted(set(levels))
    place = {level: i for i, level in enumerate(distinct)}
    merged = np.array([place[level] for level in levels] + [-1], np.intp)[codes]
    return merged, distinct


def is_nested(series: pd.Series) -> bool:
    """Whether values are lists, arrays or structures, as Parquet can hold."""
    return bool(
        types.is_object_dtype(series.dtype) and any(isinstance(v, list | dict | set | np.ndarray) for v in series)
    )


def as_text(value: Any) -> str:
    """The value as text; a whole number reads the same whether a file gave it as 1 or 1.0."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _seconds(series: pd.Series, name: str) -> pd.Series:
    try:
        if types.is_timedelta64_dtype(series.dtype) or types.infer_dtype(series, skipna=True).startswith("timedelta"):
            return pd.to_timedelta(series).dt.total_seconds()
        # The epoch in whole seconds: in nanoseconds, 9999-12-31, which often means "open", would not fit.
        epoch = pd.Timestamp(0, tz="UTC").as_unit("s")
        return (pd.to_datetime(series, utc=True) - epoch).dt.total_seconds()
    except (ValueError, OverflowError) as error:  # dates outside what pandas can hold are ValueErrors
        raise UserError(
            f"the column '{name}' holds times that cannot be read ({' '.join(str(error).split())})"
        ) from error
