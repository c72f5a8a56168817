"""The estimators, as someone meets them who knows scikit-learn and nothing of federations."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from dvfl import DVFLClassifier, DVFLRegressor

QUICK = {"guest_epochs": 3, "host_epochs": 3, "owner_epochs": 20}


@parametrize_with_checks([DVFLClassifier(), DVFLRegressor()])  # every check applies; none is expected to fail
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    """Six columns, of which the second and the fifth tell the class."""
    x = np.random.default_rng(0).normal(size=(120, 6))
    return x, np.where(x[:, 1] + x[:, 4] > 0, "yes", "no")


@pytest.fixture
def people() -> tuple[pd.DataFrame, np.ndarray]:
    """What real tables have: text, categories, missing values, a constant, truth values, times."""
    random = np.random.default_rng(0)
    rows = 160
    frame = pd.DataFrame(
        {
            "age": np.where(random.random(rows) < 0.2, np.nan, random.normal(40, 10, rows)),
            "town": random.choice(["Bonn", "Kiel", "Ulm"], rows),
            "plan": pd.Categorical(random.choice(["a", "b"], rows)),
            "member": random.random(rows) < 0.5,
            "country": "DE",
            "visits": pd.array(random.integers(0, 9, rows), dtype="Int64"),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, rows), unit="D"),
        }
    )
    frame.loc[::7, "town"] = None
    frame.loc[::9, "visits"] = pd.NA
    return frame, ((frame["plan"] == "a") & frame["member"]).to_numpy()


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


def test_a_list_of_tables_has_one_guest_each(table):
    x, y = table
    model = DVFLClassifier(**QUICK).fit([x[:, :2], x[:, 2:]], y)
    assert model.guests_ == [[0, 1], [2, 3, 4, 5]] and model.n_features_in_ == 6
    assert model.predict([x[:, :2], x[:, 2:]]).shape == (120,)
    # The same columns in one table are the same guests.
    assert_array_equal(model.predict_proba(x), model.predict_proba([x[:, :2], x[:, 2:]]))


def test_a_list_of_tables_trains_as_the_same_columns_of_one_table_do(table):
    x, y = table
    whole = DVFLClassifier(guests=[[0, 1], [2, 3, 4, 5]], **QUICK).fit(x, y)
    parts = DVFLClassifier(**QUICK).fit((x[:, :2], pd.DataFrame(x[:, 2:])), y)
    assert_array_equal(whole.predict_proba(x), parts.predict_proba(x))


def test_tables_with_names_are_read_by_name(people):
    frame, y = people
    left, right = frame[["age", "town"]], frame[["plan", "member"]]
    model = DVFLClassifier(**QUICK).fit([left, right], y)
    assert_array_equal(model.predict([left, right]), model.predict([left, right[["member", "plan"]]]))
    with pytest.raises(ValueError, match=r"guest 2: .*lacks the column 'plan'"):
        model.predict([left, right.rename(columns={"plan": "tariff"})])


@pytest.mark.parametrize(
    ("guests", "held"),
    [
        (None, [[0, 1, 2, 3, 4, 5]]),
        (1, [[0, 1, 2, 3, 4, 5]]),
        (4, [[0, 1], [2, 3], [4], [5]]),
        ([[5, 0], [1, 2], [4, 3]], [[5, 0], [1, 2], [4, 3]]),
        ([np.array([0, 1, 2, 3]), (4, 5)], [[0, 1, 2, 3], [4, 5]]),
    ],
)
def test_columns_are_handed_out_as_asked(table, guests, held):
    model = DVFLClassifier(guests=guests, **QUICK).fit(*table)
    assert model.guests_ == held


def test_columns_are_handed_out_by_name(people):
    frame, y = people
    guests = [["plan", "age"], ["town", "country", "visits"], ["since", "member"]]
    model = DVFLClassifier(guests=guests, **QUICK).fit(frame, y)
    assert model.guests_ == [[2, 0], [1, 4, 5], [6, 3]]
    assert list(model.feature_names_in_) == list(frame.columns)


@pytest.mark.parametrize(
    ("guests", "message"),
    [
        (7, "7 guests cannot share 6 columns: from 1 to 6"),
        (0, "0 guests cannot share 6 columns: from 1 to 6"),
        ([[0, 1, 2], [3, 4]], "nobody holds '5'"),
        ([[0, 1, 2], [2, 3, 4, 5]], "more than one guest holds '2'"),
        ([[0, 1, 2], [3, 4, 5], []], "every guest needs a column"),
        ([[0, 1, 2], [3, 4, 9]], "there is no column 9; X has columns 0 to 5"),
        ([[0, 1, 2], ["height"]], "'height' is a name, and X has none"),
        ("all", "guests='all': a number of guests"),
        ([0, 1], "one list of columns a guest"),
    ],
)
def test_impossible_guests_are_refused(table, guests, message):
    with pytest.raises(ValueError, match=message):
        DVFLClassifier(guests=guests).fit(*table)


def test_an_unknown_column_name_is_refused(people):
    frame, y = people
    with pytest.raises(ValueError, match="there is no column 'height'; X has 'age', 'town'"):
        DVFLClassifier(guests=[["age", "height"]]).fit(frame, y)


def test_guests_and_a_list_of_tables_must_agree(table):
    x, y = table
    with pytest.raises(ValueError, match="guests=3 with 2 tables; guests=None is right"):
        DVFLClassifier(guests=3).fit([x[:, :2], x[:, 2:]], y)


def test_text_categories_missing_values_and_constants_are_learned_from(people):
    frame, y = people
    model = DVFLClassifier(guests=2).fit(frame[:120], y[:120])
    assert model.score(frame[120:], y[120:]) > 0.9


def test_an_array_of_text_and_numbers_is_read_column_by_column(people):
    frame, y = people
    mixed = frame[["town", "plan", "member", "age"]].to_numpy(dtype=object)
    model = DVFLClassifier(**QUICK).fit(mixed, y)
    assert [column.kind for column in model.columns_[0].columns] == ["category", "category", "boolean", "number"]


def test_missing_numbers_are_allowed(table):
    x, y = table
    x[::5, 1] = np.nan
    model = DVFLClassifier(guests=2, **QUICK).fit(x, y)
    x[:, 0] = np.nan  # and where there were none in training
    assert np.isfinite(model.predict_proba(x)).all()


@pytest.mark.parametrize("as_frame", [False, True])
def test_infinite_numbers_are_refused_in_training_and_prediction(table, as_frame):
    x, y = table
    model = DVFLClassifier(**QUICK).fit(x, y)
    x[3, 1] = np.inf
    given = pd.DataFrame(x) if as_frame else x
    for call in (lambda: DVFLClassifier().fit(given, y), lambda: model.predict(given)):
        with pytest.raises(ValueError, match="infini"):
            call()


def test_sparse_tables_are_refused(table):
    x, y = table
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        DVFLClassifier().fit(sparse.csr_array(x), y)


def test_a_guest_without_a_telling_column_is_named(table):
    x, y = table
    x[:, 2:4] = 1
    with pytest.raises(ValueError, match="guest 2: no column tells rows apart"):
        DVFLClassifier(guests=3).fit(x, y)


def test_tables_of_different_lengths_are_refused(table):
    x, y = table
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        DVFLClassifier().fit([x[:, :2], x[:100, 2:]], y)


def test_labels_of_another_length_are_refused(table):
    x, y = table
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        DVFLClassifier().fit([x[:, :2], x[:, 2:]], y[:100])


def test_another_number_of_columns_or_tables_is_refused_in_prediction(table):
    x, y = table
    model = DVFLClassifier(**QUICK).fit([x[:, :2], x[:, 2:]], y)
    with pytest.raises(ValueError, match="X has 5 features, but DVFLClassifier is expecting 6"):
        model.predict(x[:, :5])
    with pytest.raises(ValueError, match="table 2 has 3 columns; 4 are right"):
        model.predict([x[:, :2], x[:, 3:]])
    with pytest.raises(ValueError, match="3 tables for 2 guests"):
        model.predict([x[:, :2], x[:, 2:4], x[:, 4:]])


def test_one_class_is_refused(table):
    x, _ = table
    with pytest.raises(ValueError, match="one class only, 'yes'"):
        DVFLClassifier().fit(x, ["yes"] * len(x))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hosts": -1}, "hosts -1: 0 or more"),
        ({"hosts": 2.5}, "hosts=2.5: a whole number"),
        ({"batch": 500}, "batch 500 is larger than the 120 training rows"),
        ({"batch": 0}, "batch 0: at least 1"),
        ({"preset": "tunde"}, "did you mean 'tuned'"),
        ({"host_dropout": 1.0}, "from 0 to below 1"),
        ({"period": 5, "guest_epochs": 3}, "nothing would ever be pushed"),
        ({"encoders": [None, None]}, "2 encoders for 1 guests"),
        ({"device": "abacus"}, "device='abacus'"),
        ({"random_state": "dice"}, "cannot be used to seed"),
    ],
)
def test_wrong_parameters_are_refused_as_value_errors(table, wrong, message):
    with pytest.raises(ValueError, match=message):
        DVFLClassifier(**wrong).fit(*table)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["ja", "nein"]),
        np.array(["ja", "nein"], dtype=object),
        np.array([3, -1]),
        np.array([0.0, 2.0], np.float32),
        np.array([True, False]),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_every_type_come_back_as_they_were(table, labels, tmp_path):
    x, y = table
    model = DVFLClassifier(**QUICK).fit(x, labels[(y == "yes").astype(int)])
    assert model.predict(x).dtype == labels.dtype and set(model.predict(x)) <= set(labels)
    model.save(tmp_path)
    loaded = DVFLClassifier.load(tmp_path)
    assert loaded.classes_.dtype == labels.dtype
    assert_array_equal(loaded.predict(x), model.predict(x))


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "string", "category"])
def test_labels_of_pandas_own_types_keep_their_meaning(table, dtype):
    x, y = table
    labels = pd.Series(y if dtype in ("string", "category") else (y == "yes").astype(int), dtype=dtype)
    predicted = DVFLClassifier(**QUICK).fit(x, labels).predict(x)
    assert set(predicted) <= set(labels) and (dtype != "Int64" or predicted.dtype == np.int64)


@pytest.mark.parametrize("labels", [pd.Series(["a", None] * 60), pd.Series([1, None] * 60, dtype="Int64")])
def test_missing_labels_are_refused(table, labels):
    with pytest.raises(ValueError, match="every row needs a label"):
        DVFLClassifier().fit(table[0], labels)


def test_a_column_name_that_stands_twice_is_refused(table):
    x, y = table
    with pytest.raises(ValueError, match="'a' stands for more than one column"):
        DVFLClassifier().fit(pd.DataFrame(x, columns=list("abcdea")), y)


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


def test_importing_the_package_alone_does_not_import_torch():
    code = "import sys, dvfl; assert 'torch' not in sys.modules; dvfl.DVFLClassifier; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
