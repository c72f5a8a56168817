"""The owner's side of predictions: all hosts are asked at once, and the answer comes in time, whoever is there."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dvfl.errors import UserError
from dvfl.federation.owner.collected_rows import CollectedRows
from dvfl.federation.owner.owner_folder import Model, OwnerFolder, Saved
from dvfl.federation.party.lifecycle import say
from dvfl.federation.party.runtime import Here, Surroundings, worked
from dvfl.federation.party.tasks import end, within
from dvfl.federation.prediction.host_watch import HostWatch
from dvfl.federation.prediction.merge_predictions import check_answer, combined
from dvfl.federation.prediction.prediction_tables import framed, listed
from dvfl.federation.protocol.prediction_limits import HOSTS_SHARE, rows_at_once
from dvfl.federation.protocol.predictions import NotReady, Prediction
from dvfl.federation.protocol.wire import BadMessage, Predict, Predicted, Refused, decode, encode
from dvfl.federation.transport.journal import Journal
from dvfl.federation.transport.line import OwnerLine
from dvfl.federation.transport.nats import Connection, NatsOwnerLine
from dvfl.federation.transport.recorded_lines import recorded_owner_lines

DEADLINE_S, LONGEST_S = 2.0, 3600.0
_UNDER_WAY = 4  # requests at one host
_AT_ONCE = 4096  # ids of a long list that share a deadline
_REFRESH_S = 1.0
_CONNECT_SHARE = 0.5  # of the first deadline, at most, for making connections


class Source(Protocol):
    """What the owner knows by itself."""

    @property
    def guests(self) -> tuple[str, ...]: ...
    @property
    def hosts(self) -> tuple[str, ...]: ...
    @property
    def saved(self) -> Saved | None: ...
    @property
    def collected(self) -> Mapping[str, CollectedRows]: ...
    def refresh(self) -> None: ...
    def slot(self, one: str) -> int: ...
    def how_far(self) -> str: ...
    def status(self) -> dict[str, Any]: ...


class FederationPredictor:
    """Predicts by asking hosts; holds no lock, and signs nothing. `opened` makes one of the owner's folder."""

    def __init__(
        self, source: Source, name: str, lines: Mapping[str, OwnerLine], here: Surroundings, *, pad: int = 0
    ) -> None:
        self._source, self._name, self._lines, self._here, self._pad = source, name, lines, here, pad
        self._watch = HostWatch(lines, self._plan)

    @property
    def guests(self) -> tuple[str, ...]:
        return self._source.guests

    @property
    def hosts(self) -> tuple[str, ...]:
        return self._source.hosts

    @property
    def classes(self) -> tuple[str, ...] | None:
        """None for a regression, and before the head is trained."""
        saved = self._source.saved
        return None if saved is None or saved.model is None else saved.model.head.classes

    async def run(self) -> None:
        """Watches the hosts and the owner's folder until it is cancelled."""
        await asyncio.gather(self._watch.run(), self._refresh())

    async def predict(self, ids: Sequence[str], deadline_s: float) -> list[Prediction]:
        """One answer for each id, in order, within the deadline; NotReady before the head is trained."""
        until = asyncio.get_running_loop().time() + HOSTS_SHARE * deadline_s
        model = self.model()
        slots = np.array([self._source.slot(str(one)) for one in ids], np.int32)
        answers = self._vouched(model, slots)
        parts = self._parts(model, slots) if len(answers) < len(model.hosts) else []
        hosts = [host for host in model.hosts if host in self._lines and not self._watch.away(host)]
        hosts = [host for host in hosts if host not in answers]
        rooms = {host: asyncio.Semaphore(_UNDER_WAY) for host in hosts}
        asking = [self._ask(model, host, slots, until, rooms[host]) for host in hosts for slots in parts]
        for answer in await asyncio.gather(*asking):
            if answer is not None:
                answers.setdefault(answer.host, []).append(answer)
        return await worked(self._here, len(ids), partial(combined, model, ids, slots, answers))

    def status(self) -> dict[str, Any]:
        """The federation as the owner sees it."""
        saved, owner = self._source.saved, self._source.status()
        model = saved.model if saved else None
        told = ("state", "epoch", "epochs", "loss", "restarts", "bytes_sent", "bytes_received")
        return {
            "federation": self._name,
            "run": saved.signed.plan.run if saved else None,
            "phase": saved.signed.phase if saved else owner.get("state", "waiting"),
            "ready": model is not None,
            "accuracy": None if model is None or model.head.classes is None else model.score,
            "owner": {"up": owner["up"], **{name: owner.get(name) for name in told}},
            "hosts": self._watch.hosts(),
            "guests": {
                guest: self._watch.guest(guest, saved.signed.plan.guest_epochs if saved else None)
                for guest in self.guests
            },
            "time_s": self._here.now_ms() / 1000,
        }

    def model(self) -> Model:
        """What it predicts with; NotReady before there is any."""
        saved = self._source.saved
        if saved is None or saved.model is None:
            raise NotReady(self._source.how_far())
        return saved.model

    def _plan(self) -> str:
        saved = self._source.saved
        return "" if saved is None else saved.signed.text()

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_S)
            with suppress(UserError):  # as it was, until the folder is in order again
                await self._here.work(self._source.refresh)

    def _vouched(self, model: Model, slots: NDArray[np.int32]) -> dict[str, list[Predicted]]:
        """What hosts need not be asked for, since they say that they would answer what the owner has of them."""
        wanted, found = np.unique(slots[slots >= 0]), {}
        for host, rows in self._source.collected.items() if len(wanted) else ():
            age_s = self._watch.vouched_s(host, model.hosts.get(host, "")) if host in self._lines else None
            if age_s is not None and rows.frozen == model.hosts[host]:
                found[host] = [rows.answer(wanted, age_s)]
        return found

    def _parts(self, model: Model, slots: NDArray[np.int32]) -> list[NDArray[np.int32]]:
        """The slots to ask for, with as many others as hide them, sorted, in requests that hosts can answer."""
        wanted = np.unique(slots[slots >= 0])
        if self._pad and len(wanted):
            most = model.plan.all_slots
            padded = min(most, -(-len(wanted) // self._pad) * self._pad)
            draw = np.random.default_rng(secrets.randbits(128))
            others = np.setdiff1d(draw.choice(most, min(most, 2 * padded), replace=False), wanted)
            wanted = np.union1d(wanted, draw.permutation(others)[: padded - len(wanted)]).astype(np.int32)
        size = rows_at_once(model.plan)
        return [wanted[start : start + size] for start in range(0, len(wanted), size)]

    async def _ask(
        self, model: Model, host: str, slots: NDArray[np.int32], until: float, room: asyncio.Semaphore
    ) -> Predicted | None:
        """What a host answers in time to one part, where only so many are under way at once."""
        async with room:
            left_s = until - asyncio.get_running_loop().time()
            if left_s <= 0:
                return None
            asked = Predict(model.plan.run, model.hosts[host], round(1000 * left_s), slots)
            reply = await within(left_s, self._lines[host].predict(encode(asked), left_s))
        if reply is None:
            return None
        try:
            answer = decode(reply, Predicted, Refused)
            self._watch.heard(host)
            if isinstance(answer, Refused):
                return None
            check_answer(model, host, asked, answer)
        except BadMessage:
            return None
        return answer


@asynccontextmanager
async def opened(folder: Path, *, pad: int = 0) -> AsyncIterator[FederationPredictor]:
    """A predictor on the owner's folder, with connections of its own, which are made again whenever they are lost."""
    source = await asyncio.to_thread(OwnerFolder, folder)
    federation = source.federation.name
    connections = {host: Connection(folder, host, federation, at) for host, at in source.party.hosts.items()}
    bare = {host: NatsOwnerLine(connection) for host, connection in connections.items()}
    journal = Journal(folder, say) if source.party.record else None
    lines = recorded_owner_lines(bare, journal)
    predictor = FederationPredictor(source, federation, lines, Here(), pad=pad)
    works = [predictor.run(), *(connection.keep() for connection in connections.values())]
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield predictor
    finally:
        await end(tasks)
        if journal is not None:
            journal.close()


async def predict_all(
    folder: Path, ids: Sequence[str], *, deadline_s: float = DEADLINE_S, pad: int = 0
) -> tuple[list[Prediction], FederationPredictor]:
    """Predicts a list of any length, in parts that have the deadline each; UserError before the head is trained."""
    if not 0 < deadline_s <= LONGEST_S:
        raise UserError(f"a deadline of {deadline_s:g} s; more than 0 and at most {LONGEST_S:g} s is right")
    found: list[Prediction] = []
    async with opened(folder, pad=pad) as predictor:
        try:
            predictor.model()
        except NotReady as error:
            raise UserError(f"{folder}: {error}") from None
        loop = asyncio.get_running_loop()
        began, last = loop.time(), loop.time() + _CONNECT_SHARE * deadline_s
        while not all(host["up"] for host in predictor.status()["hosts"].values()) and loop.time() < last:
            await asyncio.sleep(0.01)
        left_s = deadline_s - (loop.time() - began)
        for start in range(0, len(ids), _AT_ONCE):
            found += await predictor.predict(ids[start : start + _AT_ONCE], left_s)
            left_s = deadline_s
    return found, predictor


def predict(folder: Path | str, ids: Sequence[Any], *, deadline_s: float = DEADLINE_S, pad: int = 0) -> pd.DataFrame:
    """Predictions for ids, from the owner's folder of a federation that runs: one row each, in order."""
    asked = partial(predict_all, deadline_s=deadline_s, pad=pad)
    found, predictor = asyncio.run(asked(Path(folder), listed(ids)))
    return framed(found, predictor.guests, predictor.classes)
