"""How long a run has still to go, and when a line says so."""

from types import SimpleNamespace
from typing import Any

import pytest

from dvfl.show import progress
from dvfl.show.progress import Lines, Pace


class Clock:
    """Time that passes only when told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


def simulation(guests: int, owner: int, of_guests: int = 100, of_owner: int = 100) -> Any:
    """The part of a simulation that a display looks at, without hosts."""
    return SimpleNamespace(
        epochs_left={"guests and hosts": of_guests - guests, "hosts, replay": 0, "owner": of_owner - owner},
        done=guests + owner,
        epochs=of_guests + of_owner,
        finished=guests == of_guests and owner == of_owner,
    )


def test_the_time_left_follows_each_phases_own_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    pace = Pace()
    for phase, seconds in (("guests and hosts", 2.0), ("guests and hosts", 2.0), ("owner", 0.5), ("owner", 0.5)):
        clock.now += seconds
        pace.note(phase)
    assert pace.left(simulation(98, 2)) == pytest.approx(2 * 2.0 + 98 * 0.5)


def test_the_first_epoch_of_a_phase_does_not_count_once_there_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    pace = Pace()
    for seconds in (60.0, 1.0, 1.0):
        clock.now += seconds
        pace.note("owner")
    assert pace.seconds("owner") == pytest.approx(1.0)


def test_a_fast_run_says_little(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock(monkeypatch)
    lines = Lines(simulation(0, 0))
    for epoch in range(1, 101):
        clock.now += 0.001
        lines.on_epoch_end(simulation(epoch, 0), "guests and hosts", epoch, {})
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_slow_run_is_heard_of_every_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock(monkeypatch)
    lines = Lines(simulation(0, 0))
    for epoch in range(1, 5):
        clock.now += 90
        lines.on_epoch_end(simulation(epoch, 0), "guests and hosts", epoch, {})
    assert len(capsys.readouterr().err.splitlines()) == 4
