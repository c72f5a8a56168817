"""Columns from encodings, where it is known how much of them is in there."""

from dataclasses import replace

import pytest
import torch
from made_up import linear, made_up, noise

from dvfl.audit.attacks import inversion
from dvfl.audit.readers.readers import SMALL
from dvfl.audit.recordings.measured import Measured
from dvfl.audit.recordings.recording import Recording

EFFORT = replace(SMALL, known=(200,), hidden=(64,), rates=(5e-3,), steps=400)


def correlated(seen: Recording) -> Recording:
    """The same rows with columns of which few directions hold the most, and linear encodings of them."""
    draw = torch.Generator().manual_seed(7)
    guests = []
    for guest in seen.guests:
        width = guest.x.shape[1]
        turn = torch.linalg.qr(torch.randn(width, width, generator=draw)).Q
        x = (guest.x / torch.arange(1, width + 1)) @ turn
        z = x @ torch.randn(width, width, generator=draw)
        guests.append(replace(guest, x=x, z=z.expand(len(seen.seeds), -1, -1)))
    return replace(seen, guests=tuple(guests))


def test_linear_encodings_are_inverted_in_every_way() -> None:
    figures = {one.way: one.mean for one in inversion.measure(made_up(linear), EFFORT)}
    alone = {"ridge", "network", "ridge, all encodings", "public rows", "surrogate encoder"}
    assert set(figures) == {*alone, "ridge, all guests"}
    assert figures["ridge, all guests"] > 0.999
    assert figures["ridge"] > 0.999
    assert figures["ridge, all encodings"] > 0.999
    assert figures["public rows"] > 0.99
    assert figures["network"] > 0.9
    assert figures["surrogate encoder"] > 0.8


def test_noise_is_inverted_in_no_way() -> None:
    for figure in inversion.measure(made_up(noise), EFFORT):
        assert -0.2 < figure.mean < 0.05, figure


def test_what_other_guests_sent_helps_where_they_know_the_same() -> None:
    """Two guests with the same columns, of which each sends a half."""
    seen = made_up(columns=(6, 6), shift=0.0, pool=600)
    x = seen.guests[0].x
    halves = replace(seen, guests=tuple(replace(guest, x=x) for guest in seen.guests))
    halves = halves.with_encodings([x[None, :, :3], x[None, :, 3:]])
    effort = replace(EFFORT, known=(500,))
    figures = {one.way: one.mean for one in inversion.measure(halves, effort)}
    assert figures["ridge"] < 0.6 and figures["ridge, all guests"] > 0.99 and figures["network, all guests"] > 0.9
    assert {one.way for one in inversion.measure(halves, effort, with_others=False)} == {
        "ridge",
        "network",
        "public rows",
        "surrogate encoder",
    }


def test_nobody_else_sent_anything_where_there_is_one_guest_and_where_hosts_see_sums() -> None:
    for seen in (made_up(columns=(6,)), made_up(strategy="vfb2")):
        ways = {one.way for one in inversion.measure(seen, replace(EFFORT, known=(20,)))}
        assert not any("all guests" in way for way in ways)


def test_public_rows_make_up_for_few_known_ones() -> None:
    seen = correlated(made_up(columns=(40, 40), shift=0.0))
    figures = {one.way: one.mean for one in inversion.measure(seen, replace(EFFORT, known=(8,)))}
    assert figures["public rows"] > figures["ridge"] + 0.1
    assert figures["public rows"] > 0.6


def test_all_encodings_help_where_few_directions_count() -> None:
    """Encodings of much independent noise beside a strong signal: which directions are which, all of them tell."""
    seen = made_up(columns=(4,))
    draw = torch.Generator().manual_seed(5)
    turn = torch.linalg.qr(torch.randn(40, 40, generator=draw)).Q
    wide = torch.cat([2 * seen.guests[0].x, torch.randn(seen.rows.count, 36, generator=draw)], 1) @ turn
    figures = {
        one.way: one.mean for one in inversion.measure(seen.with_encodings([wide[None]]), replace(EFFORT, known=(20,)))
    }
    assert figures["ridge, all encodings"] > figures["ridge"] + 0.05


def test_a_figure_is_the_mean_over_guests_of_any_shape() -> None:
    seen = made_up(linear, columns=(6, 8, 6))
    spoiled = seen.with_encodings([seen.guests[0].z, torch.zeros_like(seen.guests[1].z), seen.guests[2].z])
    values = {one.way: one.mean for one in inversion.measure(spoiled, EFFORT)}
    assert values["ridge"] == pytest.approx(2 / 3, abs=0.03)


def test_a_replica_in_a_stack_is_the_replica_alone() -> None:
    effort = replace(EFFORT, known=(60,), steps=30)
    both, alone = (made_up(linear, seeds=seeds) for seeds in ((3, 4), (4,)))
    alone = replace(alone, outputs=both.outputs[1:])
    for one, other in zip(inversion.measure(both, effort), inversion.measure(alone, effort), strict=True):
        assert len(one.values) == 2
        assert one.values[1] == pytest.approx(other.values[0], abs=1e-3), one.way


def test_more_known_rows_than_the_pool_has_are_left_out_and_networks_with_few() -> None:
    figures = inversion.measure(made_up(linear), replace(EFFORT, known=(10, 300, 301), steps=5))
    assert {one.known for one in figures} == {10, 300}
    assert {one.known for one in figures if one.way == "network"} == {300}


def test_the_strongest_way_is_chosen_for_each_count_and_control() -> None:
    def figure(way: str, known: int, value: float) -> Measured:
        return Measured("inversion", way, "a host", "encodings", known, "columns", "columns", "R2", (value,))

    weak, strong, other = figure("a", 10, 0.1), figure("b", 10, 0.2), figure("a", 50, 0.05)
    control = replace(weak, control="raw features")
    assert inversion.strongest([weak, strong, other, control]) == [strong, other, control]
