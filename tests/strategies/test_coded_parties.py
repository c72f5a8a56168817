"""Clients that compute on shares, and a server that sees sums alone."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dvfl.data.split.vertical import GuestTable, VerticalData
from dvfl.parties.numerics.learner import Adam
from dvfl.settings.training import FedVSSettings
from dvfl.strategies.fedvs.code import LARGEST
from dvfl.strategies.fedvs.coded_parties import Server
from dvfl.strategies.fedvs.fedvs import FedVS
from dvfl.strategies.fedvs.lagrange import TooFewResults

SETTINGS = FedVSSettings(epochs=1, guest_rule=Adam(1e-2), host_rule=Adam(1e-2), validation=0.0, batch=60)
WISHES: list[tuple[str, dict[str, Any]]] = [
    ("digits", {}),
    ("unequal_digits", {"w_g": 20}),
    ("six_guests", {}),
    ("six_guests", {"squares": 0, "segments": 2}),
    ("six_guests", {"squares": 0, "colluders": 2}),
    ("six_guests", {"squares": 0, "stragglers": 2}),
]


def made(data: VerticalData, seeds: tuple[int, ...] = (5, 6), **wishes: Any) -> FedVS:
    return FedVS(data, replace(SETTINGS, **wishes), seeds)


def rows_of(simulation: FedVS, count: int = 7) -> Tensor:
    """Some rows of the first segment, others in every replica."""
    return torch.stack([torch.arange(count) + 10 * replica for replica in range(len(simulation.seeds))])


def results_of(simulation: FedVS, rows: Tensor, number: int = 0) -> Tensor:
    return simulation.clients.answer(simulation.clients.share_weights(number), simulation.clients.held(rows))


def decoded(simulation: FedVS, results: Tensor, heard: list[int]) -> Tensor:
    """What the server makes of the results that were heard."""
    degree = simulation.agreement.network(1, 1).degree
    decoding = simulation.coding.code.decoding(heard, degree).expand(len(results), -1, -1)
    missing = [client for client in range(simulation.agreement.guests) if client not in heard]
    arrived = results.clone()
    arrived[:, missing] = 0
    return simulation.server.decode(arrived, decoding)


def in_the_clear(simulation: FedVS, rows: Tensor) -> Tensor:
    """The sum of all guests' networks with rounded weights on rounded columns, in float64."""
    agreement, total = simulation.agreement, torch.zeros(())
    for group, tables in zip(simulation.model.groups, simulation.tables, strict=True):
        scale = simulation.agreement.network(group.net.in_width, group.net.out_width).scale(
            agreement.data_bits, agreement.weight_bits
        )
        weights = (group.learner.parameters.double() * scale).round() / scale
        x = tables.take(simulation.rows.followed(rows), slice(None)).double()
        total = total + group.net.forward(weights, x)[-1].unflatten(0, (len(simulation.seeds), -1)).sum(1)
    return total


@pytest.mark.parametrize(("table", "wishes"), WISHES)
def test_what_is_decoded_is_the_sum_of_the_guests_rounded_networks_to_the_last_bit(
    request: pytest.FixtureRequest, table: str, wishes: dict[str, Any]
) -> None:
    simulation = made(request.getfixturevalue(table), **wishes)
    simulation.advance()  # the weights have moved
    rows = rows_of(simulation)
    sums = decoded(simulation, results_of(simulation, rows), list(range(simulation.agreement.guests)))
    assert torch.equal(sums, in_the_clear(simulation, rows).float())


