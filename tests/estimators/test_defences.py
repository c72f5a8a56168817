"""Estimators whose guests send less: shield, clip, noise and adversary."""

import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score, train_test_split
from torch import nn

from dvfl import DVFLClassifier, DVFLRegressor
from dvfl.cli import main
from dvfl.release.accounting import epsilon_of_release

QUICK = {"guest_epochs": 3, "host_epochs": 3, "owner_epochs": 20}
AGAINST = {"guest_objective": "simclr", "adversary": 0.5}
DEFENCES = [{"shield": 0.5}, {"clip": 2.0, "noise": 0.1}, {"clip": 2.0}, AGAINST]


@pytest.fixture(params=DEFENCES, ids=lambda defence: "-".join(defence))
def defence(request):
    return request.param


def test_a_shield_still_lets_classes_be_found():
    x, y = load_breast_cancer(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.25, random_state=0, stratify=y)
    assert DVFLClassifier(guests=3, shield=0.5).fit(x_train, y_train).score(x_test, y_test) > 0.9


@pytest.mark.parametrize(
    "given", [{}, {"shield": 0.5}, {"clip": 2.0, "noise": 0.1}, {"shield": 0.5, "noise": 0.0}, {"w_g": 6}, AGAINST]
)
def test_the_settings_are_those_of_the_command_line(table, tmp_path, given):
    x, y = table
    pd.DataFrame(x[:, :3]).rename(columns=str).rename_axis("id").to_csv(tmp_path / "a.csv")
    pd.DataFrame(x[:, 3:]).rename(columns=str).rename_axis("id").to_csv(tmp_path / "b.csv")
    pd.Series(y, name="y").rename_axis("id").to_csv(tmp_path / "y.csv")
    options = [f"--{name.replace('_', '-')}={value}" for name, value in {**QUICK, **given}.items()]
    files = [f"--table={tmp_path}/a.csv", f"--table={tmp_path}/b.csv", f"--labels={tmp_path}/y.csv", "--id=id"]
    assert main(["train", "--quiet", *files, *options, f"--out={tmp_path / 'run'}"]) == 0
    told = json.loads((tmp_path / "run" / "config.json").read_text())["settings"]
    model = DVFLClassifier(guests=2, **QUICK, **given).fit(x, y)
    assert json.loads(json.dumps(model.stack_.settings.as_dict())) == told


def test_an_objective_that_is_given_wins_over_the_shields(table):
    model = DVFLClassifier(shield=0.5, guest_objective="reconstruction", **QUICK).fit(*table)
    assert model.stack_.settings.guest_objective == "reconstruction" and model.stack_.settings.flatten


def test_more_noise_tells_less(table):
    x, y = table
    clear, dim = (DVFLClassifier(clip=2.0, noise=noise).fit(x[:80], y[:80]) for noise in (0.0, 5.0))
    assert clear.score(x[80:], y[80:]) > dim.score(x[80:], y[80:]) + 0.1


def test_a_saved_a_pickled_and_a_cloned_model_predict_as_before(table, tmp_path, defence):
    x, y = table
    model = DVFLClassifier(guests=2, hosts=2, **defence, **QUICK).fit(x, y)
    model.save(tmp_path)
    loaded = DVFLClassifier.load(tmp_path)
    assert loaded.get_params() == model.get_params()
    for twin in (loaded, pickle.loads(pickle.dumps(model)), clone(model).fit(x, y)):
        assert_array_equal(twin.predict_proba(x), model.predict_proba(x))
        assert_array_equal(twin.transform(x), model.transform(x))


def test_what_is_said_of_a_row_does_not_depend_on_the_rows_beside_it(table, defence):
    x, _ = table
    model = DVFLRegressor(guests=3, **defence, **QUICK).fit(x, x[:, 1])
    alone = np.concatenate([model.predict(x[[row]]) for row in range(20)])
    assert_allclose(alone, model.predict(x[::-1])[::-1][:20], rtol=1e-6)


def test_predicted_rows_have_noise_of_their_own(table):
    x, y = table
    clear, noisy = (
        DVFLClassifier(guests=2, hosts=0, clip=2.0, noise=noise, **QUICK).fit(x, y).transform(x) for noise in (0.0, 0.1)
    )
    assert_allclose((noisy - clear).std(), 0.2, rtol=0.1)
    assert len(np.unique(noisy - clear)) > 0.99 * noisy.size


