"""Estimators on disk, pickled and cloned; encoders of the user's own."""

import pickle

import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from torch import nn

from dvfl import DVFLClassifier, DVFLRegressor

QUICK = {"guest_epochs": 3, "host_epochs": 3, "owner_epochs": 20}


@pytest.mark.parametrize("estimator", [DVFLClassifier, DVFLRegressor])
def test_a_saved_model_predicts_as_before(table, tmp_path, estimator):
    x, y = table
    target = y if estimator is DVFLClassifier else x[:, 1]
    model = estimator(guests=[[0, 5], [1, 2, 3, 4]], hosts=2, **QUICK).fit(x, target)
    model.save(tmp_path / "model")
    loaded = estimator.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    assert_array_equal(loaded.predict(x), model.predict(x))
    assert_array_equal(loaded.transform(x), model.transform(x))
    assert not list((tmp_path / "model").glob("*.pkl"))


def test_a_model_that_learned_by_simclr_is_saved_too(table, tmp_path):
    x, y = table
    contrasting = {"guest_objective": "simclr", "host_objective": "simclr", "temperature": 0.3}
    model = DVFLClassifier(guests=2, hosts=2, **contrasting, **QUICK).fit(x, y)
    model.save(tmp_path)
    assert_array_equal(DVFLClassifier.load(tmp_path).predict_proba(x), model.predict_proba(x))
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(x), model.predict_proba(x))


def test_a_saved_model_keeps_names_categories_and_missing_values(people, tmp_path):
    frame, y = people
    model = DVFLClassifier(guests=[["age", "town", "plan"], ["member", "country", "visits", "since"]], **QUICK)
    model.fit(frame, y).save(tmp_path)
    loaded = DVFLClassifier.load(tmp_path)
    assert list(loaded.feature_names_in_) == list(frame.columns)
    assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))


def test_a_guest_may_encode_by_pca(table, tmp_path):
    x, y = table
    given = PCA(2)
    model = DVFLClassifier(guests=2, encoders=[given, None], **QUICK).fit(x, y)
    assert not hasattr(given, "components_"), "the user's own object is left as it was"
    model.save(tmp_path)
    loaded = DVFLClassifier.load(tmp_path)
    assert_array_equal(loaded.predict(x), model.predict(x))
    assert_allclose(loaded.predict_proba(x), model.predict_proba(x), rtol=1e-5)


def test_a_guest_may_encode_by_a_network_which_loading_needs_again(table, tmp_path):
    x, y = table
    network = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))
    model = DVFLClassifier(guests=2, encoders=[None, network], **QUICK).fit(x, y)
    model.save(tmp_path)
    loaded = DVFLClassifier.load(tmp_path, encoders=[None, network])
    assert_array_equal(loaded.predict_proba(x), model.predict_proba(x))
    with pytest.raises(ValueError, match=r"the guests \[2\] .*had their own, and need them again"):
        DVFLClassifier.load(tmp_path)


def test_loading_says_what_is_wrong_with_a_folder(table, tmp_path):
    x, y = table
    with pytest.raises(ValueError, match="no manifest"):
        DVFLClassifier.load(tmp_path)
    DVFLClassifier(**QUICK).fit(x, y).save(tmp_path)
    with pytest.raises(ValueError, match="holds DVFLClassifier; a saved DVFLRegressor is right"):
        DVFLRegressor.load(tmp_path)
    (tmp_path / "owner.safetensors").write_bytes(b"cut short")
    with pytest.raises(ValueError, match="SHA-256"):
        DVFLClassifier.load(tmp_path)


def test_a_pickled_model_predicts_as_before(table):
    x, y = table
    encoders = [PCA(2), nn.Linear(2, 3), None]
    model = DVFLClassifier(guests=3, encoders=encoders, **QUICK).fit(x, y)
    parameters = sum(tensor.numel() * 4 for tensor in (model.stack_.host.learner.parameters,))
    pickled = pickle.dumps(model)
    assert len(pickled) < 2 * parameters, "gradients and moments are left behind"
    assert_array_equal(pickle.loads(pickled).predict_proba(x), model.predict_proba(x))


def test_a_clone_is_not_fitted_and_trains_to_the_same(table):
    x, y = table
    model = DVFLClassifier(encoders=[PCA(3)], **QUICK).fit(x, y)
    twin = clone(model)
    with pytest.raises(NotFittedError):
        twin.predict(x)
    assert_array_equal(twin.fit(x, y).predict_proba(x), model.predict_proba(x))
