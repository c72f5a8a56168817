"""Data sets by name, the users' own tables, and how either becomes one table a guest with labels apart.

Uses `parties`. Start reading at `sets.datasets`, or at `tables.federation_tables`.
"""

from dvfl.data.sets.datasets import DATASETS, DataSet, load
from dvfl.data.split.vertical import GuestTable, VerticalData, Wanted
from dvfl.data.tables.columns import ColumnEncoder
from dvfl.data.tables.federation_tables import LoadedTables, load_tables

__all__ = [
    "DATASETS",
    "ColumnEncoder",
    "DataSet",
    "GuestTable",
    "LoadedTables",
    "VerticalData",
    "Wanted",
    "load",
    "load_tables",
]
