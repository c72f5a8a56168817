"""What the catalogue promises, and that the page on data sets says the same."""

from pathlib import Path

import pytest

from dvfl.data import DATASETS
from dvfl.data.sets.catalogue import SOURCES
from dvfl.data.sets.checksums import LIMIT

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text()


@pytest.mark.parametrize("name", SOURCES)
def test_the_page_gives_every_checksum_and_address(name: str) -> None:
    source = SOURCES[name]
    published = source.published
    files = [*([source.prepared] if source.prepared else []), *(published.files if published else [])]
    for file in files:
        assert file.name in PAGE and file.sha256 in PAGE
    assert source.page in PAGE
    assert published is None or (published.address or "") in PAGE


@pytest.mark.parametrize("name", SOURCES)
def test_what_cannot_be_fetched_comes_with_advice(name: str) -> None:
    source = SOURCES[name]
    fetched = source.published is not None and source.published.address is not None
    assert name in DATASETS and bool(source.advice) != fetched


def test_no_file_is_larger_than_what_is_read_of_one() -> None:
    for source in SOURCES.values():
        for file in source.published.files if source.published else ():
            assert (file.size or 0) < LIMIT
