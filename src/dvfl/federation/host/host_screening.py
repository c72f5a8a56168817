"""A frozen host's look at what guests answer before it uses it: who sends what cannot be right is absent."""

import numpy as np
from numpy.typing import NDArray

from dvfl.federation.host.freshness import sweep_held
from dvfl.federation.host.frozen_answers import Gathered
from dvfl.federation.host.host import Frozen
from dvfl.federation.protocol.wire_types import ABSENT, SUSPECTED
from dvfl.parties.numerics.randomness import numpy_generator
from dvfl.parties.screening import Screen, fit_screen

SHARE = 0.15  # of the time that is left when a host is asked, for looking
_MOST, _LEAST = 20_000, 512  # training rows that it is learned from; fewer tell too little of what is usual


def training_screen(frozen: Frozen) -> Screen | None:
    """What is usual among the rows that the host was trained on, as guests swept them; None: they are too few.

    Takes some seconds, with the thresholds for all guests together.
    """
    plan = frozen.plan
    there = np.zeros((plan.slots, len(plan.guests)), bool)
    for number, guest in enumerate(plan.guests):
        if guest.name in frozen.guests:
            there[:, number] = sweep_held(frozen, guest.name)[: plan.slots]
    rows = np.flatnonzero(there.any(1))
    if len(rows) < _LEAST:
        return None
    rows = numpy_generator(plan.seed, "screened rows").permutation(rows)[:_MOST]
    encodings = [register.values[rows] for register in frozen.training.table.registers]
    screen = fit_screen(encodings, there[rows], plan.seed)
    screen.prepare()
    return screen


def suspects(screen: Screen, frozen: Frozen, found: Gathered) -> list[int]:
    """The guests, by number, whose rows of a request cannot be right."""
    return screen.suspects(np.split(found.b[0], _cuts(frozen), axis=1), found.present[0])


def without(found: Gathered, guests: list[int]) -> Gathered:
    """The same with some guests absent, and named for it."""
    present, states, ages = found.present.copy(), found.states.copy(), found.ages.copy()
    named = np.zeros(states.shape, bool)
    named[:, guests] = True
    states[named & (states != ABSENT)] = SUSPECTED
    present[0, named], ages[named] = False, -1.0
    return Gathered(found.b, present, states, ages)


def _cuts(frozen: Frozen) -> NDArray[np.intp]:
    return np.cumsum(frozen.plan.sizes.guest_latent)[:-1]
