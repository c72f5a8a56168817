"""A guest's encodings predicted from the others': ridge regression by way of the covariance."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from dvfl.parties.cross_prediction import CLIP, Joint, fit_joint, standardised_rows

WIDTHS = (3, 4, 2)


def encodings(rows: int, seed: int = 0) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    hidden = draw.uniform(-1, 1, size=(rows, 4))
    mixing = np.random.default_rng(9)
    each = [hidden @ mixing.normal(size=(4, width)) + draw.uniform(-0.5, 0.5, (rows, width)) for width in WIDTHS]
    return [(values + 3).astype(np.float32) for values in each]


def whole(rows: int) -> np.ndarray:
    return np.ones((rows, len(WIDTHS)), bool)


@pytest.mark.parametrize("others", [(1, 2), (1,), (2,)], ids=str)
def test_it_is_the_ridge_regression_on_whoever_is_there(others: tuple[int, ...]) -> None:
    train, kept = encodings(800), np.arange(800) >= 600
    joint = fit_joint(train, whole(800), kept)
    z = standardised_rows(joint, train, whole(800))
    given = np.concatenate([np.arange(9)[joint.columns[other]] for other in others])
    model = Ridge(alpha=600 * 0.3, fit_intercept=False).fit(z[:600, given], z[:600, joint.columns[0]])
    predictor = joint.predictor(0, others, penalty=0.3)
    np.testing.assert_allclose(predictor[given], model.coef_.T, atol=1e-4)
    assert not predictor[np.setdiff1d(np.arange(9), given)].any()


def test_nobody_predicts_nothing() -> None:
    joint = fit_joint(encodings(100), whole(100), np.arange(100) >= 70)
    assert not joint.predictor(1, ()).any()


def test_penalties_are_larger_where_rows_are_few() -> None:
    few, many = (fit_joint(encodings(rows), whole(rows), np.arange(rows) % 4 == 0) for rows in (24, 4000))
    assert few.penalties.mean() > many.penalties.mean()


def test_rows_that_guests_lack_have_no_part_and_the_rest_fits_together() -> None:
    rows = 3000
    train, present = encodings(rows), np.random.default_rng(1).random((rows, 3)) < 0.6
    kept = np.arange(rows) % 4 == 0
    complete = fit_joint(train, whole(rows), kept)
    for guest, values in enumerate(train):
        values[~present[:, guest]] = np.nan
    joint = fit_joint(train, present, kept)
    assert np.linalg.eigvalsh(joint.covariance.astype(np.float64)).min() > -1e-5
    np.testing.assert_allclose(joint.covariance, complete.covariance, atol=0.15)
    np.testing.assert_allclose(joint.centre, complete.centre, atol=0.1)


def test_values_are_clipped_and_constant_dimensions_are_in_their_own_unit() -> None:
    train = encodings(200)
    train[1][:, 0] = 7.0
    joint = fit_joint(train, whole(200), np.arange(200) >= 150)
    z = joint.standardised(np.full((1, 4), 8.0, np.float32), 1)
    assert z[0, 0] == 1.0
    assert (joint.standardised(np.full((1, 4), 1e30, np.float32), 1) == CLIP).all()


def test_a_guest_without_a_row_is_no_trouble() -> None:
    present = whole(100)
    present[:, 2] = False
    joint = fit_joint(encodings(100), present, np.arange(100) >= 70)
    assert np.isfinite(joint.covariance).all() and np.isfinite(joint.predictor(0, (1, 2))).all()


def test_state_makes_it_again() -> None:
    joint = fit_joint(encodings(100), whole(100), np.arange(100) >= 70)
    again = Joint.from_state(joint.state())
    assert again.widths == joint.widths
    assert (again.predictor(0, (1, 2)) == joint.predictor(0, (1, 2))).all()
