"""What leaves a guest: bounded, noisy, and the same row always with the same noise."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dvfl.errors import UserError
from dvfl.release.release import Origin, Unnumbered, check_release, drawn_by_row, drawn_once, released

CPU = torch.device("cpu")


def encodings(seed: int = 0) -> Tensor:
    return torch.randn(2, 30, 5, generator=torch.Generator().manual_seed(seed)) * torch.linspace(0.1, 4, 30)[:, None]


@given(st.integers(0, 1000), st.floats(0.01, 20))
def test_without_noise_no_row_is_longer_than_the_bound_and_all_keep_their_direction(seed: int, clip: float) -> None:
    z = encodings(seed)
    sent = released(z, clip, 0.0, torch.randn_like(z))
    assert (sent.norm(dim=-1) <= clip * (1 + 1e-5)).all()
    assert torch.cosine_similarity(sent, z, dim=-1).min() > 1 - 1e-5


def test_rows_within_the_bound_stay_what_they_are() -> None:
    z = encodings()
    short = z.norm(dim=-1) <= 2
    sent = released(z, 2.0, 0.0, torch.randn_like(z))
    assert 0 < short.sum() < short.numel()
    assert torch.equal(sent[short], z[short])
    torch.testing.assert_close(sent[~short].norm(dim=-1), torch.full(((~short).sum(),), 2.0))


def test_a_row_of_zeros_stays_one() -> None:
    assert torch.equal(released(torch.zeros(1, 3), 1.0, 0.0, torch.zeros(1, 3)), torch.zeros(1, 3))


def test_noise_is_in_units_of_the_bound() -> None:
    z, drawn = encodings(), torch.randn(2, 30, 5)
    noise = released(z, 0.5, 3.0, drawn) - released(z, 0.5, 0.0, drawn)
    torch.testing.assert_close(noise, 1.5 * drawn)


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=40), st.integers(1, 9))
def test_a_row_has_the_same_noise_whatever_is_drawn_beside_it(rows: list[int], width: int) -> None:
    together = drawn_by_row(np.array(rows), width, CPU, 3, 1, "train")
    for row, noise in zip(rows, together, strict=True):
        assert torch.equal(drawn_by_row(np.array([row]), width, CPU, 3, 1, "train")[0], noise)


def test_rows_seeds_guests_and_tables_have_noise_of_their_own() -> None:
    rows = np.arange(3000)
    first = drawn_by_row(rows, 4, CPU, 3, 1, "train")
    others = [
        drawn_by_row(rows + 1, 4, CPU, 3, 1, "train"),
        drawn_by_row(rows + 1024, 4, CPU, 3, 1, "train"),
        drawn_by_row(rows, 4, CPU, 4, 1, "train"),
        drawn_by_row(rows, 4, CPU, 3, 2, "train"),
        drawn_by_row(rows, 4, CPU, 3, 1, "test"),
        drawn_once((3000, 4), CPU, 3, 1, "pushed", 0),
    ]
    for other in others:
        assert abs(float((first * other).mean())) < 5 / math.sqrt(first.numel())


def test_noise_is_standard_normal() -> None:
    drawn = drawn_by_row(np.arange(20_000), 5, CPU, 0, 0, "train")
    assert abs(float(drawn.mean())) < 0.02
    assert abs(float(drawn.std()) - 1) < 0.02
    assert abs(float(drawn.pow(4).mean()) - 3) < 0.1


def test_rows_of_an_origin_are_counted_from_its_first_unless_they_are_given() -> None:
    assert Origin("train").numbers(3, 2).tolist() == [3, 4]
    assert Origin("train", np.array([7, 1, 5])).numbers(1, 2).tolist() == [1, 5]


def test_rows_without_a_number_have_the_noise_of_their_values_whatever_is_drawn_beside_them() -> None:
    table = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [0.0, 5.0]], np.float32)
    other = np.array([[6.0], [6.0], [6.0], [-0.0]], np.float32)
    drawn = Unnumbered.of([table, other]).drawn(0, 4, 3, CPU, 7, 0)
    assert torch.equal(drawn[0], drawn[2]) and not torch.equal(drawn[0], drawn[1])
    last = Unnumbered.of([table[3:], np.zeros((1, 1), np.float32)])
    assert torch.equal(last.drawn(0, 1, 3, CPU, 7, 0)[0], drawn[3])
    assert torch.equal(Unnumbered.of([table, other]).drawn(2, 2, 3, CPU, 7, 0), drawn[2:])
    for seed, guest in ((8, 0), (7, 1)):
        assert not torch.equal(last.drawn(0, 1, 3, CPU, seed, guest)[0], drawn[3])


def test_noise_of_values_is_standard_normal() -> None:
    drawn = Unnumbered.of([np.arange(20_000, dtype=np.float32)[:, None]]).drawn(0, 20_000, 5, CPU, 0, 0)
    assert abs(float(drawn.mean())) < 0.02 and abs(float(drawn.std()) - 1) < 0.02


@pytest.mark.parametrize(
    ("clip", "noise", "wrong"),
    [
        (0.0, 0.0, "clip 0.0"),
        (-1.0, 0.0, "clip -1.0"),
        (math.inf, 0.0, "clip inf"),
        (math.nan, 0.0, "clip nan"),
        (1.0, -0.1, "noise -0.1"),
        (1.0, math.inf, "noise inf"),
        (1.0, math.nan, "noise nan"),
        (None, 0.5, "without clip"),
    ],
)
def test_what_means_nothing_is_refused(clip: float | None, noise: float, wrong: str) -> None:
    with pytest.raises(UserError, match=wrong):
        check_release(clip, noise)


def test_a_bound_alone_and_neither_are_right() -> None:
    check_release(None, 0.0)
    check_release(2.0, 0.0)
