"""What is kept of a training: gradients of split networks, and earlier releases of encodings."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dvfl.audit.attacks import backdoor, completion, inversion
from dvfl.audit.readers.readers import SMALL
from dvfl.audit.recordings.cases import Case, rows_of
from dvfl.audit.recordings.record_files import load_recording, save_recording
from dvfl.audit.recordings.recorder import recorded
from dvfl.data import load
from dvfl.data.split.vertical import VerticalData, fewer_rows, limited_intersection, misaligned, with_absences
from dvfl.errors import UserError
from dvfl.settings.training import Settings
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.presets import preset, shielded

DATA = fewer_rows(load("digits"), 400)


def case(**change: object) -> Case:
    settings = preset("tuned", DATA)
    assert isinstance(settings, Settings)
    settings = replace(settings, hosts=1, guest_epochs=6, host_epochs=6, owner_epochs=4)
    return Case("dvfl", DATA, replace(settings, **change), (0, 1), torch.device("cpu"))  # type: ignore[arg-type]


def test_noise_that_is_drawn_anew_can_be_averaged_and_the_recording_lets_an_attacker_do_so() -> None:
    _, seen = recorded(case(clip=1.0, noise=0.1))
    every = seen.with_earlier()
    assert every is not None
    effort = replace(SMALL, known=(100,), steps=100)
    last, all_releases = (max(one.mean for one in inversion.measure(own, effort)) for own in (seen, every))
    assert all_releases > last + 0.05


def test_a_shield_sends_once_so_there_is_nothing_to_average() -> None:
    plain = case()
    assert isinstance(plain.settings, Settings)
    training, seen = recorded(plain.changed(settings=shielded(plain.settings, 0.5, [32])))
    settings = training.simulation.settings
    assert isinstance(settings, Settings) and settings.releases == 1
    assert seen.with_earlier() is None


def test_flat_encodings_leave_a_guest_as_strong_in_every_direction() -> None:
    _, seen = recorded(case(flatten=True))
    for guest in seen.guests:
        spread = guest.z[0, : seen.rows.trained].var(0)
        assert float(spread.median()) > 0.3 and float(spread.max()) < 4


def test_encoders_that_change_tell_more_of_a_row_than_the_last_of_them() -> None:
    _, seen = recorded(case(guest_objective="simclr", guest_noise=0.0))
    every = seen.with_earlier()
    assert every is not None and every.guests[0].z.shape[2] == 3 * seen.guests[0].z.shape[2]
    effort = replace(SMALL, known=(100,), steps=100)
    last, all_releases = (max(one.mean for one in inversion.measure(own, effort)) for own in (seen, every))
    assert all_releases > last + 0.02


@pytest.mark.parametrize("change", [{"period": 6}, {"hosts": 0}])
def test_of_what_is_sent_once_there_is_nothing_earlier(change: dict[str, int]) -> None:
    _, seen = recorded(case(**change))
    assert seen.with_earlier() is None
    assert all(guest.gradients is None for guest in seen.guests)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_recording_is_the_same_after_a_while_on_disk(noise: float, tmp_path: Path) -> None:

    folder = tmp_path
    _, seen = recorded(case(clip=8.0, noise=noise))
    save_recording(seen, folder)
    again = load_recording(folder, torch.device("cpu"))
    assert (again.strategy, again.seeds, again.rows) == (seen.strategy, seen.seeds, seen.rows)
    assert torch.equal(again.y, seen.y) and torch.equal(again.outputs, seen.outputs)
    for one, other in zip(again.guests, seen.guests, strict=True):
        assert one.name == other.name and torch.equal(one.x, other.x)
        torch.testing.assert_close(one.z, other.z, rtol=1e-3, atol=1e-2)  # kept in half precision
        assert (one.earlier is None) == (other.earlier is None)


def test_gradients_are_kept_however_small_they_are(tmp_path: Path) -> None:
    settings = replace(preset("tuned", DATA, "splitnn-wait"), epochs=2)
    _, seen = recorded(Case("splitnn-wait", DATA, settings, (0,), torch.device("cpu")))
    small = replace(seen, guests=tuple(replace(one, gradients=one.gradients * 1e-7) for one in seen.guests))
    save_recording(small, tmp_path)
    for one, other in zip(load_recording(tmp_path, torch.device("cpu")).guests, small.guests, strict=True):
        assert one.gradients is not None and other.gradients is not None
        assert one.gradients.abs().max() > 0 and torch.equal(one.gradients, other.gradients)


def test_a_guest_completes_its_encoder_as_it_has_it_and_not_as_it_sends() -> None:
    """Noise that drowns what leaves a guest does not keep the guest itself from anything."""
    effort = replace(SMALL, labels=(10,), steps=100)
    plain, noisy = (
        completion.measure(recorded(case(**change))[1], effort)[0] for change in ({}, {"clip": 1.0, "noise": 9.0})
    )
    assert noisy.mean == pytest.approx(plain.mean)


def test_flat_encodings_do_with_guests_that_have_different_numbers_of_rows() -> None:
    data = with_absences(DATA, 0.2, 0)
    assert len({len(guest.train) for guest in data.guests}) > 1
    settings = case(flatten=True, host_model="concatenate", owner_epochs=80).settings
    assert isinstance(settings, Settings)
    training = Dvfl(data, settings, [0])
    training.run()
    assert training.scores()[0] > 30


# Rows that some guests lack, or that lie in another order at each.

SCATTERED = {
    "absent": with_absences(DATA, 0.2, 0),
    "misaligned": misaligned(DATA, 0),
    "limited": limited_intersection(DATA, 200, 0),
}


@pytest.mark.parametrize("kind", list(SCATTERED))
@pytest.mark.parametrize("strategy", ["dvfl", "splitnn-wait"])
def test_the_same_people_are_recorded_of_all_guests_wherever_their_rows_lie(kind: str, strategy: str) -> None:
    data = SCATTERED[kind]
    settings = preset("tuned", data, strategy)
    short = {"guest_epochs": 2, "host_epochs": 1, "owner_epochs": 1} if strategy == "dvfl" else {"epochs": 1}
    _, seen = recorded(Case(strategy, data, replace(settings, **short), (0,), torch.device("cpu")))  # type: ignore[arg-type]
    assert seen.rows.trained == int(data.complete.sum())
    assert seen.rows.tests == int(data.complete_tests.sum())
    whole = load("digits")
    joint = np.concatenate([np.concatenate([one.train for one in whole.guests], 1), _tests(whole)])
    labels = np.concatenate([whole.y_train, whole.y_test])
    known = {row.tobytes(): int(label) for row, label in zip(joint, labels, strict=True)}
    people = torch.cat([guest.x for guest in seen.guests], 1).numpy()
    assert [known[row.tobytes()] for row in people] == seen.y.tolist()


def _tests(data: VerticalData) -> np.ndarray[Any, Any]:
    return np.concatenate([one.test for one in data.guests], 1)


def test_what_some_guests_lack_is_attacked_as_what_all_have() -> None:
    data = SCATTERED["absent"]
    settings = replace(preset("tuned", data), guest_epochs=6, owner_epochs=4)
    attacked = Case("dvfl", data, settings, (0,), torch.device("cpu"))
    effort = replace(SMALL, known=(50,), labels=(1,), steps=50)
    training, seen = recorded(attacked, backdoor.variations(attacked))
    assert seen.guests[0].earlier is None  # hosts pass on what they read
    assert max(one.mean for one in inversion.measure(seen, effort)) > 0.5
    turned, alone = backdoor.measure(attacked, effort, training)
    assert turned.known == round(0.01 * int(data.complete.sum())) and alone.known == 0
    assert 0 <= alone.mean <= 100


def test_poisoned_rows_are_those_of_the_people_that_were_drawn() -> None:
    data = SCATTERED["absent"]
    guest, rows = backdoor.guest_of(data), backdoor._rows(data)
    changed = backdoor.poisoned(data).guests[guest].train != data.guests[guest].train
    where = data.labelled
    assert where is not None and (where[:, rows] >= 0).all() and (data.y_train[rows] == 0).all()
    assert set(np.flatnonzero(changed.any(1))) <= set(where[guest][rows])


@pytest.mark.parametrize(("labelled", "said"), [(40, "40 labelled training rows are at every guest"), (60, "")])
def test_an_audit_needs_some_people_that_every_guest_has(labelled: int, said: str) -> None:
    data = limited_intersection(DATA, labelled, 0)
    if not said:
        assert rows_of(data)[0].trained == labelled
        return
    with pytest.raises(UserError, match=f"{said}; for an audit 50 are right"):
        rows_of(data)
