"""What a guest's columns add to another's encodings."""

from dataclasses import replace

import pytest
from made_up import linear, made_up, noise

from dvfl.audit.attacks import collusion
from dvfl.audit.readers.readers import SMALL
from dvfl.audit.recordings.recording import Recording

EFFORT = replace(SMALL, known=(100,))


def by_way(seen: Recording) -> dict[str, float]:
    return {one.way: one.mean for one in collusion.measure(seen, EFFORT)}


def test_a_guest_that_has_nothing_to_do_with_another_adds_nothing() -> None:
    figures = by_way(made_up(lambda x, draw: linear(x, draw)[:, :3], shift=0.0))
    assert figures["ridge, together"] == pytest.approx(figures["ridge, host alone"], abs=0.03)
    assert 0.2 < figures["ridge, host alone"] < 0.9
    assert figures["ridge, guest alone"] < 0.05


def test_a_guest_with_the_same_columns_tells_what_encodings_do_not() -> None:
    seen = made_up(noise, columns=(6, 6))
    first, second = seen.guests
    figures = by_way(replace(seen, guests=(first, replace(second, x=first.x + 0.01 * second.x))))
    assert figures["ridge, together"] > 0.95
    assert figures["ridge, guest alone"] > 0.95
    assert figures["ridge, host alone"] < 0.1


def test_both_together_are_better_than_either() -> None:
    """Encodings of half the columns, and a neighbour that has the other half."""
    seen = made_up(columns=(6, 6), shift=0.0)
    first, second = seen.guests
    second = replace(second, x=first.x.flip(1))
    seen = replace(seen, guests=(first, second)).with_encodings([first.x[None, :, :3], second.x[None, :, :3]])
    halves = [replace(first, x=first.x), replace(second, x=second.x[:, :4])]
    figures = by_way(replace(seen, guests=tuple(replace(g, z=s.z) for g, s in zip(halves, seen.guests, strict=True))))
    assert figures["ridge, together"] > figures["ridge, host alone"] + 0.1
    assert figures["ridge, together"] > figures["ridge, guest alone"] + 0.01


def test_a_guest_alone_has_nobody_to_collude_with() -> None:
    assert collusion.measure(made_up(columns=(6,)), EFFORT) == []
