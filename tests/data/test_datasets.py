import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from dvfl.data import DATASETS, load
from dvfl.data.split.vertical import Split
from dvfl.errors import UserError

NATURAL = {"credit_card": 4, "parkinsons": 4, "caltech7": 6, "handwritten": 6}
EMBEDDED = ("digits", "breast_cancer", "wine", "diabetes")
DRAWN = ("credit_card", "caltech7", "handwritten", *EMBEDDED)


def test_digits_are_four_strips_of_two_rows_in_the_unit_interval():
    data = load("digits")
    assert [guest.image for guest in data.guests] == [(2, 8, top, 8) for top in (0, 2, 4, 6)]
    assert all(guest.unit and guest.columns == 16 for guest in data.guests)
    everything = np.concatenate([guest.train for guest in data.guests])
    assert everything.min() == 0 and everything.max() == 1 and everything.dtype == np.float32


def test_strips_side_by_side_are_the_images_again():
    bunch = load_digits()
    _, test = train_test_split(np.arange(1797), test_size=0.2, random_state=0, stratify=bunch.target)
    data = load("digits", guests=3)
    together = np.concatenate([guest.test for guest in data.guests], axis=1)
    assert np.array_equal(together * 16, bunch.data[test])
    assert np.array_equal(data.y_test, bunch.target[test])


def test_strips_may_be_unequal():
    assert [guest.image for guest in load("digits", guests=3).guests] == [(3, 8, 0, 8), (3, 8, 3, 8), (2, 8, 6, 8)]


@pytest.mark.parametrize(("name", "most"), [("digits", 8), ("wine", 13), ("diabetes", 10)])
def test_as_many_guests_as_rows_or_columns_are_possible_and_no_more(name, most):
    assert len(load(name, guests=most).guests) == most
    for refused in (most + 1, 0, -1):
        with pytest.raises(UserError, match=f"{refused} guests .* from 1 to {most} guests"):
            load(name, guests=refused)


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_sets_need_no_files_and_load_the_same_twice(name):
    first, second = load(name), load(name)
    assert first.sizes == "table"
    assert np.array_equal(first.y_test, second.y_test)
    for a, b in zip(first.guests, second.guests, strict=True):
        assert np.array_equal(a.train, b.train) and np.array_equal(a.test, b.test)


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_every_set_is_finite_float32_with_a_row_for_each_label(name, request):
    folder = request.getfixturevalue("real_fashion" if name == "fashion_mnist" else "real_data")
    data = load(name, data_dir=folder)
    assert data.name == name
    for guest in data.guests:
        assert guest.train.dtype == guest.test.dtype == np.float32
        assert len(guest.train) == len(data.y_train) and len(guest.test) == len(data.y_test)
        assert np.isfinite(guest.train).all() and np.isfinite(guest.test).all()
    assert len({guest.name for guest in data.guests}) == len(data.guests)
    if data.classes is not None:
        assert data.y_train.dtype == np.int64
        assert set(data.y_train) == set(data.y_test) == set(range(len(data.classes)))


@pytest.mark.parametrize("name", ["credit_card", "caltech7", "handwritten", "wine", "diabetes", "parkinsons"])
def test_training_columns_are_standardised_and_constant_ones_zero(name, real_data):
    for guest in load(name, data_dir=real_data).guests:
        train = guest.train.astype(np.float64)
        assert np.abs(train.mean(axis=0)).max() < 1e-5
        deviation = train.std(axis=0)
        constant = (train == 0).all(axis=0)
        assert np.abs(deviation[~constant] - 1).max() < 1e-4


@pytest.mark.parametrize("name", ["credit_card", "handwritten", "caltech7", "breast_cancer", "wine"])
def test_a_fifth_is_held_out_with_every_class_in_proportion(name, real_data):
    data = load(name, data_dir=real_data)
    rows = len(data.y_train) + len(data.y_test)
    assert abs(len(data.y_test) - rows / 5) <= 1
    shares = np.bincount(data.y_test) / np.bincount(np.concatenate([data.y_train, data.y_test]))
    assert np.abs(shares - 0.2).max() < 0.03


