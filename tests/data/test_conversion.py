"""Public files, written from the prepared arrays, give exactly those arrays again."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dvfl.data.sets import conversion
from dvfl.data.sets.catalogue import SOURCES
from dvfl.data.sets.checksums import NotTheFile, checked
from dvfl.data.sets.conversion import content_sha256, idx

Public = Callable[[str], dict[str, bytes]]

TABLES = ("credit_card", "parkinsons", "handwritten")


@pytest.mark.parametrize("name", TABLES)
def test_public_files_give_the_prepared_arrays_to_the_last_bit(name: str, public: Public, real_data: Path) -> None:
    converted = getattr(conversion, name)(public(name))
    with np.load(real_data / f"{name}.npz") as prepared:
        for part, array in converted.items():
            assert array.dtype == prepared[part].dtype and array.tobytes() == prepared[part].tobytes(), part


@pytest.mark.parametrize("name", TABLES)
def test_the_catalogue_knows_the_checksum_of_the_prepared_arrays(name: str, public: Public, real_data: Path) -> None:
    parts = getattr(conversion, name)(public(name))
    with np.load(real_data / f"{name}.npz") as prepared:
        found = content_sha256({part: prepared[part] for part in parts})
    published = SOURCES[name].published
    assert published is not None and found == published.content


@pytest.mark.parametrize(
    ("name", "known"), [("mnist", 4), ("credit_card", 1), ("handwritten", 2)]
)  # of the others the exact text cannot be made from rounded numbers
def test_the_publishers_bytes_can_be_made_from_the_prepared_arrays(name: str, known: int, public: Public) -> None:
    files, published = public(name), SOURCES[name].published
    assert published is not None
    exact = [file for file in published.files if file.size is not None]
    assert len(exact) == known
    for file in exact:
        assert checked(files[file.name], file) == files[file.name]


def changed(files: dict[str, bytes], change: Callable[[list[bytes]], None]) -> dict[str, bytes]:
    name = next(iter(files))
    lines = files[name].splitlines(keepends=True)
    change(lines)
    return {**files, name: b"".join(lines)}


@pytest.mark.parametrize(("name", "rows"), [("credit_card", 30000), ("parkinsons", 756), ("handwritten", 2000)])
def test_a_table_that_lacks_its_last_row_is_refused(name: str, rows: int, public: Public) -> None:
    with pytest.raises(NotTheFile, match=rf"has {rows - 1} rows of \d+ columns, expected {rows} of"):
        getattr(conversion, name)(changed(public(name), lambda lines: lines.pop()))


@pytest.mark.parametrize("name", TABLES)
def test_a_row_that_ends_early_is_refused(name: str, public: Public) -> None:
    def cut(lines: list[bytes]) -> None:
        lines[-1] = lines[-1][:-20]

    with pytest.raises(NotTheFile, match="is not a table of numbers"):
        getattr(conversion, name)(changed(public(name), cut))


@pytest.mark.parametrize("name", ["credit_card", "parkinsons"])
def test_a_column_too_many_is_refused(name: str, public: Public) -> None:
    def widen(lines: list[bytes]) -> None:
        lines[:] = [line.rstrip() + b",0\n" for line in lines]

    with pytest.raises(NotTheFile, match=r"rows of (26|756) columns, expected \d+ of (25|755)"):
        getattr(conversion, name)(changed(public(name), widen))


def test_words_among_the_numbers_are_refused(public: Public) -> None:
    def write(lines: list[bytes]) -> None:
        lines[5] = lines[5].replace(b",", b",none", 1)

    with pytest.raises(NotTheFile, match="is not a table of numbers"):
        conversion.credit_card(changed(public("credit_card"), write))


SHAPES = arrays.array_shapes(min_dims=1, max_dims=3, max_side=5)


def written(array: np.ndarray) -> bytes:
    header = bytes((0, 0, 8, array.ndim)) + b"".join(length.to_bytes(4, "big") for length in array.shape)
    return header + array.tobytes()


@given(arrays.arrays(np.uint8, SHAPES))
def test_every_idx_file_reads_as_what_was_written(array: np.ndarray) -> None:
    again = idx(written(array))
    assert again.shape == array.shape and np.array_equal(again, array)


@given(arrays.arrays(np.uint8, SHAPES), st.data())
def test_no_truncated_idx_file_is_read(array: np.ndarray, data: st.DataObject) -> None:
    content = written(array)
    with pytest.raises(NotTheFile):
        idx(content[: data.draw(st.integers(0, len(content) - 1))])


@pytest.mark.parametrize("start", [b"", b"\0\0\x0d\1\0\0\0\0", b"\1\0\x08\1\0\0\0\0", b"a,b,c\n1,2,3\n"])
def test_what_does_not_begin_as_an_idx_file_is_named(start: bytes) -> None:
    with pytest.raises(NotTheFile, match="is no idx file of unsigned bytes"):
        idx(start)


def test_the_checksum_of_arrays_depends_on_names_types_shapes_and_values() -> None:
    base = {"a": np.arange(6, dtype=np.float32)}
    others = [
        {"b": base["a"]},
        {"a": base["a"].astype(np.float64)},
        {"a": base["a"].reshape(2, 3)},
        {"a": base["a"] + np.float32(1e-3)},
        {**base, "b": base["a"]},
    ]
    assert len({content_sha256(each) for each in [base, *others]}) == 6
    assert content_sha256(base) == content_sha256({"a": base["a"].astype(">f4")})
