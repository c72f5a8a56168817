"""CSV read block by block, and what is left of it when nobody reads on."""

import time
from pathlib import Path

import pytest

from dvfl.data.tables import csv_blocks


def test_nobody_reads_ahead_once_a_file_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A thread that still does when the interpreter ends would abort the process."""
    readers, read = [0], csv_blocks._Text.readinto

    def slow(self: csv_blocks._Text, buffer: object) -> int:
        readers[0] += 1
        time.sleep(0.1)
        readers[0] -= 1
        return read(self, buffer)

    monkeypatch.setattr(csv_blocks._Text, "readinto", slow)
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + "1,2\n" * 3_000_000)
    blocks = csv_blocks.text_blocks(path, ".csv")
    next(blocks)  # the header alone
    seen = [readers[0]]
    time.sleep(0.3)
    assert [*seen, readers[0]] == [0, 0]
