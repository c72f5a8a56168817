"""VAFL: guests in turn and a table of every row's last encodings, against a plain loop."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from split_networks import CRASHES, GUESTS, NAMES, ROUNDS, SEED, Script, learned, recorded
from torch import Tensor

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.faults.chains import Chains
from dvfl.parties.faults.fault_set import NO_FAULTS, Fault, Faults, Kind
from dvfl.parties.faults.outages import Outage, Outages
from dvfl.parties.numerics.learner import Adam, Sgd
from dvfl.parties.numerics.randomness import batches
from dvfl.settings.training import SplitSettings
from dvfl.strategies.split.split_training import EndToEnd, Masks
from dvfl.strategies.split.vafl import Vafl

SETTINGS = SplitSettings(epochs=3, guest_rule=Sgd(1.0, momentum=0.5), host_rule=Sgd(0.2, momentum=0.5), validation=0.0)
PlainSplits = Callable[[EndToEnd], Any]


class Scripted(Script, Vafl):
    """VAFL whose lost messages are written down beforehand."""

    def __init__(self, masks: Masks) -> None:
        self.written = masks


def made(
    data: VerticalData, settings: SplitSettings = SETTINGS, seeds: Sequence[int] = (SEED,), **options: Any
) -> EndToEnd:
    return EndToEnd(data, settings, seeds, **{"algorithm": Vafl(), **options})


def trained(*arguments: Any, **options: Any) -> EndToEnd:
    simulation = made(*arguments, **options)
    simulation.run()
    return simulation


def tables(simulation: EndToEnd) -> list[Tensor]:
    """What the host holds of every row, one a guest."""
    state = simulation.algorithm.state()
    return [state[f"table.{guest}"].clone() for guest in range(GUESTS)]


def follow(plain: Any, masks: Masks, turns: Sequence[int] = range(GUESTS)) -> tuple[list[float], list[Tensor]]:
    """Trains a plain network through as many rounds as there are masks; the rounds' losses, and the host's tables."""
    latents = plain.simulation.model.latents
    held = [torch.zeros(600, latent) for latent in latents]  # never heard of: zeros
    rounds, losses = len(masks["heard"]), []
    order = np.concatenate([batches(600, 64, SEED, "owner", epoch) for epoch in range(rounds // ROUNDS)])
    for t in range(rounds):
        rows, total = torch.from_numpy(order[t]).long(), 0.0
        for guest in turns:
            heard, told = masks["heard"][t, 0, guest], masks["told"][t, 0, guest]
            if not heard:
                continue
            code = plain.guests[guest](plain.tables[guest][rows])
            held[guest][rows] = code.detach()
            x = torch.cat([code if other == guest else table[rows] for other, table in enumerate(held)], 1)
            total += plain.learn(x, rows, True, [told and other == guest for other in range(GUESTS)])
        losses.append(total / GUESTS)
    return losses, held


def nothing_lost(rounds: int) -> Masks:
    everyone = np.ones((rounds, 1, GUESTS), bool)
    return {"heard": everyone, "told": everyone}


@pytest.mark.parametrize("table", ["digits", "unequal_digits"])
def test_it_is_a_plain_loop_over_guests_and_a_table(
    request: pytest.FixtureRequest, plain_split: PlainSplits, table: str
) -> None:
    simulation = made(request.getfixturevalue(table))
    plain = plain_split(simulation)
    simulation.run()
    losses, held = follow(plain, nothing_lost(3 * ROUNDS))
    assert plain.apart() < 5e-3
    expected = torch.tensor(losses).view(3, ROUNDS).mean(1)
    torch.testing.assert_close(torch.stack(simulation.losses)[:, 0], expected, rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(tables(simulation), held, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert simulation.model.host.steps.tolist() == [3 * ROUNDS * GUESTS]


def test_guests_take_their_turns_in_a_fixed_order(digits: VerticalData, plain_split: PlainSplits) -> None:
    simulation = made(digits)
    plain = plain_split(simulation)
    simulation.run()
    follow(plain, nothing_lost(3 * ROUNDS), turns=range(GUESTS)[::-1])
    assert plain.apart() > 0.05


def test_lost_messages_leave_the_table_and_those_they_would_have_taught(
    unequal_digits: VerticalData, plain_split: PlainSplits
) -> None:
    luck = np.random.default_rng(0)
    heard = luck.random((3 * ROUNDS, 1, GUESTS)) < 0.6
    heard[0] = False
    masks = {"heard": heard, "told": heard & (luck.random(heard.shape) < 0.6)}
    simulation = made(unequal_digits, algorithm=Scripted(masks))
    plain = plain_split(simulation)
    simulation.run()
    losses, held = follow(plain, masks)
    assert plain.apart() < 5e-3
    expected = torch.tensor(losses).view(3, ROUNDS).mean(1)
    torch.testing.assert_close(torch.stack(simulation.losses)[:, 0], expected, rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(tables(simulation), held, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_guest_that_is_down_leaves_its_rows_and_its_encoder_as_they_were(digits: VerticalData) -> None:
    simulation = made(digits, faults=recorded(Outage("guest-2", ROUNDS, 2 * ROUNDS)))
    simulation.advance()
    before = tables(simulation), [group.learner.parameters.clone() for group in simulation.model.groups]
    assert before[0][1].any()
    simulation.advance()
    after = tables(simulation), [group.learner.parameters for group in simulation.model.groups]
    for kept, now in zip(before, after, strict=True):
        assert [torch.equal(one, other) for one, other in zip(kept, now, strict=True)] == [False, True, False, False]
    assert simulation.model.host.steps.tolist() == [ROUNDS * GUESTS + ROUNDS * (GUESTS - 1)]


def test_rows_that_were_never_heard_of_are_zeros(digits: VerticalData) -> None:
    simulation = trained(digits, faults=recorded(Outage("guest-3>host-1", 0, None)))
    assert [bool(table.any()) for table in tables(simulation)] == [True, True, False, True]


def test_a_host_that_is_down_hears_nobody_and_nobody_learns(digits: VerticalData) -> None:
    simulation = made(digits, faults=recorded(Outage("host-1", 0, ROUNDS)))
    before = learned(simulation)
    simulation.advance()
    assert all(torch.equal(*pair) for pair in zip(before, learned(simulation), strict=True))
    assert not any(table.any() for table in tables(simulation))


def reached(chains: dict[Kind, Chains], t: int, guest: int) -> bool:
    """A request to one guest over its connection."""
    asked = np.arange(GUESTS)[None] == guest
    alone, link = (chains[kind].request(t, asked)[0, guest] for kind in ("guest", "connection"))
    return bool(alone and link)


def test_messages_arrive_where_guest_connection_and_host_are_up(digits: VerticalData) -> None:
    faults = replace(CRASHES, outages=Outages("record", (Outage("guest-2", 12, 17), Outage("host-1", 15, 16))))
    found = made(digits, faults=faults).algorithm.masks(ROUNDS, ROUNDS)  # the first epoch's were made before
    entities: dict[Kind, list[str]] = {
        "guest": NAMES,
        "connection": [f"{name}>host-1" for name in NAMES],
        "host": ["host-1"],
    }
    chains = {kind: Chains(kind, [faults], [SEED], names) for kind, names in entities.items()}
    for t in range(2 * ROUNDS):
        for guest in range(GUESTS):
            forward = reached(chains, t, guest)
            heard = chains["host"].request(t)[0, 0] and forward
            told = heard and reached(chains, t, guest)  # a gradient is sent only to who was heard
            if t >= ROUNDS:
                assert (found["heard"][t - ROUNDS, 0, guest], found["told"][t - ROUNDS, 0, guest]) == (heard, told)


@pytest.mark.parametrize("kind", ["connection", "guest", "host"])
def test_where_nobody_ever_answers_again_training_cannot_progress(digits: VerticalData, kind: Kind) -> None:
    with pytest.raises(UserError, match=f"cannot progress: with seed 5 every {kind} is dead for good"):
        made(digits, faults=Faults((Fault(kind, 1, 0),)))


@pytest.mark.parametrize("change", [{"dropout": 0.3}, {"validation": 0.2, "patience": 0, "epochs": 20}], ids=str)
def test_a_replica_of_a_stack_with_mixed_faults_is_that_seed_and_those_faults_alone(
    digits: VerticalData, change: dict[str, Any]
) -> None:
    settings = replace(SETTINGS, guest_rule=Adam(1e-2), host_rule=Adam(5e-3), **change)
    seeds = (5, 11, 5, 5)
    faults = (NO_FAULTS, CRASHES, recorded(Outage("guest-2", 3, 14), Outage("host-1", 21, 22)), CRASHES)
    stack = trained(digits, settings, seeds, faults=faults)
    assert stack.stalled == [None] * 4 and stack.repeated is None
    for number, (seed, fault) in enumerate(zip(seeds, faults, strict=True)):
        alone = trained(digits, settings, (seed,), faults=fault)
        for ours, theirs in zip(learned(stack), learned(alone), strict=True):
            assert (ours[number] - theirs[0]).norm() <= 1e-3 * theirs[0].norm()
        assert stack.scores()[number] == alone.scores()[0]


def test_digits_are_learned(digits: VerticalData) -> None:
    settings = replace(SETTINGS, epochs=20, guest_rule=Adam(5e-3), host_rule=Adam(5e-3))
    assert trained(digits, settings, (0, 1), faults=Faults((Fault("connection", 0.1, 0.5),))).scores().min() > 65
