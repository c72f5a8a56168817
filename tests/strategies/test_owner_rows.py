"""What the owner trains on, as it is and by entity augmentation."""

from dataclasses import replace

import numpy as np
import pytest
from replicas import QUICK, trained

from dvfl.align.entities import samples
from dvfl.data.split.vertical import ABSENT, GuestTable, VerticalData, limited_intersection, with_absences
from dvfl.errors import UserError
from dvfl.simulation.replica_data import ReplicaData
from dvfl.strategies import STRATEGIES
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.decoupled.owner_rows import augmented_rows, labelled_rows

CLASSES = tuple("abc")


def apart(aligned: int, own: int, guests: int = 3) -> VerticalData:
    """Entities whose every value is their number, at all guests or at one; a class is the number's rest by 3."""
    counts = aligned + own * guests
    where = np.full((guests, counts), ABSENT)
    tables = []
    for guest in range(guests):
        first = aligned + own * guest
        mine = np.concatenate([np.arange(aligned), np.arange(first, first + own)])
        where[guest, mine] = np.arange(len(mine))
        tables.append(GuestTable(f"guest-{guest + 1}", mine[:, None].astype(np.float32), np.zeros((3, 1), np.float32)))
    return VerticalData("apart", tuple(tables), np.arange(counts) % 3, np.arange(3), CLASSES, labelled=where)


def test_a_label_stands_beside_the_rows_of_its_entity() -> None:
    rows = labelled_rows(ReplicaData(apart(5, 4), 1))
    assert rows.present is not None and rows.count == 17 and rows.artificial == 0
    for table, present in zip(rows.tables, rows.present.T, strict=True):
        assert (table[present, 0].numpy() % 3 == rows.labels[present.numpy()]).all()
    assert [rows.sent_by(guest) for guest in range(3)] == [9, 9, 9]


def test_an_artificial_entity_has_the_classes_of_its_parts() -> None:
    rows = augmented_rows(ReplicaData(apart(5, 4), 2), (0, 1))
    assert rows.present is None and rows.count == 9 and rows.artificial == 4 and rows.parts is not None
    for guest, table in enumerate(rows.tables):
        assert (table[..., 0].numpy() % 3 == rows.parts[..., guest]).all()
    assert (rows.parts[:, :5] == rows.labels[:, :5, None]).all()
    assert (rows.tables[0][0] != rows.tables[0][1]).any()  # every seed has its own


def test_artificial_entities_are_not_held_out(digits: VerticalData) -> None:
    data = with_absences(digits, 0.2, 0)
    assert data.labelled is not None
    simulation = Dvfl(data, replace(QUICK, entity_augmentation=True, validation=0.3), (0, 1))
    owner = simulation.open_owner()
    aligned, artificial = samples(data.labelled.T != ABSENT)
    assert owner.rows.held is not None and owner.rows.held.shape == (2, round(0.3 * aligned))
    assert owner.rows.held.max() < aligned
    assert len(owner.rows.trained_on(0)) == aligned + artificial - owner.rows.held.shape[1]


def test_where_all_rows_are_aligned_augmentation_changes_nothing(digits: VerticalData) -> None:
    data = limited_intersection(digits, 200, 0)
    plain, augmented = (trained(data, replace(QUICK, entity_augmentation=on), (0,)) for on in (False, True))
    np.testing.assert_allclose(plain.outputs(), augmented.outputs(), atol=1e-3)


def test_artificial_entities_teach(digits: VerticalData) -> None:
    data = with_absences(digits, 0.5, 0)
    pairs = zip(data.guests, digits.guests, strict=True)
    complete = replace(data, guests=tuple(replace(own, test=whole.test) for own, whole in pairs), tested=None)
    simulation = trained(complete, replace(QUICK, entity_augmentation=True, owner_epochs=40), (0,))
    assert simulation.scores()[0] > 50


def test_what_cannot_be_augmented_is_refused(digits: VerticalData) -> None:
    settings = replace(QUICK, entity_augmentation=True)
    numbers = replace(digits, classes=None, y_train=digits.y_train.astype(np.float32))
    with pytest.raises(UserError, match="entity_augmentation: the labels are numbers"):
        Dvfl(numbers, settings, (0,))
    with pytest.raises(UserError, match="0 labelled rows are at every guest, and 0 more"):
        Dvfl(lonely(), settings, (0,))
    with pytest.raises(UserError, match="dvfl alone"):
        STRATEGIES.find("fedonce")(digits, settings, (0,))


def lonely() -> VerticalData:
    """One guest has every label, the others none."""
    data = apart(0, 40)
    assert data.labelled is not None
    mine = data.labelled[0] != ABSENT
    return replace(data, y_train=data.y_train[mine], labelled=data.labelled[:, mine])
