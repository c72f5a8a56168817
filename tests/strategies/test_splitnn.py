"""SplitNN: against autograd in a plain loop, and what each variant makes of lost messages."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from split_networks import (
    CRASHES,
    FICKLE,
    GUESTS,
    NAMES,
    ROUNDS,
    SEED,
    SETTINGS,
    Script,
    learned,
    made,
    recorded,
    trained,
)
from torch import Tensor

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.faults.chains import Chains
from dvfl.parties.faults.fault_set import NO_FAULTS, Fault, Faults, Kind
from dvfl.parties.faults.outages import Outage, Outages
from dvfl.parties.numerics.learner import Adam
from dvfl.parties.numerics.randomness import batches, numpy_generator, patterns
from dvfl.settings.training import Settings, SplitSettings
from dvfl.simulation.storage import stack_parties
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.split.split_training import EndToEnd, Masks
from dvfl.strategies.split.splitnn import Missing, SplitNN

QUICK = SplitSettings(epochs=20, guest_rule=Adam(5e-3), host_rule=Adam(5e-3), validation=0.0)
VARIANTS: tuple[Missing, ...] = get_args(Missing)
PlainSplits = Callable[[EndToEnd], Any]
Bools = NDArray[np.bool_]


class Scripted(Script, SplitNN):
    """A variant whose lost messages are written down beforehand."""

    def __init__(self, missing: Missing, masks: Masks) -> None:
        super().__init__(missing)
        self.written = masks


def same(one: EndToEnd, other: EndToEnd) -> bool:
    return all(torch.equal(ours, theirs) for ours, theirs in zip(learned(one), learned(other), strict=True))


def masks(missing: Missing, rounds: int, seed: int = 0) -> Masks:
    """Luck as a variant may meet it; the first rounds hear nobody, then all, so that extremes occur."""
    luck = np.random.default_rng(seed)
    heard = luck.random((rounds, 1, GUESTS)) < 0.7
    heard[0], heard[1] = False, True
    enough = heard.all(2) if missing in ("wait", "skip") else heard.any(2)
    learn = enough & (luck.random((rounds, 1)) < 0.7)
    told = heard & learn[..., None] & (luck.random((rounds, 1, GUESTS)) < 0.7)
    if missing == "wait":
        heard = told = np.repeat(learn[..., None], GUESTS, 2)
    return {"heard": heard, "told": told, "learn": learn}


def stand_in(missing: Missing, kept: Tensor | None, code: Tensor) -> Tensor:
    """What the host reads in the place of encodings that were lost."""
    return torch.zeros_like(code) if missing == "zeros" or kept is None else kept.expand_as(code)


def follow(
    plain: Any, missing: Missing, given: Masks, rates: Sequence[float] | None = None, keep: list[Tensor] | None = None
) -> list[float]:
    """Trains a plain network through as many rounds as there are masks; the losses of rounds, 0 where none learned."""
    rounds = len(given["learn"])
    order = np.concatenate([batches(600, 64, SEED, "owner", epoch) for epoch in range(-(-rounds // ROUNDS))])
    kept: list[Tensor | None] = [None] * GUESTS
    losses = []
    for t in range(rounds):
        rows, codes = torch.from_numpy(order[t]), []
        for guest, code in enumerate(plain.encode(torch.from_numpy(order[t]))):
            there = given["heard"][t, 0, guest]
            if there and missing == "buffer":
                kept[guest] = code.detach()
            if missing == "mean":  # from zero on, a tenth of the way to each batch that is heard
                before = torch.zeros(1, code.shape[1]) if kept[guest] is None else kept[guest]
                kept[guest] = 0.9 * before + 0.1 * code.detach().mean(0, keepdim=True) if there else before
            codes.append(code if there else stand_in(missing, kept[guest], code.detach()))
        x = torch.cat(codes, 1)
        learns = bool(given["learn"][t, 0])
        x = x if keep is None else x * keep[t]
        loss = plain.learn(x, rows, learns, given["told"][t, 0], 1.0 if rates is None else rates[t])
        losses.append(loss * learns)
    return losses


def nothing_lost(rounds: int) -> Masks:
    everyone = np.ones((rounds, 1, GUESTS), bool)
    return {"heard": everyone, "told": everyone, "learn": everyone[..., 0]}


# Against autograd.


@pytest.mark.parametrize("table", ["digits", "unequal_digits"])
@pytest.mark.parametrize("missing", VARIANTS)
def test_without_faults_it_is_one_network_trained_by_gradient_descent(
    request: pytest.FixtureRequest, plain_split: PlainSplits, missing: Missing, table: str
) -> None:
    simulation = made(request.getfixturevalue(table), missing)
    plain = plain_split(simulation)
    simulation.run()
    losses = follow(plain, missing, nothing_lost(3 * ROUNDS))
    assert plain.apart() < 5e-3
    expected = torch.tensor(losses).view(3, ROUNDS).mean(1)
    torch.testing.assert_close(torch.stack(simulation.losses)[:, 0], expected, rtol=1e-4, atol=1e-5)


def test_learning_rates_fall_along_a_cosine_over_all_rounds(digits: VerticalData, plain_split: PlainSplits) -> None:
    simulation = made(digits, "zeros", replace(SETTINGS, schedule="cosine"))
    plain = plain_split(simulation)
    simulation.run()
    rates = [0.5 * (1 + np.cos(np.pi * t / (3 * ROUNDS))) for t in range(3 * ROUNDS)]
    follow(plain, "zeros", nothing_lost(3 * ROUNDS), rates)
    assert plain.apart() < 5e-3


def test_dropout_hides_encodings_from_the_host_and_their_gradients_from_guests(
    digits: VerticalData, plain_split: PlainSplits
) -> None:
    simulation = made(digits, "zeros", replace(SETTINGS, epochs=1, dropout=0.4))
    plain = plain_split(simulation)
    simulation.run()
    bank = patterns(4096, sum(simulation.model.latents), 0.6, SEED, "split-dropout")
    assert float(bank.float().mean()) == pytest.approx(0.6, abs=0.01)
    picks = numpy_generator(SEED, "split-dropout", 0).integers(4096, size=(ROUNDS, 64))  # a mask a row
    follow(plain, "zeros", nothing_lost(ROUNDS), keep=[bank[torch.from_numpy(rows)] / 0.6 for rows in picks])
    assert plain.apart() < 5e-3


@pytest.mark.parametrize("table", ["digits", "unequal_digits"])
@pytest.mark.parametrize("missing", VARIANTS)
def test_lost_messages_have_the_stand_ins_of_their_variant_and_move_nobody_who_is_not_told(
    request: pytest.FixtureRequest, plain_split: PlainSplits, missing: Missing, table: str
) -> None:
    given = masks(missing, 3 * ROUNDS)
    algorithm = Scripted(missing, given)
    simulation = EndToEnd(request.getfixturevalue(table), SETTINGS, (SEED,), algorithm=algorithm)
    plain = plain_split(simulation)
    simulation.run()
    losses = follow(plain, missing, given)
    assert plain.apart() < 5e-3
    expected = torch.tensor(losses).view(3, ROUNDS).mean(1)
    torch.testing.assert_close(torch.stack(simulation.losses)[:, 0], expected, rtol=1e-4, atol=1e-5)
    steps = {name: int(given[name].sum()) for name in ("learn", "told")}
    assert int(simulation.model.host.steps.sum()) == steps["learn"]
    assert sum(int(group.learner.steps.sum()) for group in simulation.model.groups) == steps["told"]


def test_guests_start_as_those_of_dvfl(unequal_digits: VerticalData) -> None:
    ours = dict(made(unequal_digits, "skip").model.tensors())
    theirs = dict(stack_parties(Dvfl(unequal_digits, Settings(), (SEED,)).stack))
    for name in NAMES:
        assert all(torch.equal(tensor, theirs[name][key]) for key, tensor in ours[name].items())


# Whose messages arrive.


class Luck:
    """The chains of one replica, asked one by one."""

    def __init__(self, faults: Faults, seed: int) -> None:
        entities: dict[Kind, list[str]] = {
            "guest": NAMES,
            "connection": [f"{name}>host-1" for name in NAMES],
            "host": ["host-1"],
        }
        self.chains = {kind: Chains(kind, [faults], [seed], names) for kind, names in entities.items()}

    def guest(self, t: int, guest: int) -> bool:
        """A request to a guest over its connection."""
        asked = np.arange(GUESTS)[None] == guest
        alone, link = (self.chains[kind].request(t, asked)[0, guest] for kind in ("guest", "connection"))
        return bool(alone and link)

    def host(self, t: int) -> bool:
        return bool(self.chains["host"].request(t)[0, 0])


@pytest.mark.parametrize("missing", ["skip", "zeros", "buffer", "mean"])
def test_messages_arrive_where_guest_connection_and_host_are_up(digits: VerticalData, missing: Missing) -> None:
    faults = replace(CRASHES, outages=Outages("record", (Outage("guest-2", 12, 17), Outage("host-1", 15, 16))))
    found = made(digits, missing, faults=faults).algorithm.masks(ROUNDS, 20)  # the first epoch's were made before
    luck = Luck(faults, SEED)
    for t in range(ROUNDS + 20):
        heard = [luck.guest(t, guest) for guest in range(GUESTS)]
        learn = luck.host(t) and (all(heard) if missing == "skip" else any(heard))
        told = [learn and there and luck.guest(t, guest) for guest, there in enumerate(heard)]
        if t >= ROUNDS:
            assert found["heard"][t - ROUNDS, 0].tolist() == heard
            assert found["learn"][t - ROUNDS].tolist() == [learn]
            assert found["told"][t - ROUNDS, 0].tolist() == told


def test_a_round_that_skip_gives_up_makes_no_backward_request(digits: VerticalData) -> None:
    faults = recorded(Outage("guest-2", 0, 4), Outage("guest-3>host-1", 3, 5))
    asked = made(digits, "skip", faults=faults).algorithm.state()  # the first epoch's masks are made
    for kind in ("guest", "connection"):
        assert asked[f"requests.{kind}.drawn"].tolist() == [[ROUNDS + ROUNDS - 5] * GUESTS]


@pytest.mark.parametrize("missing", ["zeros", "buffer", "mean"])
def test_a_gradient_is_sent_only_to_those_that_were_heard(digits: VerticalData, missing: Missing) -> None:
    faults = recorded(Outage("guest-2", 0, 4), Outage("guest-3>host-1", 3, 5))
    asked = made(digits, missing, faults=faults).algorithm.state()
    for kind in ("guest", "connection"):
        assert asked[f"requests.{kind}.drawn"].tolist() == [[20, 16, 18, 20]]


@pytest.mark.parametrize("missing", ["skip", "zeros", "buffer", "mean"])
def test_a_host_that_is_down_sends_no_gradients(digits: VerticalData, missing: Missing) -> None:
    faults = recorded(Outage("host-1", 2, 5), Outage("guest-1", 90, 91))
    asked = made(digits, missing, faults=faults).algorithm.state()
    assert asked["requests.host.drawn"].tolist() == [[ROUNDS]]
    assert asked["requests.guest.drawn"].tolist() == [[ROUNDS + ROUNDS - 3] * GUESTS]


# What is left as it was.


def test_skip_changes_nothing_while_somebody_is_missing(digits: VerticalData) -> None:
    simulation = made(digits, "skip", faults=recorded(Outage("guest-3", ROUNDS, 2 * ROUNDS)))
    simulation.advance()
    before = learned(simulation)
    simulation.advance()
    assert all(torch.equal(*pair) for pair in zip(before, learned(simulation), strict=True))
    simulation.advance()
    assert not any(torch.equal(*pair) for pair in zip(before, learned(simulation), strict=True))


@pytest.mark.parametrize("missing", ["skip", "zeros", "buffer", "mean"])
def test_nobody_moves_while_the_host_is_down(digits: VerticalData, missing: Missing) -> None:
    simulation = made(digits, missing, faults=recorded(Outage("host-1", 0, ROUNDS)))
    before = learned(simulation)
    simulation.advance()
    assert all(torch.equal(*pair) for pair in zip(before, learned(simulation), strict=True))


@pytest.mark.parametrize("missing", ["zeros", "buffer", "mean"])
def test_a_guest_that_is_never_heard_stays_as_it_was_and_the_others_learn(
    digits: VerticalData, missing: Missing
) -> None:
    simulation = made(digits, missing, faults=recorded(Outage("guest-3", 0, None)))
    before = simulation.model.groups[0].learner.parameters.clone()
    simulation.run()
    moved = (simulation.model.groups[0].learner.parameters != before).any(1)
    assert moved.tolist() == [True, True, False, True]
    assert simulation.model.host.steps.tolist() == [3 * ROUNDS]


@pytest.mark.parametrize("missing", ["skip", "zeros", "buffer", "mean"])
@pytest.mark.parametrize("kind", ["connection", "guest", "host"])
def test_where_nobody_ever_answers_again_training_cannot_progress(
    digits: VerticalData, missing: Missing, kind: Kind
) -> None:
    with pytest.raises(UserError, match=f"cannot progress: with seed 5 every {kind} is dead for good"):
        made(digits, missing, faults=Faults((Fault(kind, 1, 0),)))


# Waiting.


def waited(faults: Faults, seed: int, rounds: int, retries: int) -> tuple[int | None, int]:
    """The round at which waiting is in vain, and how many requests were made again until then."""
    luck, repeated = Luck(faults, seed), 0

    def heard(request: Callable[[], bool]) -> bool:
        nonlocal repeated
        for attempt in range(retries + 1):
            repeated += attempt > 0
            if request():
                return True
        return False

    for t in range(rounds):
        for way in ("forward", "backward"):
            through = [heard(lambda guest=guest: luck.guest(t, guest)) for guest in range(GUESTS)]  # noqa: B023
            if way == "forward":
                through.append(heard(lambda: luck.host(t)))  # noqa: B023
            if not all(through):
                return t, repeated
    return None, repeated


def test_without_faults_all_variants_are_the_same_to_the_last_bit(digits: VerticalData) -> None:
    first, *others = (trained(digits, missing) for missing in VARIANTS)
    assert all(same(first, other) for other in others)
    assert first.repeated is not None and first.repeated.tolist() == [0]


@pytest.mark.parametrize("retries", [0, 1])
def test_waiting_stalls_at_the_first_message_that_is_lost_for_good(digits: VerticalData, retries: int) -> None:
    seeds = range(12)
    rate = 0.004
    faults = Faults(tuple(Fault(kind, rate, 0.5) for kind in ("connection", "guest", "host")))
    settings = replace(SETTINGS, retries=retries)
    expected = [waited(faults, seed, 3 * ROUNDS, retries) for seed in seeds]
    simulation = trained(digits, "wait", settings, seeds, faults=faults)
    stalled = [at for at, _ in expected]
    assert simulation.stalled == stalled
    assert len({at for at in stalled if at is not None}) > 2 and None in stalled
    assert simulation.repeated is not None and simulation.repeated.tolist() == [count for _, count in expected]
    np.testing.assert_array_equal(np.isnan(simulation.scores()), [at is not None for at in stalled])


def test_a_replica_that_has_stalled_stays_as_it_is(digits: VerticalData) -> None:
    faults = [recorded(Outage("guest-1", 7, 8)), NO_FAULTS]
    simulation = made(digits, "wait", seeds=(SEED, SEED), faults=faults)
    simulation.advance()
    before = learned(simulation)
    assert simulation.stalled == [7, None]
    simulation.run()
    assert all(torch.equal(ours[0], theirs[0]) for ours, theirs in zip(before, learned(simulation), strict=True))
    assert simulation.model.host.steps.tolist() == [7, 3 * ROUNDS]


def test_training_ends_once_every_replica_has_stalled(digits: VerticalData) -> None:
    faults = [recorded(Outage("guest-1", 12, 13)), recorded(Outage("host-1", 3, 4))]
    simulation = made(digits, "wait", replace(SETTINGS, epochs=1000), (SEED, 11), faults=faults)
    assert not simulation.finished and simulation.stalled == [None, None]  # nothing has happened yet
    simulation.run()
    assert simulation.stalled == [12, 3]
    assert simulation.done == 2
    assert simulation.epochs_left == {"guests and host": 0}
    assert np.isnan(simulation.scores()).all()


def test_with_enough_retries_waiting_gets_through_to_the_training_without_faults(digits: VerticalData) -> None:
    simulation = trained(digits, "wait", replace(SETTINGS, retries=200), (SEED, 11), faults=CRASHES)
    assert simulation.stalled == [None, None]
    assert same(simulation, trained(digits, "wait", seeds=(SEED, 11)))
    assert simulation.repeated is not None
    assert simulation.repeated.tolist() == [waited(CRASHES, seed, 3 * ROUNDS, 200)[1] for seed in (SEED, 11)]
    assert simulation.repeated.min() > 0


def test_only_requests_of_rounds_that_were_made_are_counted(digits: VerticalData) -> None:
    simulation = trained(digits, "wait", FICKLE, (5,), faults=CRASHES)
    assert simulation.done == 3
    assert simulation.repeated is not None
    assert simulation.repeated.tolist() == [waited(CRASHES, 5, 3 * 8, 200)[1]]
