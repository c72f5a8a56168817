"""What tables have in common, for any ids."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.data.split.vertical import ABSENT
from dvfl.data.tables.overlap import arranged, in_all, overlap, union

IDS = st.lists(st.integers(0, 12), unique=True, max_size=12).map(lambda ids: pd.Index(ids, dtype="int64"))
TABLES = st.lists(IDS, min_size=1, max_size=4)


@settings(deadline=None)
@given(ids=TABLES, labels=IDS)
def test_counts_are_those_of_sets(ids: list[pd.Index], labels: pd.Index) -> None:
    sets, known = [set(own) for own in ids], set(labels)
    counted = overlap(ids, labels)
    assert counted.common == len(set.intersection(*sets)) == len(in_all(ids))
    assert counted.labelled == len(set.union(*sets) & known)
    assert counted.labelled_common == len(set.intersection(*sets) & known)
    assert counted.unused == len(known - set.union(*sets))
    assert set(union(ids)) == set.union(*sets) and union(ids).is_unique


@settings(deadline=None)
@given(ids=TABLES, labels=IDS)
def test_arranged_tables_keep_all_rows_and_begin_alike(ids: list[pd.Index], labels: pd.Index) -> None:
    labelled = labels[labels.isin(union(ids))]
    orders, where = arranged(ids, labelled)
    common, ordered = len(in_all(ids)), [own[order] for own, order in zip(ids, orders, strict=True)]
    for own, order in zip(ids, orders, strict=True):
        assert sorted(order.tolist()) == list(range(len(own)))
    assert all((own[:common] == ordered[0][:common]).all() for own in ordered)
    if where is None:
        assert all((own == labelled).all() for own in ordered)
        return
    for own, rows in zip(ordered, where, strict=True):
        assert ((rows != ABSENT) == labelled.isin(own)).all()
        assert (own[rows[rows != ABSENT]] == labelled[rows != ABSENT]).all()


def test_union_is_in_order_of_first_appearance() -> None:
    assert union([pd.Index([3, 1]), pd.Index([2, 3]), pd.Index([0, 1])]).tolist() == [3, 1, 2, 0]


def test_a_whole_overlap_has_no_other_rows() -> None:
    ids = pd.Index(np.arange(4))
    assert overlap([ids, ids[::-1]], ids).whole
    assert not overlap([ids, ids], ids[:3]).whole
