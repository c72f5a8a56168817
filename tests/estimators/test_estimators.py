"""What the estimators learn and say, and how they stand among scikit-learn's."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from dvfl import DVFLClassifier, DVFLRegressor

QUICK = {"guest_epochs": 3, "host_epochs": 3, "owner_epochs": 20}


@parametrize_with_checks(
    [DVFLClassifier(), DVFLRegressor(), DVFLClassifier(shield=0.5)]
)  # every check applies; none is expected to fail
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("load", "guests", "least"), [(load_breast_cancer, 3, 0.94), (load_wine, 3, 0.93), (load_digits, 4, 0.95)]
)
def test_classes_of_rows_never_seen_are_found(load, guests, least):
    x, y = load(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.25, random_state=0, stratify=y)
    assert DVFLClassifier(guests=guests).fit(x_train, y_train).score(x_test, y_test) > least


def test_numbers_of_rows_never_seen_are_found():
    scores = cross_val_score(DVFLRegressor(guests=2), *load_diabetes(return_X_y=True), cv=4)
    assert scores.mean() > 0.4  # a linear model reaches 0.48


def test_probabilities_sum_to_one_and_agree_with_the_prediction(table):
    x, y = table
    model = DVFLClassifier(**QUICK).fit(x, y)
    probabilities = model.predict_proba(x)
    assert probabilities.shape == (120, 2) and probabilities.dtype == np.float64
    assert_allclose(probabilities.sum(1), 1, rtol=1e-12)
    assert_array_equal(model.classes_[probabilities.argmax(1)], model.predict(x))


def test_what_is_said_of_a_row_does_not_depend_on_the_rows_beside_it(table):
    x, y = table
    model = DVFLClassifier(guests=3).fit(x, y)
    alone = np.concatenate([model.predict_proba(x[[row]]) for row in range(20)])
    assert_allclose(alone, model.predict_proba(x)[:20], rtol=1e-6)


@pytest.mark.parametrize("hosts", [0, 1, 3])
def test_the_joint_encoding_has_the_columns_of_all_hosts(table, hosts):
    x, y = table
    model = DVFLClassifier(guests=2, hosts=hosts, **QUICK).fit(x, y)
    joint = model.transform(x)
    width = sum(model.stack_.latents) if hosts == 0 else hosts * model.stack_.sizes.host_latent
    assert joint.shape == (120, width) and joint.dtype == np.float32
    assert len(model.get_feature_names_out()) == width


def test_no_hosts_at_all_still_learn(table):
    x, y = table
    assert DVFLClassifier(guests=2, hosts=0).fit(x[:80], y[:80]).score(x[80:], y[80:]) > 0.85


def test_a_column_vector_of_targets_is_taken_with_a_warning(table):
    x, _ = table
    with pytest.warns(DataConversionWarning):
        DVFLRegressor(**QUICK).fit(x, x[:, :1])


def test_targets_of_any_size_keep_their_differences(table):
    x, _ = table
    y = x[:, 1] + 3 * x[:, 4]
    plain, far = (DVFLRegressor(guests=2, **QUICK).fit(x, target) for target in (y, 1e9 + y))
    assert_allclose(far.predict(x) - 1e9, plain.predict(x), atol=1e-4)


def test_the_best_number_of_hosts_is_found_by_grid_search(table):
    x, y = table
    search = GridSearchCV(DVFLClassifier(guests=2, **QUICK), {"hosts": [0, 1, 2]}, cv=2).fit(x, y)
    assert search.best_params_["hosts"] in (0, 1, 2) and np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_it_stands_in_a_pipeline(table):
    x, y = table
    pipeline = make_pipeline(StandardScaler(), DVFLClassifier(guests=2)).fit(x[:80], y[:80])
    assert pipeline.score(x[80:], y[80:]) > 0.85


def test_its_encoding_comes_as_a_data_frame_where_asked_for(people):
    frame, y = people
    model = DVFLClassifier(guests=2, **QUICK).set_output(transform="pandas").fit(frame, y)
    encoded = model.transform(frame)
    assert list(encoded.columns) == list(model.get_feature_names_out()) and encoded.index.equals(frame.index)
    assert len(model.predict(frame)) == len(frame)


def test_its_encoding_feeds_another_model(table):
    x, y = table
    pipeline = make_pipeline(DVFLClassifier(guests=2, **QUICK), StandardScaler()).fit(x, y)
    assert pipeline.transform(x).shape[0] == 120


def test_it_is_cross_validated():
    scores = cross_val_score(DVFLClassifier(guests=2), *load_wine(return_X_y=True), cv=3)
    assert scores.mean() > 0.9


def test_the_same_random_state_gives_the_same_model(table):
    x, y = table
    first, second, other = (DVFLClassifier(random_state=seed, **QUICK).fit(x, y).predict_proba(x) for seed in (7, 7, 8))
    assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_no_random_state_gives_another_model_each_time(table):
    x, y = table
    first, second = (DVFLClassifier(random_state=None, **QUICK).fit(x, y).predict_proba(x) for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_random_state_object_is_drawn_from(table):
    x, y = table
    state = np.random.RandomState(3)
    first, second = (DVFLClassifier(random_state=state, **QUICK).fit(x, y) for _ in range(2))
    assert first.seed_ != second.seed_
    again = DVFLClassifier(random_state=np.random.RandomState(3), **QUICK).fit(x, y)
    assert_array_equal(again.predict_proba(x), first.predict_proba(x))


@pytest.mark.parametrize("random_state", [0, None])
def test_training_leaves_global_random_states_and_threads_alone(table, random_state):
    x, y = table
    network = nn.Linear(6, 4)
    numpy_before, torch_before = np.random.get_state()[1].copy(), torch.get_rng_state()
    threads = torch.get_num_threads()
    model = DVFLClassifier(random_state=random_state, encoders=[network], **QUICK).fit(x, y)
    model.predict(x)
    assert_array_equal(np.random.get_state()[1], numpy_before)
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert torch.get_num_threads() == threads


def test_losses_of_every_party_are_kept(table):
    x, y = table
    history = DVFLClassifier(guests=3, hosts=2, early_stopping=True, **QUICK).fit(x, y).history_
    assert history["guests"].shape == (3, 3) and history["hosts"].shape == (3, 2)
    assert history["owner"].ndim == 1 and len(history["held_out"]) == len(history["owner"]) <= 20
    assert history["guests"][-1].mean() < history["guests"][0].mean()


def test_progress_is_printed_when_asked_for(table, capsys):
    DVFLClassifier(verbose=True, **QUICK).fit(*table)
    assert "DVFLClassifier: owner, epoch 23 of 23" in capsys.readouterr().out
    DVFLClassifier(**QUICK).fit(*table)
    assert capsys.readouterr().out == ""


def test_importing_the_package_alone_does_not_import_torch():
    code = "import sys, dvfl; assert 'torch' not in sys.modules; dvfl.DVFLClassifier; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
