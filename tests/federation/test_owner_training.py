"""The owner's head: encodings of several passes, rows kept for calibration, and what a checkpoint holds of it."""

import numpy as np
import pytest
import torch
from subject import Size, training_plan

from dvfl.federation.owner.head import read_head
from dvfl.federation.owner.owner_training import Labels, OwnerTraining
from dvfl.federation.party.owner_settings import OwnerSettings

PLAN = training_plan(["guest-1", "guest-2"], ["host-1", "host-2"], Size())
CLASSES = ("no", "yes")


def made(
    rows: int = 400, passes: int = 1, classes: tuple[str, ...] | None = CLASSES, **change: object
) -> OwnerTraining:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=rows)
    joint = torch.from_numpy((rng.normal(size=(passes, rows, 12)) + y[None, :, None]).astype(np.float32))
    labels = Labels(np.arange(rows, dtype=np.int32), y if classes else y.astype(np.float32), classes)
    own = OwnerSettings(**{"epochs": 4, **change})  # type: ignore[arg-type]
    return OwnerTraining(PLAN, own, labels, joint, [True, True])


def trained(training: OwnerTraining) -> OwnerTraining:
    while not training.finished:
        training.train()
    return training


def test_a_twentieth_of_the_labels_is_kept_from_training_where_there_are_enough() -> None:
    assert len(made(400)._kept) == 20 and len(made(400)._train) == 380
    assert len(made(199)._kept) == 0
    assert len(made(400, classes=None)._kept) == 0
    assert len(made(400, calibration=0.0)._kept) == 0


def test_kept_rows_have_no_part_in_training() -> None:
    plain, changed = made(), made()
    changed._y[changed._kept] = 1 - changed._y[changed._kept]
    changed._joint[:, changed._kept] = 1e3
    ours, theirs = trained(plain).owner.learner.parameters, trained(changed).owner.learner.parameters
    assert torch.equal(ours, theirs)
    assert plain.head().temperature != changed.head().temperature


def test_a_rows_encodings_take_turns() -> None:
    first, both = made(passes=1), made(passes=2)
    both._joint[0] = first._joint[0]
    assert not torch.equal(trained(first).owner.learner.parameters, trained(both).owner.learner.parameters)
    same = made(passes=2, standardise=False)
    alone = made(passes=1, standardise=False)
    same._joint[0] = same._joint[1] = alone._joint[0]
    assert torch.equal(trained(same).owner.learner.parameters, trained(alone).owner.learner.parameters)


@pytest.mark.parametrize("classes", [CLASSES, None])
def test_a_head_comes_back_from_a_checkpoint(classes: tuple[str, ...] | None) -> None:
    training = trained(made(classes=classes, head=(7,)))
    head = training.head()
    again = read_head(PLAN, {**training.state(), **head.tensors()}, head.values())
    joint, present = torch.randn(5, 12), torch.tensor([[True, False]] * 5)
    assert torch.equal(again.outputs(joint, present), head.outputs(joint, present))
    assert (again.classes, again.hidden, again.temperature) == (head.classes, (7,), head.temperature)


def test_where_hosts_concatenate_the_owner_learns_to_do_without_a_guest() -> None:
    """The first guest's encodings tell the class better than the second's, far from zero."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=600)
    clear, weak = (rng.normal(size=(600, 4)) * spread + 3 * y[:, None] + 5 for spread in (0.5, 1.5))
    joint = torch.from_numpy(np.tile(np.concatenate([clear, weak], 1), 2).astype(np.float32))
    without_first = joint.clone()
    without_first[:, [0, 1, 2, 3, 8, 9, 10, 11]] = 0.0

    def accuracy(hiding: float) -> float:
        plan = training_plan(
            ["guest-1", "guest-2"], ["host-1", "host-2"], Size(), host_model="concatenate", guest_dropout=hiding
        )
        labels = Labels(np.arange(600, dtype=np.int32), y, CLASSES)
        training = trained(OwnerTraining(plan, OwnerSettings(epochs=20), labels, joint[None], [True, True]))
        return float((training.predict(without_first).argmax(1).numpy() == y).mean())

    assert accuracy(0.3) > 0.9 > accuracy(0.0)
