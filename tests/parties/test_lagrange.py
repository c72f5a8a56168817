"""Shares that tell nothing, and results that tell everything."""

from itertools import combinations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.strategies.fedvs.lagrange import Code, TooFewResults
from dvfl.strategies.fedvs.prime_field import Field


@st.composite
def codes(draw: st.DrawFn) -> Code:
    field = Field(draw(st.sampled_from([7, 31, 61])))
    return Code(field, draw(st.integers(1, 9)), draw(st.integers(1, 4)), draw(st.integers(0, 3)))


def drawn(code: Code, count: int, size: int, seed: int) -> torch.Tensor:
    return code.field.uniform(torch.arange(count) + 1000 * seed, size)


def solved(matrix: list[list[int]], right: list[int], prime: int) -> list[int] | None:
    """The only solution of linear equations modulo a prime; None where there is not exactly one."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(len(rows)):
        pivot = next((number for number in range(column, len(rows)) if rows[number][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        inverse = pow(rows[column][column], -1, prime)
        rows[column] = [value * inverse % prime for value in rows[column]]
        for number in range(len(rows)):
            if number != column:
                factor = rows[number][column]
                pairs = zip(rows[number], rows[column], strict=True)
                rows[number] = [(value - factor * other) % prime for value, other in pairs]
    return [row[-1] for row in rows]


# What T clients can tell.


@pytest.mark.parametrize("masks", [1, 2])
@pytest.mark.parametrize("secrets", [1, 2])
def test_the_shares_of_as_many_clients_as_masks_take_all_values_equally_often_whatever_the_secrets(
    secrets: int, masks: int
) -> None:
    """In a field of 7 elements, every secret, every mask and every set of colluders can be tried."""
    code = Code(Field(3), 2, secrets, masks)
    every_mask = torch.tensor(list(product(range(7), repeat=masks))).T  # (masks, 7^masks)
    for secret in product(range(7), repeat=secrets):
        shares = code.encode(torch.tensor(secret)[:, None].expand(-1, 7**masks), every_mask)
        for colluders in combinations(range(2), masks):
            seen = {tuple(column) for column in shares[list(colluders)].T.tolist()}
            assert len(seen) == 7**masks


@settings(deadline=None)
@given(codes(), st.integers(0, 99), st.data())
def test_any_shares_of_colluders_go_with_any_secrets_for_exactly_one_choice_of_masks(
    code: Code, seed: int, data: st.DataObject
) -> None:
    if not 1 <= code.masks <= code.clients:
        return
    colluders = data.draw(st.permutations(range(code.clients)))[: code.masks]
    secrets, seen = drawn(code, code.secrets, 1, seed), drawn(code, code.masks, 1, seed + 1)
    known = code.encode(secrets, torch.zeros_like(seen))[colluders, 0].tolist()
    of_masks = code.encoding[colluders, code.secrets :].tolist()
    wanted = [(value - base) % code.field.prime for value, base in zip(seen[:, 0].tolist(), known, strict=True)]
    masks = solved(of_masks, wanted, code.field.prime)
    assert masks is not None
    assert torch.equal(code.encode(secrets, torch.tensor(masks)[:, None])[colluders], seen)


@pytest.mark.parametrize("secret", [0, 1, 2**61 - 2])
def test_shares_made_with_drawn_masks_are_spread_evenly(secret: int) -> None:
    code = Code(Field(61), 6, 2, 2)
    count = 100_000
    shares = code.encode(torch.full((2, count), secret), drawn(code, 2, count, 3))
    cells = (shares.double() * 8 / code.field.prime).long().clamp_(max=7)
    for one, other in combinations(range(6), 2):
        counts = np.bincount(cells[one] * 8 + cells[other], minlength=64)
        chi_square = ((counts - count / 64) ** 2 / (count / 64)).sum()
        assert chi_square < 63 + 5 * np.sqrt(2 * 63)


def test_one_client_more_than_masks_can_tell_something() -> None:
    """The bound is tight: the other tests would see a code that hides too little."""
    code = Code(Field(3), 2, 1, 1)
    zero, one = (
        {tuple(code.encode(torch.tensor([[secret]]), torch.tensor([[mask]]))[:, 0].tolist()) for mask in range(7)}
        for secret in (0, 1)
    )
    assert zero.isdisjoint(one)


# What enough results tell.


def powers(code: Code, shares: torch.Tensor, degree: int) -> torch.Tensor:
    result = shares
    for _ in range(degree - 1):
        result = code.field.multiply(result, shares)
    return result


@settings(deadline=None)
@given(codes(), st.integers(1, 4), st.integers(0, 99), st.data())
def test_any_sufficient_results_give_every_secrets_result(
    code: Code, degree: int, seed: int, data: st.DataObject
) -> None:
    needed = code.threshold(degree)
    secrets, masks = drawn(code, code.secrets, 3, seed), drawn(code, code.masks, 3, seed + 1)
    results = powers(code, code.encode(secrets, masks), degree)
    heard = data.draw(st.sets(st.integers(0, code.clients - 1)))
    if len(heard) < needed:
        with pytest.raises(TooFewResults, match=f"{len(heard)} of {code.clients} results arrived; {needed} are needed"):
            code.decoding(sorted(heard), degree)
        return
    decoding = code.decoding(sorted(heard), degree)
    missing = [client for client in range(code.clients) if client not in heard]
    assert not decoding[:, missing].any()
    results[missing] = 0
    assert torch.equal(code.field.matmul(decoding[None], results[None])[0], powers(code, secrets, degree))


def test_one_secret_in_all_places_is_coded_like_many_equal_ones() -> None:
    code = Code(Field(61), 5, 3, 2)
    secret, masks = drawn(code, 1, 40, 0)[0].view(4, 10), drawn(code, 2, 40, 1).view(2, 4, 10)
    by_many = code.encode(secret.expand(3, -1, -1), masks)
    assert torch.equal(code.encode_same(secret, masks), by_many)
    assert torch.equal(code.encode_same(secret, masks, axis=1), by_many.transpose(0, 1))


def test_a_field_with_too_few_points_is_refused() -> None:
    with pytest.raises(ValueError, match="a field of 7 has too few points"):
        Code(Field(3), 5, 1, 1)
