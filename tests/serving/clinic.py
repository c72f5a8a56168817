"""A federation of clinics small enough to know every answer by heart, and a server around it."""

import asyncio
import hashlib
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn

from dvfl.federation.protocol.predictions import GuestPart, NotReady, Prediction
from dvfl.serving.app import create_app
from dvfl.serving.guarding import Rules


class Clinic:
    """Knows the ids 0 .. 9999; an id's class follows from it, and tests say who is down."""

    guests = ("registry", "laboratory", "imaging", "pharmacy")
    hosts = ("north", "south")
    classes: tuple[str, ...] | None = ("healthy", "mild", "severe")

    def __init__(self) -> None:
        self.down: set[str] = set()
        self.suspected: set[str] = set()
        self.ready = True
        self.seconds = 0.0  # that a prediction takes
        self.broken = False
        self.value = 0.0  # of every id, where there are no classes
        self.epoch = 12
        self.began = time.time()

    async def predict(self, ids: Sequence[str], deadline_s: float) -> list[Prediction]:
        if self.broken:
            raise RuntimeError(f"a defect with an id in it: {ids[0]}")
        if not self.ready:
            raise NotReady("training has not finished: guests are at epoch 3 of 20")
        await asyncio.sleep(self.seconds)
        return [self._answer(one) for one in ids]

    def _answer(self, one: str) -> Prediction:
        if not (one.isascii() and one.isdigit() and int(one) < 10_000):
            return Prediction(one, known=False)
        parts = {guest: self._part(guest) for guest in self.guests}
        hosts = {host: host not in self.down for host in self.hosts}
        degraded = bool(self.down or self.suspected)
        if not any(hosts.values()) or all(part.state == "absent" for part in parts.values()):
            return Prediction(one, known=True, guests=parts, hosts=hosts)
        if self.classes is None:
            return Prediction(one, True, None, self.value, degraded=degraded, guests=parts, hosts=hosts)
        weights = [1 + byte for byte in hashlib.sha256(one.encode()).digest()[:3]]
        probabilities = {name: weight / sum(weights) for name, weight in zip(self.classes, weights, strict=True)}
        label = max(probabilities, key=lambda name: probabilities[name])
        return Prediction(one, True, label, None, probabilities, probabilities[label], degraded, parts, hosts)

    def _part(self, guest: str) -> GuestPart:
        if guest in self.suspected:
            return GuestPart("absent", suspected=True)
        if guest not in self.down:
            return GuestPart("fresh", 0.0)
        return GuestPart("cached", 95.0) if guest == "laboratory" else GuestPart("absent")

    def status(self) -> dict[str, Any]:
        loss = 0.9**self.epoch
        registers = lambda guest: {  # noqa: E731
            host: {"age_s": 240.0 if guest in self.down else 1.5, "held": True} for host in self.hosts
        }
        return {
            "federation": "clinics",
            "run": "3f9a",
            "phase": "done" if self.ready else "training",
            "ready": self.ready,
            "accuracy": 97.4 if self.ready else None,
            "owner": {
                "up": "owner" not in self.down,
                "state": "done" if self.ready else "waiting",
                "epoch": self.epoch,
                "epochs": 60,
                "loss": 0.5 * loss,
                "restarts": 0,
                "bytes_sent": 120_000 + self.epoch,
                "bytes_received": 48_200_000,
            },
            "hosts": {
                host: {
                    "up": host not in self.down,
                    "state": "done" if self.ready else "training",
                    "steps": 40 * self.epoch,
                    "budget": 2400,
                    "loss": loss + 0.05 * number,
                    "restarts": number,
                    "age_s": 0.4,
                }
                for number, host in enumerate(self.hosts)
            },
            "guests": {
                guest: {
                    "up": guest not in self.down,
                    "state": "done" if self.ready else "training",
                    "epoch": self.epoch,
                    "loss": loss * (1 + 0.2 * number),
                    "restarts": 0,
                    "hosts": registers(guest),
                }
                for number, guest in enumerate(self.guests)
            },
            "time_s": time.time(),
        }


@contextmanager
def running(clinic: Clinic, rules: Rules | None = None, log: list[dict[str, Any]] | None = None) -> Iterator[str]:
    """A real server on a free port of this machine; its address."""
    entries: list[dict[str, Any]] = [] if log is None else log
    app = create_app(clinic, rules, log=entries.append, leaving=lambda: server.should_exit)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + 10
        while not server.started:
            assert time.monotonic() < until, "the server did not start"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