@pytest.mark.parametrize(("table", "wishes"), WISHES)
def test_without_up_to_l_clients_it_is_the_same_and_without_one_more_it_is_refused(
    request: pytest.FixtureRequest, table: str, wishes: dict[str, Any]
) -> None:
    simulation = made(request.getfixturevalue(table), **wishes)
    guests, most = simulation.agreement.guests, simulation.agreement.guests - simulation.agreement.needed
    results = results_of(simulation, rows_of(simulation))
    full = decoded(simulation, results, list(range(guests)))
    assert full.abs().max() > 0
    for count in range(most + 1):
        for missing in combinations(range(guests), count):
            heard = [client for client in range(guests) if client not in missing]
            assert torch.equal(decoded(simulation, results, heard), full)
    for heard in combinations(range(guests), guests - most - 1):
        with pytest.raises(TooFewResults):
            decoded(simulation, results, list(heard))


def test_a_lost_result_is_needed_once_too_many_are_missing(digits: VerticalData) -> None:
    """With a false result in place of a true one, something else is decoded: the others do not make up for it."""
    simulation = made(digits)
    results = results_of(simulation, rows_of(simulation))
    full = decoded(simulation, results, [0, 1, 2, 3])
    results[:, 2] = 0
    assert not torch.equal(decoded(simulation, results, [0, 1, 2]), full)


def test_a_part_of_the_replicas_does_what_they_do_in_the_whole(six_guests: VerticalData) -> None:
    simulation = made(six_guests, seeds=(5, 6, 7))
    rows = rows_of(simulation)
    whole, part = results_of(simulation, rows), simulation.clients.part(slice(1, 3))
    assert torch.equal(part.answer(part.share_weights(0), part.held(rows)), whole[1:])


# What colluding clients hold.


def constant(value: float, guests: int = 4) -> VerticalData:
    """Every guest's columns are one and the same number everywhere."""
    table = np.full((600, 8), value, np.float32)
    labels = (np.arange(600) % 2).astype(np.int64)
    tables = tuple(GuestTable(f"guest-{number + 1}", table, table[:9]) for number in range(guests))
    return VerticalData("constant", tables, labels, labels[:9], ("a", "b"))


def uneven(values: Tensor, prime: int) -> float:
    """How many standard deviations off an even spread the chi-square of pairs of elements (2, count) is."""
    cells = (values.double() * 8 / prime).long()
    counts = (cells[0] * 8 + cells[1]).bincount(minlength=64).double()
    expected = counts.sum() / 64
    return float((((counts - expected) ** 2 / expected).sum() - 63) / (2 * 63) ** 0.5)


@pytest.mark.parametrize("value", [0.0, 1.0, -LARGEST])
def test_the_shares_of_colluders_are_uniform_together_whatever_the_columns_and_weights(value: float) -> None:
    simulation = made(constant(value, guests=6), seeds=(5,), squares=0, colluders=2)
    for group in simulation.model.groups:
        group.learner.parameters.fill_(value / 10)
    prime = simulation.coding.field.prime
    (rows,) = simulation.clients.held(torch.arange(600)[None])  # (clients x members, rows, columns)
    (weights,) = simulation.clients.share_weights(0)  # (clients x members, size)
    for shares in (rows, weights):
        by_client = shares.view(6, -1)
        for colluders in combinations(range(6), 2):
            assert abs(uneven(by_client[list(colluders)], prime)) < 5
        assert uneven(by_client[:2], prime) != uneven(by_client[2:4], prime)


def test_three_clients_against_two_masks_are_found_out_by_their_shares() -> None:
    """The tests above could fail: one client more, and equal columns show in a relation between the shares."""
    simulation = made(constant(1.0, guests=6), seeds=(5,), squares=0, colluders=2)
    field, code = simulation.coding.field, simulation.coding.code
    (rows,) = simulation.clients.held(torch.arange(600)[None])
    secret = code.decoding([0, 1, 2], 1)  # a polynomial of degree 2 through three shares
    values = field.matmul(secret[None], rows.view(6, -1)[None].long())
    assert torch.equal(field.centred(values)[0, 0, :8], torch.full((8,), 2**simulation.agreement.data_bits))


