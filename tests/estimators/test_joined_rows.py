"""Data frames whose rows are matched by their index, in training and afterwards."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from dvfl import DVFLClassifier, DVFLRegressor
from dvfl.data.tables.overlap import Overlap

QUICK = {"hosts": 2, "guest_epochs": 3, "host_epochs": 3, "owner_epochs": 30}
Tables = tuple[list[pd.DataFrame], pd.Series]


@pytest.fixture
def people(table: tuple[np.ndarray, np.ndarray]) -> Tables:
    """Two tables of 120 people in one order, and their labels."""
    x, y = table
    index = pd.Index([f"P{number:03d}" for number in range(len(x))])
    return [pd.DataFrame(x[:, :3], index, list("abc")), pd.DataFrame(x[:, 3:], index, list("def"))], pd.Series(y, index)


def fitted(tables: list[pd.DataFrame], y: object, **options: object) -> DVFLClassifier:
    return DVFLClassifier(**{**QUICK, **options}).fit(tables, y)


def test_tables_in_other_orders_are_matched_by_index(people: Tables) -> None:
    (one, other), y = people
    straight = fitted([one, other], y)
    mixed = fitted([one, other.sample(frac=1, random_state=0)], y.sample(frac=1, random_state=1)[one.index[::-1]])
    assert straight.overlap_ == mixed.overlap_ and mixed.overlap_.whole
    shuffled = [one.sample(frac=1, random_state=2), other.sample(frac=1, random_state=3)]
    rows = straight.rows(shuffled)
    assert (rows == shuffled[0].index).all()
    expected = pd.Series(straight.predict([one, other]), one.index)[rows]
    assert (straight.predict(shuffled) == expected).all()
    assert straight.score(shuffled, y) == straight.score([one, other], y)
    assert mixed.score([one, other], y) > 0.7


def test_a_shuffled_table_trains_the_same_model(people: Tables) -> None:
    (one, other), y = people
    straight, mixed = fitted([one, other], y), fitted([one, other.iloc[::-1]], y)
    assert np.allclose(straight.transform([one, other]), mixed.transform([one, other]))


def test_rows_that_a_table_lacks_are_trained_on_and_counted(people: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    (one, other), y = people
    tables = [one.iloc[:100], other.iloc[20:]]
    model = fitted(tables, pd.concat([y.iloc[10:110], pd.Series(["yes"], ["nobody"])]))
    assert model.overlap_ == Overlap(rows=(100, 100), common=80, labels=101, labelled=100, labelled_common=80)
    assert capsys.readouterr().out == (
        "DVFLClassifier: rows: table 1 100, table 2 100, y 101; in every table: 80; labelled: 100, of which in every"
        " table: 80; labels without a row: 1\n"
    )
    assert model.stack_.settings.guest_dropout > 0
    assert model.score([one, other], y) > 0.7


def test_nothing_is_said_where_all_is_whole(people: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    fitted(*people)
    assert capsys.readouterr().out == ""


def test_predictions_are_of_all_rows_in_order_of_first_appearance(people: Tables) -> None:
    (one, other), y = people
    model = fitted([one.iloc[:100], other.iloc[20:]], y)
    tables = [one.iloc[[5, 3]], other.iloc[[7, 5]]]
    assert model.rows(tables).tolist() == ["P005", "P003", "P007"]
    assert model.predict(tables).shape == (3,)
    assert model.predict_proba(tables).shape == (3, 2)
    whole = model.predict_proba([one.iloc[[5]], other.iloc[[5]]])
    assert np.allclose(model.predict_proba(tables)[0], whole[0])
    assert np.isfinite(model.transform(tables)).all()


@pytest.mark.parametrize("hosts", [0, 2])
def test_a_guest_may_have_none_of_the_rows(people: Tables, hosts: int) -> None:
    (one, other), y = people
    model = fitted([one, other], y, hosts=hosts, guest_dropout=0.3)
    found = model.predict([one, other.iloc[:0]])
    assert 0.55 < (found == y).mean() < 1
    assert np.isfinite(model.transform([one, other.iloc[:0]])).all()


def test_a_model_is_taught_to_do_without_parties_where_it_is_asked_for(people: Tables) -> None:
    (one, other), y = people
    taught = fitted([one, other], y, hosts=2, absent=True)
    s = taught.stack_.settings
    assert s.guest_dropout > 0 and s.host_dropout > 0 and s.partial > 0
    assert (taught.predict([one, other.iloc[:0]]) == y).mean() > 0.55
    assert fitted([one, other], y, hosts=2).stack_.settings.partial == 0
    given = fitted([one, other], y, absent=True, hosts=2, partial=1, host_dropout=0.0).stack_.settings
    assert (given.partial, given.host_dropout, given.guest_dropout) == (1, 0.0, s.guest_dropout)


def test_labels_may_be_fewer_than_rows(people: Tables) -> None:
    (one, other), y = people
    model = fitted([one, other], y.iloc[::2])
    assert model.overlap_ == Overlap(rows=(120, 120), common=120, labels=60, labelled=60, labelled_common=60)
    assert model.score([one, other], y) > 0.7


def test_what_is_only_numbered_goes_by_position(people: Tables) -> None:
    (one, other), y = people
    straight = fitted([one, other], y)
    for labels in (y.to_numpy(), y.reset_index(drop=True)):
        assert (fitted([one, other], labels).predict([one, other]) == straight.predict([one, other])).all()
    arrays = fitted([one.to_numpy(), other.to_numpy()], y.iloc[::-1].to_numpy()[::-1])
    assert (arrays.predict([one.to_numpy(), other.to_numpy()]) == straight.predict([one, other])).all()
    assert arrays.rows([one.to_numpy(), other.to_numpy()]).tolist() == list(range(120))


def test_a_single_table_goes_by_position_whatever_its_index(people: Tables) -> None:
    (one, _), y = people
    straight, renamed = (fitted(one, labels) for labels in (y, y.set_axis(np.arange(120) + 7)))
    assert (straight.predict(one) == renamed.predict(one)).all()


def test_entity_augmentation_puts_rows_of_different_people_together(people: Tables) -> None:
    (one, other), y = people
    apart = [one.iloc[:80], other.iloc[40:]]
    model = fitted(apart, y, entity_augmentation=True)
    assert model.stack_.settings.entity_augmentation
    assert model.score([one, other], y) > 0.6
    with pytest.raises(ValueError, match="entity_augmentation: the labels are numbers"):
        DVFLRegressor(**QUICK, entity_augmentation=True).fit(apart, pd.Series(np.arange(120.0), y.index))


REFUSED: list[tuple[str, Callable[[pd.DataFrame, pd.DataFrame, pd.Series], tuple[list[object], object]]]] = [
    ("y has no index, and those of the tables differ", lambda a, b, y: ([a, b.iloc[::-1]], y.to_numpy())),
    (
        r"table 2: 3 of 123 rows repeat an earlier index value",
        lambda a, b, y: ([a, pd.concat([b, b.iloc[:3]])], y),
    ),
    ("y: 1 of 121 rows repeat", lambda a, b, y: ([a, b.iloc[:90]], pd.concat([y, y.iloc[:1]]))),
    (
        "tables of 120, 90 rows that are numbered from 0 by default",
        lambda a, b, y: ([a.reset_index(drop=True), b.iloc[:90].reset_index(drop=True)], y.reset_index(drop=True)),
    ),
    ("table 1 has no index", lambda a, b, y: ([a.to_numpy(), b, b.iloc[::-1]], y)),
    ("inconsistent numbers of samples", lambda a, b, y: ([a.to_numpy(), b.iloc[:90]], y)),
    ("table 2 has no row that y has a label for", lambda a, b, y: ([a, b.set_axis(np.arange(120) + 1)], y)),
    (
        "y has another index than the tables, which are numbered",
        lambda a, b, y: ([a.reset_index(drop=True), b.reset_index(drop=True)], y),
    ),
    ("the index has missing values", lambda a, b, y: ([a.rename({"P001": None}), b], y)),
]


@pytest.mark.parametrize(("says", "changed"), REFUSED, ids=[says for says, _ in REFUSED])
def test_what_is_ambiguous_is_refused_in_one_line(people: Tables, says: str, changed: Callable[..., object]) -> None:
    (one, other), y = people
    tables, labels = changed(one, other, y)  # type: ignore[misc]
    with pytest.raises(ValueError, match=says) as caught:
        DVFLClassifier(**QUICK).fit(tables, labels)
    assert "\n" not in str(caught.value)


def test_a_score_needs_a_label_for_every_row(people: Tables) -> None:
    (one, other), y = people
    model = fitted([one, other], y)
    with pytest.raises(ValueError, match="y has 100 of the 120 rows, and 0 others"):
        model.score([one, other], y.iloc[:100])
    weights = pd.Series(np.where(model.predict([one, other]) == y, 1.0, 0.0), y.index)
    assert model.score([one, other.iloc[::-1]], y, weights.iloc[::-1]) == 1.0
