"""Rows that some guests lack: guests of different lengths, absent values, what other strategies make of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from replicas import FAULTS, LEARNED, QUICK, check_replica_is_itself, trained

from dvfl.data.split.vertical import VerticalData, completed, intersection, with_absences
from dvfl.errors import UserError
from dvfl.parties.host import Host
from dvfl.settings.training import AnySettings, FedVSSettings, Settings, SplitSettings
from dvfl.simulation.checkpoint import restore, save
from dvfl.strategies import STRATEGIES
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.presets import preset
from dvfl.strategies.tuned_preset import tuned

ABSENCES = 0.2
SPLIT = SplitSettings(epochs=4, batch=32)
HIDING = replace(QUICK, guest_dropout=0.2)


@pytest.fixture(scope="module")
def lacking(unequal_digits: VerticalData) -> VerticalData:
    """Digits of which every guest lacks rows of its own."""
    return with_absences(unequal_digits, ABSENCES, 0)


@pytest.mark.parametrize(
    "change", [{}, {"host_model": "concatenate"}, {"hosts": 0}, {"entity_augmentation": True}], ids=str
)
def test_a_replica_with_absent_rows_is_its_seed_trained_alone(lacking: VerticalData, change: dict[str, object]) -> None:
    check_replica_is_itself(lacking, replace(HIDING, **change), FAULTS["none"], 1)  # type: ignore[arg-type]


def test_guests_with_fewer_rows_go_through_all_of_them_and_some_again(lacking: VerticalData) -> None:
    simulation = Dvfl(lacking, QUICK, (0,))
    order = simulation.guests._order(0)
    counts = [len(guest.train) for guest in lacking.guests]
    assert order.shape == (simulation.guests.iterations, len(counts), QUICK.batch)
    for guest, count in enumerate(counts):
        assert set(order[:, guest].ravel().tolist()) == set(range(count))
    most = int(np.argmax(counts))
    shared = order[:, most] < min(counts)
    assert all((order[:, guest][shared] == order[:, most][shared]).all() for guest in range(len(counts)))


def test_rows_are_learned_from_although_guests_lack_some(lacking: VerticalData) -> None:
    simulation = trained(lacking, replace(HIDING, guest_epochs=10, host_epochs=20, owner_epochs=60), (0,))
    assert simulation.scores()[0] > LEARNED


def test_an_absent_guest_is_encoded_as_the_hosts_learned_and_whatever_its_table_holds(lacking: VerticalData) -> None:
    simulation = trained(lacking, HIDING, (0,))
    stack, present = simulation.stack, simulation.tables.test_present()
    assert isinstance(stack.host, Host) and present is not None
    tables = simulation.tables.test()
    joint = stack.encode(tables, present=present)
    for table, own in zip(tables, present.T, strict=True):
        table[~own] = 99.0
    assert (stack.encode(tables, present=present) == joint).all()
    with torch.no_grad():
        stack.host.learner.parameters[:, : stack.joint] += 1.0
    moved = (stack.encode(tables, present=present) != joint).any(2)[0]
    assert (moved == ~present.all(1)).all()


@pytest.mark.parametrize("change", [{"host_model": "concatenate"}, {"hosts": 0}], ids=str)
def test_without_hosts_that_learn_an_absent_guest_is_the_mean_of_its_encodings(
    lacking: VerticalData, change: dict[str, object]
) -> None:
    simulation = trained(lacking, replace(HIDING, **change), (0,))  # type: ignore[arg-type]
    stack, present = simulation.stack, simulation.tables.test_present()
    joint = stack.encode(simulation.tables.test(), present=present)
    assert joint.isnan().any()
    filled = torch.where(joint.isnan(), stack.centre, joint)
    torch.testing.assert_close(stack.predict(joint, gaps=True), stack.predict(filled))
    assert np.isfinite(simulation.scores()).all()


def test_hiding_guests_from_an_owner_without_hosts_helps_it_when_they_are_absent(digits: VerticalData) -> None:
    absent = with_absences(digits, 0.4, 0)
    pairs = zip(digits.guests, absent.guests, strict=True)
    guests = tuple(replace(guest, test=other.test) for guest, other in pairs)
    tested = replace(digits, guests=guests, tested=absent.tested)  # training rows are all there
    settings = replace(QUICK, hosts=0, owner_epochs=30)
    never, often = (trained(tested, replace(settings, guest_dropout=share), (0, 1)) for share in (0.0, 0.4))
    assert often.scores().mean() > never.scores().mean() + 2


def test_a_checkpoint_goes_on_to_the_same_end(lacking: VerticalData, tmp_path) -> None:
    settings = replace(HIDING, entity_augmentation=True, guest_epochs=2, host_epochs=3, owner_epochs=3)
    whole = trained(lacking, settings, (0,))
    begun = Dvfl(lacking, settings, (0,))
    for _ in range(4):
        begun.advance()
    save(begun, tmp_path / "checkpoint")
    resumed = Dvfl(lacking, settings, (0,))
    restore(resumed, tmp_path / "checkpoint")
    resumed.run()
    assert (resumed.outputs() == whole.outputs()).all()


@pytest.mark.parametrize(
    ("name", "settings"),
    [("splitnn-zeros", SPLIT), ("vafl", SPLIT), ("fedvs", FedVSSettings(epochs=1)), ("fedonce", QUICK)],
)
def test_other_strategies_train_on_labelled_rows_that_every_guest_has_and_say_so(
    lacking: VerticalData, name: str, settings: AnySettings
) -> None:
    simulation = STRATEGIES.find(name)(lacking, settings, (0,))
    assert len(simulation.data.y_train) == lacking.complete.sum()
    assert "labelled rows that every guest has" in simulation.data.note
    if isinstance(settings, Settings):
        assert simulation.data.guests == lacking.guests  # which learn without labels, so from all
    common = STRATEGIES.find(name)(completed(lacking), settings, (0,))
    simulation.run()
    common.run()
    assert (simulation.outputs() == common.outputs()).all()


@pytest.mark.parametrize("name", ["splitnn-wait", "fedonce", "fedvs"])
def test_other_strategies_refuse_too_small_an_intersection(digits: VerticalData, name: str) -> None:
    data = with_absences(digits, 0.999, 0)
    with pytest.raises(UserError, match=r"digits: 0 of 600 labelled rows are at every guest, .* or dvfl"):
        STRATEGIES.find(name)(data, preset("tuned", data, name), (0,))


def test_tuned_hides_guests_in_training_where_a_row_lacks_one(digits: VerticalData, lacking: VerticalData) -> None:
    assert tuned(digits).guest_dropout == 0
    assert tuned(lacking).guest_dropout > 0
    assert tuned(intersection(replace(lacking, tested=None))).guest_dropout == 0
    assert tuned(replace(digits, tested=lacking.tested)).guest_dropout > 0


def test_guests_send_the_owner_the_rows_that_they_have(lacking: VerticalData) -> None:
    simulation = Dvfl(lacking, replace(QUICK, hosts=0), (0,))
    flows = [flow for flow in simulation.flows() if flow.leg == "guests"]
    pairs = zip(flows, simulation.stack.latents, strict=True)
    rows = [flow.megabytes * 1e6 / 4 / latent for flow, latent in pairs]
    assert rows == pytest.approx([len(guest.train) for guest in lacking.guests])


def test_rows_and_labels_that_do_not_fit_are_refused(digits: VerticalData, lacking: VerticalData) -> None:
    assert lacking.labelled is not None
    for wrong, message in (
        (replace(lacking, labelled=None), "need `labelled`"),
        (replace(lacking, labelled=lacking.labelled[:, 1:]), "shape"),
        (replace(lacking, labelled=lacking.labelled + 600), "does not have"),
        (replace(lacking, labelled=np.full_like(lacking.labelled, -1)), "no guest has"),
    ):
        with pytest.raises(ValueError, match=message):
            Dvfl(wrong, QUICK, (0,))
