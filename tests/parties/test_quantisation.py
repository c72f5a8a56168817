"""Numbers to field elements and back."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from dvfl.strategies.fedvs.prime_field import Field
from dvfl.strategies.fedvs.quantisation import dequantise, quantise

numbers = st.lists(st.floats(-1000, 1000, width=32), min_size=1)


@given(numbers, st.integers(0, 20), st.sampled_from([31, 61]))
def test_a_number_comes_back_within_half_a_place(given: list[float], places: int, exponent: int) -> None:
    field, x = Field(exponent), torch.tensor(given)
    elements = quantise(x, 2.0**places, field)
    assert elements.min() >= 0 and elements.max() < field.prime
    assert (dequantise(elements, 2.0**places, field) - x.double()).abs().max() <= 0.5 * 2.0**-places


@given(numbers, numbers)
def test_products_and_sums_of_elements_are_those_of_the_rounded_numbers(one: list[float], other: list[float]) -> None:
    field, scale = Field(61), 2.0**8
    a, b = (torch.tensor([*given, *[0.0] * 8])[:8] for given in (one, other))
    elements = field.matmul(quantise(a, scale, field).view(1, 1, -1), quantise(b, scale, field).view(1, -1, 1))
    exact = ((a.double() * scale).round() * (b.double() * scale).round()).sum() / scale**2
    assert dequantise(elements, scale**2, field).item() == exact


def test_each_value_may_have_a_scale_of_its_own() -> None:
    elements = quantise(torch.tensor([1.5, -1.5]), torch.tensor([2.0, 1024.0]), Field(31))
    assert elements.tolist() == [3, 2**31 - 1 - 1536]
