"""Arithmetic modulo a prime against Python's integers, which have no limits."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.strategies.fedvs.prime_field import Field

EXPONENTS = (2, 3, 5, 31, 61)
fields = st.sampled_from([Field(exponent) for exponent in EXPONENTS])


@st.composite
def elements(draw: st.DrawFn, count: int) -> tuple[Field, list[int]]:
    """Elements of a field, its largest ones among them more often than by chance."""
    field = draw(fields)
    near = st.integers(max(0, field.prime - 4), field.prime - 1)
    return field, draw(st.lists(near | st.integers(0, field.prime - 1), min_size=count, max_size=count))


@given(elements(16))
def test_sums_and_products_are_those_of_integers(drawn: tuple[Field, list[int]]) -> None:
    field, values = drawn
    a, b = values[:8], values[8:]
    pairs = list(zip(a, b, strict=True))
    assert field.add(torch.tensor(a), torch.tensor(b)).tolist() == [(x + y) % field.prime for x, y in pairs]
    assert field.multiply(torch.tensor(a), torch.tensor(b)).tolist() == [x * y % field.prime for x, y in pairs]


@settings(deadline=None)
@given(elements(60), st.integers(1, 3), st.integers(1, 3))
def test_matrix_products_are_those_of_integers(drawn: tuple[Field, list[int]], m: int, k: int) -> None:
    field, values = drawn
    a, b = torch.tensor(values[: 10 * m]).view(1, m, 10), torch.tensor(values[-10 * k :]).view(1, 10, k)
    by_hand = [
        [sum(x * y for x, y in zip(row, column, strict=True)) % field.prime for column in b[0].T.tolist()]
        for row in a[0].tolist()
    ]
    assert field.matmul(a, b)[0].tolist() == by_hand


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("length", [1, 2, 2000, 2049, 1 << 17])
def test_the_longest_sums_of_the_largest_elements_are_exact(exponent: int, length: int) -> None:
    field = Field(exponent)
    row = torch.full((1, 1, length), field.prime - 1)
    assert field.matmul(row, row.transpose(1, 2)).item() == length % field.prime  # (p - 1)^2 is 1


def test_every_element_of_a_stack_has_its_own_product() -> None:
    field = Field(61)
    a, b = (field.uniform(torch.arange(3) + start, 20).view(3, 4, 5) for start in (0, 9))
    whole = field.matmul(a, b.transpose(1, 2))
    for number in range(3):
        one = slice(number, number + 1)
        assert torch.equal(whole[one], field.matmul(a[one], b[one].transpose(1, 2)))


@given(fields, st.data())
def test_small_integers_of_both_signs_come_back(field: Field, data: st.DataObject) -> None:
    half = field.prime // 2
    x = torch.tensor(data.draw(st.lists(st.integers(-half, half), min_size=1)))
    assert torch.equal(field.centred(field.wrapped(x)), x)


def test_random_elements_depend_on_their_key_and_place_alone() -> None:
    field, keys = Field(31), torch.tensor([[5, 6], [7, 8]])
    drawn = field.uniform(keys, 1000)
    assert drawn.shape == (2, 2, 1000)
    assert torch.equal(drawn[1, 0], field.uniform(torch.tensor(7), 2000)[:1000])
    assert len(drawn.unique()) > 3990


@pytest.mark.parametrize("exponent", [3, 31, 61])
def test_random_elements_are_spread_evenly(exponent: int) -> None:
    field = Field(exponent)
    drawn = field.uniform(torch.arange(64), 10_000).flatten()
    assert drawn.min() >= 0 and drawn.max() < field.prime
    bins = min(field.prime, 256)
    counts = (drawn.double() * bins / field.prime).floor().long().bincount(minlength=bins).double()
    expected = torch.full_like(counts, drawn.numel() / bins)
    if exponent == 3:
        expected = torch.tensor([2.0, 1, 1, 1, 1, 1, 1]) / 8 * drawn.numel()  # zero stands for p as well
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < bins + 5 * (2 * bins) ** 0.5


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("exponent", [31, 61])
def test_a_gpu_computes_what_the_cpu_does(exponent: int) -> None:
    field = Field(exponent)
    here = [field.uniform(torch.arange(6) + start, 64 * 300).view(6, 64, 300) for start in (0, 9)]
    there = [field.uniform(torch.arange(6, device="cuda") + start, 64 * 300).view(6, 64, 300) for start in (0, 9)]
    for ours, theirs in (
        (here, there),
        ([field.multiply(*here)], [field.multiply(*there)]),
        ([field.matmul(here[0], here[1].transpose(1, 2))], [field.matmul(there[0], there[1].transpose(1, 2))]),
    ):
        for one, other in zip(ours, theirs, strict=True):
            assert torch.equal(one, other.cpu())


def test_a_number_that_is_no_prime_is_refused() -> None:
    with pytest.raises(ValueError, match=r"2\^32 - 1 is not a prime"):
        Field(32)
