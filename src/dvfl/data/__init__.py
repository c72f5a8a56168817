"""Data sets by name, the users' own tables, and how either becomes one table a guest with labels apart."""

from dvfl.data.sets.datasets import DATASETS, load
from dvfl.data.split.vertical import GuestTable, VerticalData
from dvfl.data.tables.columns import ColumnEncoder
from dvfl.data.tables.federation_tables import LoadedTables, load_tables

__all__ = ["DATASETS", "ColumnEncoder", "GuestTable", "LoadedTables", "VerticalData", "load", "load_tables"]
