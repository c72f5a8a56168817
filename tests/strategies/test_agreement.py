"""Which codes so many guests can have, and numbers that never wrap."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.errors import UserError
from dvfl.settings.training import FedVSSettings
from dvfl.strategies.fedvs.code import LARGEST, Agreement, agree, coded
from dvfl.strategies.fedvs.quantisation import quantise

S = FedVSSettings()


@pytest.mark.parametrize(
    ("guests", "squares", "needed", "stragglers"),
    [(3, 0, 3, 0), (4, 0, 3, 1), (5, 0, 3, 2), (6, 1, 5, 1), (8, 1, 5, 3), (20, 1, 5, 15)],
)
def test_without_other_wishes_guests_have_squares_where_a_straggler_remains_possible(
    guests: int, squares: int, needed: int, stragglers: int
) -> None:
    made = agree(S, guests)
    assert (made.squares, made.needed, made.stragglers) == (squares, needed, stragglers)
    assert (made.segments, made.colluders) == (1, 1)


@pytest.mark.parametrize(
    ("guests", "wishes", "needed", "stragglers"),
    [
        (6, {"segments": 2, "squares": 0}, 5, 1),
        (6, {"colluders": 2}, 5, 1),
        (9, {"segments": 2, "squares": 1}, 9, 0),
        (10, {"segments": 2}, 9, 1),
        (5, {"stragglers": 0}, 5, 0),
        (6, {"stragglers": 2}, 3, 2),
        (11, {"squares": 2}, 11, 0),
        (8, {"stragglers": 1}, 5, 1),
    ],
)
def test_wishes_are_completed(guests: int, wishes: dict[str, Any], needed: int, stragglers: int) -> None:
    made = agree(replace(S, **wishes), guests)
    assert (made.needed, made.stragglers) == (needed, stragglers)


@pytest.mark.parametrize(
    ("guests", "wishes", "right"),
    [
        (4, {"squares": 1}, "segments 1, colluders 1, squares 0, stragglers 1 are right"),
        (4, {"stragglers": 2}, "segments 1, colluders 1, squares 0, stragglers 1 are right"),
        (5, {"segments": 2, "stragglers": 1}, "segments 2, colluders 1, squares 0, stragglers 0 are right"),
        (4, {"segments": 5}, "segments 1, colluders 1, squares 0, stragglers 1 are right"),
        (4, {"colluders": 3}, "segments 1, colluders 1, squares 0, stragglers 1 are right"),
        (6, {"squares": 1, "stragglers": 2}, "segments 1, colluders 1, squares 0, stragglers 2 are right"),
        (2, {}, "fedvs shares secrets among 3 guests or more; these are 2"),
    ],
)
def test_numbers_that_no_code_has_are_refused_with_some_that_one_has(
    guests: int, wishes: dict[str, Any], right: str
) -> None:
    with pytest.raises(UserError, match=right):
        agree(replace(S, **wishes), guests)


@given(
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(1, 4),
    st.none() | st.integers(0, 5),
    st.none() | st.integers(0, 2),
)
def test_what_is_agreed_on_can_be_decoded_and_hidden(
    guests: int, segments: int, colluders: int, stragglers: int | None, squares: int | None
) -> None:
    wishes = replace(S, segments=segments, colluders=colluders, stragglers=stragglers, squares=squares)
    try:
        made = agree(wishes, guests)
    except UserError:
        return
    assert 1 <= made.needed <= guests - made.stragglers
    assert (made.segments, made.colluders) == (segments, colluders) and colluders < guests
    assert stragglers in (None, made.stragglers) and squares in (None, made.squares)


@pytest.mark.parametrize(
    ("wishes", "right"),
    [
        ({"segments": 0}, "segments 0: at least 1 is right"),
        ({"colluders": 0}, "colluders 0: at least 1 is right"),
        ({"stragglers": -1}, "stragglers -1: 0 or more is right"),
        ({"squares": -1}, "squares -1: 0 or more is right"),
        ({"weight_bits": 0}, "weight_bits 0: at least 1 is right"),
        ({"retries": 1}, "retries 1 does not go with fedvs"),
        ({"guest_noise": 0.1}, "guest_noise 0.1 does not go with fedvs: columns are shared once"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(wishes: dict[str, Any], right: str) -> None:
    with pytest.raises(UserError, match=right):
        agree(replace(S, **wishes), 6)


# Columns.


def test_without_squares_in_the_code_columns_come_with_their_squares() -> None:
    x = torch.tensor([[0.0, 2.0], [-1.0, 30.0]])
    assert torch.equal(agree(S, 6).columns(x), x.clamp(max=LARGEST))
    lifted = agree(S, 4).columns(x)
    torch.testing.assert_close(lifted[:, :2], x.clamp(max=LARGEST))
    torch.testing.assert_close(lifted[:, 2:], ((x**2 - 1) / math.sqrt(2)).clamp(max=LARGEST))


# Fields.


def made(guests: int, columns: int, spread: float = 1.0, **wishes: Any) -> tuple[Agreement, list[torch.Tensor]]:
    agreement = agree(replace(S, **wishes), guests)
    generator = torch.Generator().manual_seed(columns)
    tables = [spread * torch.randn(50, columns, generator=generator) for _ in range(guests)]
    return agreement, [agreement.columns(table) for table in tables]


def test_degree_two_takes_31_bits_and_degree_four_61() -> None:
    for guests, exponent in ((4, 31), (6, 61)):
        agreement, columns = made(guests, 100)
        coding = coded(agreement, [""] * guests, columns, 32, "cpu")
        assert coding.field.exponent == exponent


def test_bits_for_which_no_field_is_large_enough_are_refused() -> None:
    agreement, columns = made(6, 100, data_bits=10, weight_bits=18)
    columns[3] *= 1.2
    with pytest.raises(UserError, match="56 binary places, beside which the sums of d do not fit into 61 bits"):
        coded(agreement, list("abcdef"), columns, 32, "cpu")


@settings(deadline=None, max_examples=60)
@given(st.integers(3, 8), st.integers(1, 40), st.floats(0.01, 30), st.integers(1, 6), st.integers(1, 12))
def test_the_worst_rows_and_weights_do_not_wrap(
    guests: int, columns: int, spread: float, data_bits: int, weight_bits: int
) -> None:
    """The longest row of each guest meets units in line with it, as long as they may be: the sum is the integers'."""
    agreement, own = made(guests, columns, spread, data_bits=data_bits, weight_bits=weight_bits)
    coding = coded(agreement, [""] * guests, own, 2, "cpu")
    field, total, exact = coding.field, torch.zeros(1, 2, dtype=torch.int64), 0
    for guest, table in enumerate(own):
        rows = coding.rounded(table, guest)
        torch.testing.assert_close(rows, table, atol=0.5 * 2.0**-data_bits, rtol=1e-6)  # none is shortened
        net = agreement.network(table.shape[1], 2)
        worst = torch.cat([rows[rows.norm(dim=1).argmax()], torch.ones(1)]).double()
        flat = torch.zeros(1, net.size, dtype=torch.float64)
        tensors = net.named(flat)
        for unit, sign in enumerate((1, -1 + 2 * agreement.squares)):
            tensors["0.weight"][0, unit] = 1e6 * sign * worst[:-1]
            tensors["0.bias"][0, unit] = 1e6 * sign
        flat, _ = net.limited(flat, coding.longest_units[guest])
        elements = quantise(flat, net.scale(data_bits, weight_bits), field)
        outputs = net.evaluate(field, elements, coding.elements(worst[None, None, :-1]))[0]
        total = field.add(total, outputs)
        first = net.named(field.centred(elements))
        product = sum(
            x * w
            for x, w in zip(
                field.centred(coding.elements(worst[:-1])).tolist(), first["0.weight"][0, 0].tolist(), strict=True
            )
        )
        unit_output = product + first["0.bias"][0, 0].item()
        exact += unit_output**2 if agreement.squares else unit_output
    assert field.centred(total)[0, 0].item() == exact
    assert exact <= field.prime // 2


def test_rows_longer_than_those_trained_on_are_shortened() -> None:
    agreement, own = made(4, 5)
    coding = coded(agreement, [""] * 4, own, 4, "cpu")
    longer = torch.cat([own[0][:3], 10 * own[0][3:4]])
    rows = coding.rounded(longer, 0)
    assert rows[3].norm() <= coding.longest_rows[0]
    torch.testing.assert_close(rows[:3], longer[:3], atol=2.0**-7, rtol=0)
    torch.testing.assert_close(rows[3] / rows[3].norm(), longer[3] / longer[3].norm(), atol=0.02, rtol=0)
