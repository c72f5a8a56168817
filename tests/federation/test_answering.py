"""What a frozen host makes of rows: fresh, cached and absent guests, ages, and what it does not believe."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_host import PLAN, frozen, hello, made, message, swept, tell, write

from dvfl.federation.host.freshness import Vouched
from dvfl.federation.host.frozen_answers import check_fresh, gathered, keep
from dvfl.federation.host.host import Frozen, HostParty
from dvfl.federation.protocol.prediction_limits import PART, check_slots, rows_at_once
from dvfl.federation.protocol.wire import Ask, BadMessage, Chunk, Collect, Fresh, Predict
from dvfl.federation.protocol.wire_types import ABSENT, CACHED, FRESH

SLOTS = np.array([7, 3, 50], np.int32)
ENCODER, ORIGIN = "e" * 64, "a" * 64
NOW_MS = 1_700_000_000_000


def answering(host: HostParty) -> Frozen:
    found = host.answering()
    assert found is not None
    return found


def fresh(guest: str = "guest-1", slots: Any = (3, 50), **change: Any) -> Fresh:
    own = np.array(slots, np.int32)
    values = np.full((len(own), 4), 9.0, np.float32)
    return replace(Fresh(guest, PLAN.run, ENCODER, ORIGIN, own, values), **change)


def unsaid(slots: np.ndarray) -> Vouched:
    """No guest has said anything."""
    return Vouched(np.zeros((len(slots), 3), np.uint8), np.zeros(3, np.float32), np.zeros(3, bool))


def predict(slots: np.ndarray = SLOTS) -> Predict:
    return Predict(PLAN.run, "f" * 64, 1000, slots)


def test_rows_are_fresh_where_a_guest_answered_and_cached_where_it_did_not() -> None:
    found = gathered(answering(frozen()), SLOTS, {"guest-1": fresh()}, unsaid(SLOTS), now_ms=5001)
    assert found.states.tolist() == [[CACHED] * 3, [FRESH, CACHED, CACHED], [FRESH, CACHED, CACHED]]
    assert found.ages.tolist() == [[5.0, 5.0, 5.0], [0.0, 5.0, 5.0], [0.0, 5.0, 5.0]]
    assert found.b[0, :, 0].tolist() == [2.0, 9.0, 9.0]  # the sweep's, and what came just now
    assert found.b[0, :, 4].tolist() == [2.0] * 3
    assert found.present.all()


def test_without_answers_it_is_what_was_collected() -> None:
    host = frozen()
    chunk = host.collect(Collect(PLAN.run, host.frozen, 0))
    assert isinstance(chunk, Chunk) and chunk.first == 0
    found = gathered(answering(host), SLOTS[:2], {}, unsaid(SLOTS[:2]), now_ms=1)
    encoded = answering(host).training.encoded(found.b, found.present)
    np.testing.assert_allclose(encoded, chunk.values[SLOTS[:2]], atol=1e-6)


def test_a_guest_whose_sweep_never_came_is_absent_even_if_it_answers() -> None:
    host = swept(made(), "guest-1", "guest-3")
    host.tell(tell(phase="collect", revision=2), now_ms=1)
    host.settle(now_ms=1)
    found = gathered(answering(host), SLOTS, {}, unsaid(SLOTS), now_ms=1)
    assert found.states[:, 1].tolist() == [ABSENT] * 3 and found.ages[:, 1].tolist() == [-1.0] * 3
    assert not found.present[0, :, 1].any()
    assert "guest-2" not in answering(host).guests


def test_a_guest_that_says_hello_with_new_weights_is_absent_until_it_has_its_old_ones_again() -> None:
    host = frozen()
    host.hello("guest-2", hello("guest-2", lineage=77, incarnation=200))
    assert "guest-2" not in answering(host).guests
    host.hello("guest-2", hello("guest-2", lineage=5, incarnation=300))
    assert answering(host).guests["guest-2"].encoder == ENCODER


def test_what_was_asked_for_is_kept_with_the_time_when_it_came() -> None:
    frozen_host = answering(frozen())
    keep(frozen_host, {"guest-1": fresh()}, NOW_MS)
    found = gathered(frozen_host, SLOTS, {}, unsaid(SLOTS), now_ms=NOW_MS + 30_000)
    assert found.states[:, 0].tolist() == [CACHED] * 3
    assert found.ages[1:, 0].tolist() == [30.0, 30.0] and found.ages[0, 0] > 1e6
    assert found.b[0, :, 0].tolist() == [2.0, 9.0, 9.0]
    newer = replace(fresh(slots=[3]), values=np.full((1, 4), 11.0, np.float32))
    keep(frozen_host, {"guest-1": newer}, NOW_MS + 31_000)
    assert gathered(frozen_host, SLOTS, {}, unsaid(SLOTS), now_ms=NOW_MS + 31_000).b[0, :, 0].tolist() == [
        2.0,
        11.0,
        9.0,
    ]


def test_before_the_owner_is_done_a_frozen_host_says_so_and_before_it_is_frozen_nothing() -> None:
    host = frozen()
    assert not answering(host).done
    host.tell(tell(phase="done", revision=3), now_ms=1)
    assert answering(host).done
    training = made()
    write(training, message())
    assert training.answering() is None


@pytest.mark.parametrize(
    "wrong",
    [
        fresh("guest-2"),
        fresh(run="1" * 32),
        fresh(encoder="d" * 64),
        fresh(slots=[3, 4]),
        fresh(values=np.ones((2, 5), np.float32)),
    ],
    ids=["guest", "run", "encoder", "slots", "width"],
)
def test_an_answer_that_is_not_this_guests_by_its_pinned_encoder_is_refused(wrong: Fresh) -> None:
    host = answering(frozen())
    check_fresh(host, "guest-1", SLOTS, fresh())
    with pytest.raises(BadMessage):
        check_fresh(host, "guest-1", SLOTS, wrong)


def test_more_slots_than_an_answer_holds_and_slots_beyond_the_plan_are_refused() -> None:
    assert rows_at_once(PLAN) == PART
    wide = replace(PLAN, w_h=4000)
    assert rows_at_once(wide) * 4 * 4000 < 512_000
    check_slots(PLAN, Ask(PLAN.run, 1, np.zeros(0, np.int32)))
    for slots in (np.array([64], np.int32), np.arange(PART + 1, dtype=np.int32)):
        with pytest.raises(BadMessage):
            check_slots(PLAN, predict(slots))


def test_passes_hide_guests_the_same_ones_at_every_host_and_never_all() -> None:
    plan = replace(PLAN, partial=2, guest_dropout=0.5)
    host = frozen(plan=plan)

    def present(number: int) -> np.ndarray:
        chunk = host.collect(Collect(PLAN.run, host.frozen, 0, number))
        assert isinstance(chunk, Chunk) and chunk.pass_number == number
        return chunk.present

    assert present(0).all()
    first, second = present(1), present(2)
    assert 0.3 < first.mean() < 0.9 and (first != second).any()
    assert first.any(1).all() and second.any(1).all()
    assert not isinstance(host.collect(Collect(PLAN.run, host.frozen, 0, 3)), Chunk)
