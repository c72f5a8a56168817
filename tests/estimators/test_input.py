"""Tables, columns and labels that the estimators take, and those they refuse."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from dvfl import DVFLClassifier

QUICK = {"guest_epochs": 3, "host_epochs": 3, "owner_epochs": 20}


def test_a_list_of_tables_has_one_guest_each(table):
    x, y = table
    model = DVFLClassifier(**QUICK).fit([x[:, :2], x[:, 2:]], y)
    assert model.guests_ == [[0, 1], [2, 3, 4, 5]] and model.n_features_in_ == 6
    assert model.predict([x[:, :2], x[:, 2:]]).shape == (120,)
    # The same columns in one table are the same guests.
    assert_array_equal(model.predict_proba(x), model.predict_proba([x[:, :2], x[:, 2:]]))


def test_a_list_of_tables_trains_as_the_same_columns_of_one_table_do(table):
    x, y = table
    whole = DVFLClassifier(guests=[[0, 1], [2, 3, 4, 5]], **QUICK).fit(x, y)
    parts = DVFLClassifier(**QUICK).fit((x[:, :2], pd.DataFrame(x[:, 2:])), y)
    assert_array_equal(whole.predict_proba(x), parts.predict_proba(x))


def test_tables_with_names_are_read_by_name(people):
    frame, y = people
    left, right = frame[["age", "town"]], frame[["plan", "member"]]
    model = DVFLClassifier(**QUICK).fit([left, right], y)
    assert_array_equal(model.predict([left, right]), model.predict([left, right[["member", "plan"]]]))
    with pytest.raises(ValueError, match=r"guest 2: .*lacks the column 'plan'"):
        model.predict([left, right.rename(columns={"plan": "tariff"})])


@pytest.mark.parametrize(
    ("guests", "held"),
    [
        (None, [[0, 1, 2, 3, 4, 5]]),
        (1, [[0, 1, 2, 3, 4, 5]]),
        (4, [[0, 1], [2, 3], [4], [5]]),
        ([[5, 0], [1, 2], [4, 3]], [[5, 0], [1, 2], [4, 3]]),
        ([np.array([0, 1, 2, 3]), (4, 5)], [[0, 1, 2, 3], [4, 5]]),
    ],
)
def test_columns_are_handed_out_as_asked(table, guests, held):
    model = DVFLClassifier(guests=guests, **QUICK).fit(*table)
    assert model.guests_ == held


def test_columns_are_handed_out_by_name(people):
    frame, y = people
    guests = [["plan", "age"], ["town", "country", "visits"], ["since", "member"]]
    model = DVFLClassifier(guests=guests, **QUICK).fit(frame, y)
    assert model.guests_ == [[2, 0], [1, 4, 5], [6, 3]]
    assert list(model.feature_names_in_) == list(frame.columns)


@pytest.mark.parametrize(
    ("guests", "message"),
    [
        (7, "7 guests cannot share 6 columns: from 1 to 6"),
        (0, "0 guests cannot share 6 columns: from 1 to 6"),
        ([[0, 1, 2], [3, 4]], "nobody holds '5'"),
        ([[0, 1, 2], [2, 3, 4, 5]], "more than one guest holds '2'"),
        ([[0, 1, 2], [3, 4, 5], []], "every guest needs a column"),
        ([[0, 1, 2], [3, 4, 9]], "there is no column 9; X has columns 0 to 5"),
        ([[0, 1, 2], ["height"]], "'height' is a name, and X has none"),
        ("all", "guests='all': a number of guests"),
        ([0, 1], "one list of columns a guest"),
    ],
)
def test_impossible_guests_are_refused(table, guests, message):
    with pytest.raises(ValueError, match=message):
        DVFLClassifier(guests=guests).fit(*table)


def test_an_unknown_column_name_is_refused(people):
    frame, y = people
    with pytest.raises(ValueError, match="there is no column 'height'; X has 'age', 'town'"):
        DVFLClassifier(guests=[["age", "height"]]).fit(frame, y)


def test_guests_and_a_list_of_tables_must_agree(table):
    x, y = table
    with pytest.raises(ValueError, match="guests=3 with 2 tables; guests=None is right"):
        DVFLClassifier(guests=3).fit([x[:, :2], x[:, 2:]], y)


def test_text_categories_missing_values_and_constants_are_learned_from(people):
    frame, y = people
    model = DVFLClassifier(guests=2).fit(frame[:120], y[:120])
    assert model.score(frame[120:], y[120:]) > 0.9


def test_an_array_of_text_and_numbers_is_read_column_by_column(people):
    frame, y = people
    mixed = frame[["town", "plan", "member", "age"]].to_numpy(dtype=object)
    model = DVFLClassifier(**QUICK).fit(mixed, y)
    assert [column.kind for column in model.columns_[0].columns] == ["category", "category", "boolean", "number"]


def test_missing_numbers_are_allowed(table):
    x, y = table
    x[::5, 1] = np.nan
    model = DVFLClassifier(guests=2, **QUICK).fit(x, y)
    x[:, 0] = np.nan  # and where there were none in training
    assert np.isfinite(model.predict_proba(x)).all()


@pytest.mark.parametrize("as_frame", [False, True])
def test_infinite_numbers_are_refused_in_training_and_prediction(table, as_frame):
    x, y = table
    model = DVFLClassifier(**QUICK).fit(x, y)
    x[3, 1] = np.inf
    given = pd.DataFrame(x) if as_frame else x
    for call in (lambda: DVFLClassifier().fit(given, y), lambda: model.predict(given)):
        with pytest.raises(ValueError, match="infini"):
            call()


def test_sparse_tables_are_refused(table):
    x, y = table
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        DVFLClassifier().fit(sparse.csr_array(x), y)


def test_a_guest_without_a_telling_column_is_named(table):
    x, y = table
    x[:, 2:4] = 1
    with pytest.raises(ValueError, match="guest 2: no column tells rows apart"):
        DVFLClassifier(guests=3).fit(x, y)


def test_tables_of_different_lengths_are_refused(table):
    x, y = table
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        DVFLClassifier().fit([x[:, :2], x[:100, 2:]], y)


def test_labels_of_another_length_are_refused(table):
    x, y = table
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        DVFLClassifier().fit([x[:, :2], x[:, 2:]], y[:100])


def test_another_number_of_columns_or_tables_is_refused_in_prediction(table):
    x, y = table
    model = DVFLClassifier(**QUICK).fit([x[:, :2], x[:, 2:]], y)
    with pytest.raises(ValueError, match="X has 5 features, but DVFLClassifier is expecting 6"):
        model.predict(x[:, :5])
    with pytest.raises(ValueError, match="table 2 has 3 columns; 4 are right"):
        model.predict([x[:, :2], x[:, 3:]])
    with pytest.raises(ValueError, match="3 tables for 2 guests"):
        model.predict([x[:, :2], x[:, 2:4], x[:, 4:]])


def test_one_class_is_refused(table):
    x, _ = table
    with pytest.raises(ValueError, match="one class only, 'yes'"):
        DVFLClassifier().fit(x, ["yes"] * len(x))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hosts": -1}, "hosts -1: 0 or more"),
        ({"hosts": 2.5}, "hosts=2.5: a whole number"),
        ({"batch": 500}, "batch 500 is larger than the 120 training rows"),
        ({"batch": 0}, "batch 0: at least 1"),
        ({"preset": "tunde"}, "did you mean 'tuned'"),
        ({"host_dropout": 1.0}, "from 0 to below 1"),
        ({"period": 5, "guest_epochs": 3}, "nothing would ever be pushed"),
        ({"encoders": [None, None]}, "2 encoders for 1 guests"),
        ({"device": "abacus"}, "device='abacus'"),
        ({"random_state": "dice"}, "cannot be used to seed"),
    ],
)
def test_wrong_parameters_are_refused_as_value_errors(table, wrong, message):
    with pytest.raises(ValueError, match=message):
        DVFLClassifier(**wrong).fit(*table)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["ja", "nein"]),
        np.array(["ja", "nein"], dtype=object),
        np.array([3, -1]),
        np.array([0.0, 2.0], np.float32),
        np.array([True, False]),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_every_type_come_back_as_they_were(table, labels, tmp_path):
    x, y = table
    model = DVFLClassifier(**QUICK).fit(x, labels[(y == "yes").astype(int)])
    assert model.predict(x).dtype == labels.dtype and set(model.predict(x)) <= set(labels)
    model.save(tmp_path)
    loaded = DVFLClassifier.load(tmp_path)
    assert loaded.classes_.dtype == labels.dtype
    assert_array_equal(loaded.predict(x), model.predict(x))


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "string", "category"])
def test_labels_of_pandas_own_types_keep_their_meaning(table, dtype):
    x, y = table
    labels = pd.Series(y if dtype in ("string", "category") else (y == "yes").astype(int), dtype=dtype)
    predicted = DVFLClassifier(**QUICK).fit(x, labels).predict(x)
    assert set(predicted) <= set(labels) and (dtype != "Int64" or predicted.dtype == np.int64)


@pytest.mark.parametrize("labels", [pd.Series(["a", None] * 60), pd.Series([1, None] * 60, dtype="Int64")])
def test_missing_labels_are_refused(table, labels):
    with pytest.raises(ValueError, match="every row needs a label"):
        DVFLClassifier().fit(table[0], labels)


def test_a_column_name_that_stands_twice_is_refused(table):
    x, y = table
    with pytest.raises(ValueError, match="'a' stands for more than one column"):
        DVFLClassifier().fit(pd.DataFrame(x, columns=list("abcdea")), y)