def test_rows_that_a_table_lacks_may_be_shielded_too(table):
    x, y = table
    tables = [pd.DataFrame(x[:90, :3], index=range(10, 100)), pd.DataFrame(x[:, 3:])]
    model = DVFLClassifier(shield=0.5, **QUICK).fit(tables, pd.Series(y))
    assert model.predict(tables).shape == (120,)
    assert model.predict([tables[0], tables[1].iloc[:0]]).shape == (90,)


def test_a_shielded_model_is_cross_validated(table):
    scores = cross_val_score(DVFLClassifier(guests=2, shield=0.5), *table, cv=2, error_score="raise")
    assert np.isfinite(scores).all()


def test_a_shield_measures_its_noise_by_the_width_of_a_users_own_network(table):
    x, y = table
    model = DVFLClassifier(guests=2, encoders=[nn.Linear(3, 100), None], shield=0.5, **QUICK).fit(x, y)
    assert (model.stack_.settings.clip, model.stack_.settings.noise) == (10.0, 0.05)


def test_a_users_fitted_encoder_may_be_clipped_and_noisy_and_not_shielded(table):
    x, y = table
    encoders = [PCA(2), None]
    model = DVFLClassifier(guests=2, encoders=encoders, clip=2.0, noise=0.1, **QUICK).fit(x, y)
    assert model.predict(x).shape == (120,)
    with pytest.raises(ValueError, match="shield does not go with PCA, the encoder of guest 1"):
        clone(model).set_params(shield=0.5, clip=None, noise=None).fit(x, y)


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"shield": 0}, "shield 0.0: a number above 0 is right; 0.5 to 0.7 is usual"),
        ({"shield": math.inf}, "shield inf: a number above 0 is right"),
        ({"clip": 0}, "clip 0.0: a number above 0 is right"),
        ({"clip": math.nan}, "clip nan: a number above 0 is right"),
        ({"clip": 1.0, "noise": -1}, "noise -1.0: 0 or more is right"),
        ({"noise": 0.5}, "noise 0.5 without clip"),
        ({"shield": 0.5, "host_objective": "simclr"}, "there is no host that learns"),
    ],
)
def test_what_means_nothing_is_refused_in_the_command_lines_words(table, given, wrong):
    with pytest.raises(ValueError, match=wrong):
        DVFLClassifier(**given, **QUICK).fit(*table)


def test_without_noise_nothing_is_promised(table):
    assert DVFLClassifier(clip=2.0, **QUICK).fit(*table).epsilon_ is None
    with pytest.raises(NotFittedError):
        _ = DVFLClassifier(clip=2.0).epsilon_


def test_without_the_extra_no_epsilon_is_told(table, monkeypatch):
    monkeypatch.setattr("dvfl.release.accounting.find_spec", lambda name: None)
    assert DVFLClassifier(clip=2.0, noise=8.0, **QUICK).fit(*table).epsilon_ is None


def test_an_epsilon_that_is_asked_for_is_kept_by_the_least_noise_that_does(table):
    pytest.importorskip("opacus", reason="the extra dvfl[privacy] is not installed")
    model = DVFLClassifier(clip=2.0, epsilon=5.0, **QUICK).fit(*table)
    assert 4.95 < model.epsilon_ <= 5.0
    assert model.stack_.settings.releases == 4
    once = DVFLClassifier(clip=2.0, epsilon=5.0, hosts=0, **QUICK).fit(*table)
    assert once.stack_.settings.noise == pytest.approx(model.stack_.settings.noise / 2, rel=0.01)  # a quarter as often
    with pytest.raises(ValueError, match=r"epsilon 0.0: a number above 0 is right"):
        clone(model).set_params(epsilon=0).fit(*table)


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"epsilon": 5.0}, "epsilon 5.0 without clip"),
        ({"epsilon": 5.0, "clip": 2.0, "noise": 0.5}, "epsilon 5.0 and noise 0.5"),
        ({"epsilon": 5.0, "shield": 0.5}, "epsilon 5.0 and a shield"),
    ],
)
def test_an_epsilon_that_nothing_or_two_things_follow_from_is_refused(table, given, wrong):
    with pytest.raises(ValueError, match=wrong):
        DVFLClassifier(**given, **QUICK).fit(*table)


def test_epsilon_counts_all_that_is_sent_of_a_row(table, tmp_path):
    pytest.importorskip("opacus", reason="the extra dvfl[privacy] is not installed")
    model = DVFLClassifier(clip=2.0, noise=8.0, **QUICK).fit(*table)
    assert model.delta_ == 1e-5
    assert model.epsilon_ == epsilon_of_release(8.0, 4, 1e-5)  # in three epochs, and once for the owner
    model.save(tmp_path)
    assert DVFLClassifier.load(tmp_path).epsilon_ == model.epsilon_