def test_mnist_keeps_the_official_split_and_the_papers_strips(real_data):
    data = load("mnist", data_dir=real_data)
    assert data.sizes == "mnist" and data.rows == 60000
    assert [guest.train.shape for guest in data.guests] == [(60000, 196)] * 4
    assert [guest.image for guest in data.guests] == [(7, 28, top, 28) for top in (0, 7, 14, 21)]
    assert data.y_train[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert np.bincount(data.y_test).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.mean([guest.train.mean(dtype=np.float64) for guest in data.guests]) == pytest.approx(0.13066, abs=1e-5)


def test_credit_card_is_shared_in_its_natural_blocks(real_data):
    data = load("credit_card", data_dir=real_data)
    assert [guest.columns for guest in data.guests] == [5, 6, 6, 6]
    assert data.sizes == "credit_card"


def test_parkinsons_groups_hold_all_columns(real_data):
    data = load("parkinsons", data_dir=real_data)
    assert [guest.columns for guest in data.guests] == [55, 84, 182, 432]
    assert data.sizes == "parkinsons" and data.split == Split("subject", 0)


@pytest.fixture
def voices(real_data):
    """Whose recordings are on either side of a split of Parkinson's."""
    with np.load(real_data / "parkinsons.npz") as arrays:
        x, subject = arrays["X"][:, 55:139].astype(np.float64), arrays["subject_id"]
    same = ((x - x.mean(axis=0)) / x.std(axis=0))[:, ::8]

    def sides(**asked):
        data = load("parkinsons", data_dir=real_data, **asked)
        mfcc = data.guests[1]
        seen = np.concatenate([mfcc.train, mfcc.test]).astype(np.float64)

        # The loader gives no row numbers, so rows are found again by their values, up to shift and scale.
        def owners(part):
            scaled = ((part - seen.mean(axis=0)) / seen.std(axis=0))[:, ::8]
            distance = np.stack([np.abs(same - row).max(axis=1) for row in scaled])  # (part's rows, all rows)
            assert distance.min(axis=1).max() < 1e-3
            return {int(subject[i]) for i in distance.argmin(axis=1)}

        return data, owners(mfcc.train), owners(mfcc.test)

    return sides


@pytest.mark.parametrize("seed", range(30))
def test_parkinsons_tests_on_subjects_it_never_trained_on_whatever_the_seed(seed, voices):
    data, train, test = voices(split_seed=seed)
    assert not train & test
    assert len(train | test) == 252
    assert len(data.y_test) == 3 * len(test) == 153
    assert data.split == Split("subject", seed) and "on the same side" in data.note


def test_parkinsons_may_be_split_at_random_and_then_says_what_that_means(voices):
    data, train, test = voices(split="random")
    assert len(train & test) > 50
    assert len(data.y_test) == 152
    assert data.split == Split("random", 0) and "on both sides" in data.note


@pytest.mark.parametrize("name", [*DRAWN, "parkinsons"])
def test_every_seed_draws_another_split_and_0_the_usual_one(name, real_data):
    usual = load(name, data_dir=real_data)
    draws = [load(name, data_dir=real_data, split_seed=seed) for seed in range(30 if name in EMBEDDED else 3)]
    assert np.array_equal(usual.guests[0].test, draws[0].guests[0].test)
    assert len({data.guests[0].test.tobytes() for data in draws}) == len(draws)
    for seed, data in enumerate(draws):
        assert (len(data.y_train), len(data.y_test)) == (len(usual.y_train), len(usual.y_test))
        assert data.split is not None and data.split.seed == seed


@pytest.mark.parametrize(
    ("name", "split", "right"),
    [
        ("mnist", "random", "official"),
        ("fashion_mnist", "subject", "official"),
        ("parkinsons", "official", "subject or random"),
        *((name, "subject", "random") for name in DRAWN),
        *((name, "official", "random") for name in DRAWN),
    ],
)
def test_a_split_that_makes_no_sense_is_refused_with_those_that_do(name, split, right):
    with pytest.raises(UserError, match=f"^{name} cannot be split '{split}': {right} is right$"):
        load(name, split=split)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_an_official_split_is_not_drawn_again(name):
    with pytest.raises(UserError, match=f"{name} has one official split"):
        load(name, split_seed=1)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_split_seed_out_of_range_is_refused(seed):
    with pytest.raises(UserError, match=f"split seed {seed}: from 0 to 4294967295 is right"):
        load("wine", split_seed=seed)


def test_a_split_is_told_in_words():
    assert [str(Split("official")), str(Split("subject", 3)), str(Split("random"))] == [
        "official",
        "by subject, split seed 3",
        "random, split seed 0",
    ]


def test_caltech7_says_that_its_features_were_re_extracted(real_data):
    data = load("caltech7", data_dir=real_data)
    assert [guest.name for guest in data.guests] == ["gabor", "wm", "centrist", "hog", "gist", "lbp"]
    assert [guest.columns for guest in data.guests] == [48, 40, 254, 1984, 512, 928]
    assert "re-extracted" in data.note and data.sizes == "caltech7"
    assert data.classes is not None and data.classes[0] == "Faces"


def test_handwritten_has_six_views(real_data):
    data = load("handwritten", data_dir=real_data)
    assert {guest.name: guest.columns for guest in data.guests} == {
        "pix": 240, "fou": 76, "fac": 216, "zer": 47, "kar": 64, "mor": 6,
    }  # fmt: skip
    assert data.sizes == "handwritten"


@pytest.mark.parametrize(("name", "natural"), NATURAL.items())
def test_natural_views_cannot_be_shared_otherwise(name, natural, real_data):
    assert len(load(name, data_dir=real_data, guests=natural).guests) == natural
    with pytest.raises(UserError, match=f"{name} has {natural} natural guests"):
        load(name, guests=natural + 1)


def test_diabetes_is_a_regression_in_the_targets_own_unit():
    data = load("diabetes")
    assert data.classes is None and data.y_train.dtype == np.float32
    assert data.y_train.min() > 20 and data.y_train.max() > 300


def test_column_blocks_are_contiguous_and_complete():
    data = load("wine", guests=4)
    assert [guest.columns for guest in data.guests] == [4, 3, 3, 3]
    train, _ = train_test_split(np.arange(178), test_size=0.2, random_state=0, stratify=load_wine().target)
    x = load_wine().data
    z = (x - x[train].mean(axis=0)) / x[train].std(axis=0)
    assert np.allclose(np.concatenate([g.train for g in data.guests], axis=1), z[train], atol=1e-5)


def test_labels_belong_to_their_rows(real_data):
    data = load("handwritten", data_dir=real_data)
    train, test = (np.concatenate([getattr(g, part) for g in data.guests], axis=1) for part in ("train", "test"))
    assert LogisticRegression(C=0.1, max_iter=300).fit(train, data.y_train).score(test, data.y_test) > 0.95


def test_an_unknown_name_gets_the_nearest_one():
    with pytest.raises(UserError, match="no data set is called 'minst'; did you mean 'mnist'"):
        load("minst")


def test_a_hyphen_is_as_good_as_an_underscore():
    assert load("breast-cancer").name == "breast_cancer"


def test_every_loader_says_where_its_data_come_from():
    for dataset in DATASETS.values():
        assert dataset.read.__doc__ is not None and "Licence" in dataset.read.__doc__
