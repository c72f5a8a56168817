"""Data sets by name, the users' own tables, and how either becomes one table a guest with labels apart."""

from dvfl.data.columns import ColumnEncoder
from dvfl.data.datasets import DATASETS, load
from dvfl.data.tables import LoadedTables, load_tables
from dvfl.data.vertical import GuestTable, VerticalData

__all__ = ["DATASETS", "ColumnEncoder", "GuestTable", "LoadedTables", "VerticalData", "load", "load_tables"]
