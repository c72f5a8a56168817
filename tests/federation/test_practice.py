"""Practice shares: whole, aligned by ids alone, and as the data set has them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dvfl.data import VerticalData, load
from dvfl.errors import UserError
from dvfl.federation.owner.labels import open_labels
from dvfl.federation.tables.table import Table, open_table
from dvfl.lab.practice import write_practice


def shares(name: str, folder: Path, seed: int = 0) -> tuple[VerticalData, list[str]]:
    data = load(name)
    names = [f"guest-{i}" for i in range(1, len(data.guests) + 1)]
    write_practice(data, folder, names, "owner", seed)
    return data, names


def aligned(folder: Path, parties: list[str]) -> int:
    """Writes slots for all, by their ids; how many of them are for training."""
    train, test = (
        sorted({one for path in folder.glob(f"*/{stem}.parquet") for one in pd.read_parquet(path)["id"]})
        for stem in ("table", "test_table")
    )
    known = pd.DataFrame({"id": [*train, *test], "slot": np.arange(len(train) + len(test), dtype=np.int32)})
    for party in parties:
        known.to_parquet(folder / party / "slots.parquet", index=False)
    return len(train)


def table_of(folder: Path, stem: str, unit: bool, training: Table | None = None) -> Table:
    return open_table(
        folder / f"{stem}.parquet",
        id_column="id",
        slots=folder / "slots.parquet",
        prepared=folder / f"prepared-{stem}",
        values="unit" if unit else "standardise",
        schema=training.schema if training else None,
    )


@pytest.mark.parametrize("name", ["digits", "wine", "diabetes"])
def test_sorted_by_slots_all_parties_have_the_rows_of_the_data_set(name: str, tmp_path: Path) -> None:
    data, names = shares(name, tmp_path)
    training = aligned(tmp_path, [*names, "owner"])
    owner = tmp_path / "owner"
    slots = owner / "slots.parquet"
    labels = open_labels(owner / "labels.parquet", id_column="id", label_column="label", slots=slots)
    tested = open_labels(owner / "test_labels.parquet", id_column="id", label_column="label", slots=slots, like=labels)
    tables = [
        table_of(tmp_path / guest, "table", unit)
        for guest, unit in zip(names, [guest.unit for guest in data.guests], strict=True)
    ]
    tests = [
        table_of(tmp_path / guest, "test_table", unit, training)
        for guest, unit, training in zip(names, [guest.unit for guest in data.guests], tables, strict=True)
    ]
    for part, first, parts, y in (
        ("train", 0, tables, labels),
        ("test", training, tests, tested),
    ):
        ours = [np.asarray(table.take(np.argsort(table.slots))) for table in parts]
        truth = np.concatenate([getattr(guest, part) for guest in data.guests], axis=1)
        wanted = data.y_train if part == "train" else data.y_test
        assert all(sorted(table.slots) == list(range(first, first + len(truth))) for table in parts)
        # Which row of the data set has which slot: found again by its values, which are all different.
        whole = np.concatenate(ours, axis=1)
        keys = {tuple(np.round(row, 3) + 0.0): number for number, row in enumerate(truth)}
        rows = np.array([keys[tuple(np.round(row, 3) + 0.0)] for row in whole])
        np.testing.assert_allclose(whole, truth[rows], atol=1e-5)
        target = y.y[np.argsort(y.slots)]
        if data.classes is None:
            np.testing.assert_array_equal(target, wanted[rows])
        else:
            assert y.classes is not None
            assert [y.classes[i] for i in target] == [data.classes[i] for i in wanted[rows]]


def test_tables_are_as_wide_as_the_data_set_says(tmp_path: Path) -> None:
    for name in ("digits", "wine"):  # digits has constant columns, of unit guests
        data, names = shares(name, tmp_path / name)
        assert aligned(tmp_path / name, names) == len(data.y_train)
        for guest, share in zip(names, data.guests, strict=True):
            assert table_of(tmp_path / name / guest, "table", share.unit).width == share.columns


def test_too_few_training_rows_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    data = load("wine")
    rows = np.flatnonzero(data.y_train > 0)
    few = replace(
        data,
        guests=tuple(replace(guest, train=guest.train[rows]) for guest in data.guests),
        y_train=data.y_train[rows],
    )
    with pytest.raises(UserError, match=f"wine: none of {len(rows)} training rows is of the class 'class_0'"):
        write_practice(few, tmp_path, ["a", "b", "c"], "owner", 0)
    data.guests[1].train[:, 2] = 0.5
    with pytest.raises(UserError, match=r"wine: 1 columns of columns-5-8 are constant in 142 training rows; take more"):
        write_practice(data, tmp_path, ["a", "b", "c"], "owner", 0)
    assert not list(tmp_path.iterdir())


def test_every_party_has_its_rows_in_another_order_and_ids_that_say_nothing(tmp_path: Path) -> None:
    data, names = shares("digits", tmp_path)
    ids = [pd.read_parquet(tmp_path / name / "table.parquet")["id"] for name in names]
    ids.append(pd.read_parquet(tmp_path / "owner" / "labels.parquet")["id"])
    for number, one in enumerate(ids):
        assert set(one) == set(ids[0]) and one.is_unique
        assert all((one != other).mean() > 0.9 for other in ids[:number])
    label = pd.read_parquet(tmp_path / "owner" / "labels.parquet").sort_values("id")["label"].astype(int)
    assert abs(np.corrcoef(label, np.arange(len(label)))[0, 1]) < 0.1
    assert len(label) == len(data.y_train)


def test_the_files_are_these(tmp_path: Path) -> None:
    shares("wine", tmp_path)
    found = {name: sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("guest-2", "owner")}
    assert found["guest-2"] == ["table.parquet", "test_table.parquet"]
    assert found["owner"] == ["labels.parquet", "test_labels.parquet"]


def test_the_seed_decides_all(tmp_path: Path) -> None:
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        shares("wine", tmp_path / folder, seed)
    one, same, other = (pd.read_parquet(tmp_path / folder / "guest-1" / "table.parquet") for folder in "abc")
    assert one.equals(same) and set(one["id"]).isdisjoint(other["id"])


def test_every_guest_needs_a_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        write_practice(load("wine"), tmp_path, ["guest-1"], "owner", 0)