def test_weights_are_masked_anew_in_every_round(six_guests: VerticalData) -> None:
    simulation = made(six_guests)
    first, again, next_round = (simulation.clients.share_weights(number) for number in (3, 3, 4))
    for one, same, other in zip(first, again, next_round, strict=True):
        assert torch.equal(one, same)
        assert (one == other).double().mean() < 0.01
    rows = rows_of(simulation)
    sums = [decoded(simulation, results_of(simulation, rows, number), [0, 1, 2, 3, 4, 5]) for number in (3, 4)]
    assert torch.equal(*sums)


# What the server can reach.


def reachable(start: object) -> Iterator[Tensor]:
    """Every tensor and array that can be got at from an object, by any number of steps."""
    seen: set[int] = set()
    ahead: list[Any] = [start]
    while ahead:
        at = ahead.pop()
        if id(at) in seen or isinstance(at, (str, bytes, int, float, type)) or at is None:
            continue
        seen.add(id(at))
        if isinstance(at, Tensor):
            yield at
        elif isinstance(at, np.ndarray):
            yield torch.from_numpy(at)
        elif isinstance(at, dict):
            ahead += [*at.keys(), *at.values()]
        elif isinstance(at, (list, tuple, set, frozenset)):
            ahead += at
        else:
            ahead += getattr(at, "__dict__", {}).values()
            ahead += [cell.cell_contents for cell in getattr(at, "__closure__", None) or ()]
            ahead += [at.__self__] if hasattr(at, "__self__") else []


def values_in(tensors: Iterator[Tensor] | list[Tensor]) -> set[float]:
    return {value for tensor in tensors for value in tensor.detach().double().flatten().tolist()}


def telling(seed: int) -> VerticalData:
    """Columns whose values, in the clear and rounded, turn up nowhere else by accident."""
    luck = np.random.default_rng(seed)
    tables = [np.float32(2.01 + 0.98 * luck.random((300, 5))) for _ in range(6)]
    guests = tuple(GuestTable(f"guest-{n + 1}", table[:240], table[240:]) for n, table in enumerate(tables))
    labels = (tables[0][:, 0] > 2.5).astype(np.int64)
    return VerticalData("telling", guests, labels[:240], labels[240:], ("a", "b"))


@pytest.mark.parametrize(("squares", "weight_bits"), [(0, 16), (1, 6)])
def test_the_server_never_holds_an_input_nor_is_it_sent_one(
    squares: int, weight_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = telling(0)
    sent: list[Tensor] = []
    decode = Server.decode

    def overheard(self: Server, results: Tensor, decoding: Tensor) -> Tensor:
        sent.append(results.clone())
        return decode(self, results, decoding)

    monkeypatch.setattr(Server, "decode", overheard)
    simulation = made(data, squares=squares, data_bits=16, weight_bits=weight_bits)
    assert simulation.coding.field.exponent == 61  # so large that nothing in it meets by accident
    simulation.run()
    simulation.outputs()
    inputs: set[float] = set()
    for number, guest in enumerate(data.guests):
        for table in (guest.train, guest.test):
            columns = simulation.agreement.columns(torch.from_numpy(table))
            rounded = simulation.coding.rounded(columns, number)
            inputs |= values_in([torch.from_numpy(table), columns, rounded, simulation.coding.elements(rounded)])
    known = list(reachable(simulation.server))
    assert any(
        torch.equal(tensor, simulation.model.host.parameters) for tensor in known
    )  # the walk finds what is there
    assert inputs.isdisjoint(values_in(known))
    assert len(sent) >= simulation.rows.iterations + 1
    assert inputs.isdisjoint(values_in(sent))
    assert not inputs.isdisjoint(values_in(reachable(simulation.clients)))  # nor could it fail to see one


def test_nothing_is_sent_of_a_clients_own_share_alone(six_guests: VerticalData) -> None:
    """What a client sends is one sum over all guests, however many there are."""
    simulation = made(six_guests)
    results = results_of(simulation, rows_of(simulation))
    assert results.shape == (2, 6, 7, simulation.model.latents[0])
