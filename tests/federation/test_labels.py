"""The owner's labels and their slots."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dvfl.data.tables.targets import Task
from dvfl.errors import UserError
from dvfl.federation.owner.labels import open_labels
from dvfl.federation.owner.owner_training import Labels

ROWS = 50


@pytest.fixture
def slots(tmp_path: Path) -> Path:
    path = tmp_path / "slots.parquet"
    pd.DataFrame({"id": [f"p{i}" for i in range(ROWS)], "slot": np.arange(ROWS)[::-1]}).to_parquet(path)
    return path


def opened(
    path: Path, slots: Path, *, label_column: str | None = "label", task: Task = "auto", like: Labels | None = None
) -> Labels:
    return open_labels(path, id_column="id", label_column=label_column, slots=slots, task=task, like=like)


def write(path: Path, label: object, **more: object) -> Path:
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(ROWS)], "label": label, **more})
    (frame.to_csv if path.suffix == ".csv" else frame.to_parquet)(path, index=False)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_classes_are_numbered_and_every_row_has_its_slot(suffix: str, slots: Path, tmp_path: Path) -> None:
    labels = opened(write(tmp_path / f"y{suffix}", np.where(np.arange(ROWS) % 3, "yes", "no")), slots)
    assert labels.classes == ("no", "yes") and labels.y.dtype == np.int64
    np.testing.assert_array_equal(labels.slots, np.arange(ROWS)[::-1])
    np.testing.assert_array_equal(labels.y, np.arange(ROWS) % 3 > 0)


def test_numbers_of_many_values_are_a_regression(slots: Path, tmp_path: Path) -> None:
    labels = opened(write(tmp_path / "y.csv", np.linspace(0, 1, ROWS)), slots)
    assert labels.classes is None and labels.y.dtype == np.float32


def test_the_task_and_the_column_can_be_said(slots: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "y.csv", np.arange(ROWS), age=np.arange(ROWS) % 3)
    assert opened(path, slots, task="regress").classes is None
    assert opened(path, slots, label_column="age").classes == ("0", "1", "2")
    with pytest.raises(UserError, match="no column 'lable'; did you mean 'label'"):
        opened(path, slots, label_column="lable")


def test_test_labels_have_the_numbers_of_the_training_classes(slots: Path, tmp_path: Path) -> None:
    training = opened(write(tmp_path / "y.csv", np.array(["a", "b", "c", "d", "e"] * 10)), slots)
    tested = opened(write(tmp_path / "test.csv", np.array(["e", "b"] * 25)), slots, like=training)
    assert tested.classes == training.classes
    np.testing.assert_array_equal(tested.y, [4, 1] * 25)


def test_test_labels_of_one_class_are_fine(slots: Path, tmp_path: Path) -> None:
    training = opened(write(tmp_path / "y.parquet", np.arange(ROWS) % 2), slots)
    tested = opened(write(tmp_path / "test.parquet", np.ones(ROWS)), slots, like=training)
    np.testing.assert_array_equal(tested.y, np.ones(ROWS))


def test_test_labels_of_a_regression_are_numbers_even_if_few(slots: Path, tmp_path: Path) -> None:
    training = opened(write(tmp_path / "y.csv", np.linspace(0, 1, ROWS)), slots)
    tested = opened(write(tmp_path / "test.csv", np.arange(ROWS) % 2), slots, like=training)
    assert tested.classes is None and tested.y.dtype == np.float32


def test_a_test_label_that_no_training_row_has_is_refused(slots: Path, tmp_path: Path) -> None:
    training = opened(write(tmp_path / "y.csv", np.where(np.arange(ROWS) % 2, "yes", "no")), slots)
    odd = write(tmp_path / "test.csv", np.where(np.arange(ROWS) % 10, "yes", "maybe"))
    with pytest.raises(UserError, match="5 of 50 labels in the column 'label' are classes that no training row has"):
        opened(odd, slots, like=training)


def test_a_label_whose_id_has_no_slot_is_refused(slots: Path, tmp_path: Path) -> None:
    path = tmp_path / "y.csv"
    pd.DataFrame({"id": ["p1", "stranger"], "label": ["a", "b"]}).to_csv(path, index=False)
    with pytest.raises(UserError, match=r"y\.csv: 1 of 2 rows have an 'id' without a slot"):
        opened(path, slots)
