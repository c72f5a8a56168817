"""The owner while it aligns: asks guests by way of any host that is up, and does its own part beside."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial

import numpy as np

from dvfl.align.tasks import Owner, Task
from dvfl.errors import RunFailed
from dvfl.federation.keys.sealing import Approach, Identity, Seal
from dvfl.federation.party.runtime import Surroundings
from dvfl.federation.party.tasks import end
from dvfl.federation.protocol.alignment_codec import Answer, Outcome, read_answer, task_bytes
from dvfl.federation.protocol.wire import BadMessage, Introduced, Letter, Refused, Reply, decode, encode
from dvfl.federation.transport.line import OwnerLine

_UNDER_WAY = 3  # tasks of one guest: while it computes one, the next is on its way
_AGAIN_S = 0.2  # before a guest that did not answer is asked by another host
_LOOK_S = 0.5
_TELL_S = 15.0  # of a guest's silence, after which it is worth a line in the log


class Silent(Exception):
    """Guests that did not say a word within the deadline."""

    def __init__(self, guests: list[str]) -> None:
        super().__init__(", ".join(guests))
        self.guests = guests


class AlignmentService:
    """Drives one alignment to its end, through restarts of guests, hosts and brokers."""

    def __init__(
        self,
        owner: Owner,
        own: Identity,
        lines: Mapping[str, OwnerLine],
        here: Surroundings,
        *,
        deadline_s: float,  # of a guest's silence
        drop: Callable[[str, object], None],
        log: Callable[[str], None],
    ) -> None:
        self.owner, self._own, self._lines, self._here = owner, own, lines, here
        self._deadline_s, self._drop, self._log = deadline_s, drop, log
        self._guests = [party for party in owner.parties if party != own.party]
        self._heard = dict.fromkeys(self._guests, 0.0)  # when each last said something, or was first asked
        self._told: set[str] = set()  # whose silence was remarked on
        self._asking: Counter[str] = Counter()  # tasks under way
        self._seals: dict[str, tuple[str, Seal]] = {}
        self._introducing = {guest: asyncio.Lock() for guest in self._guests}
        self._lock = asyncio.Lock()  # one takes or gives at a time
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Ends when all guests have their slots; raises Silent where some do not answer."""
        works = [self._ask(guest) for guest in self._guests for _ in range(_UNDER_WAY)]
        tasks = [asyncio.create_task(work) for work in (*works, self._own_part(), self._watch())]
        try:
            while not self.owner.finished:
                done, _ = await asyncio.wait(tasks, timeout=_LOOK_S, return_when=asyncio.FIRST_EXCEPTION)
                for task in done:
                    task.result()
        finally:
            await end(tasks)

    async def _next(self, party: str) -> Task | None:
        """A party's next task; None when all is over."""
        while not self.owner.finished:
            self._news.clear()
            async with self._lock:
                task = self.owner.wanted(party)
            if task is not None:
                return task
            try:
                await asyncio.wait_for(self._news.wait(), _LOOK_S)
            except TimeoutError:
                continue
        return None

    async def _took(self, party: str, task: Task, answer: bytes) -> None:
        async with self._lock:
            await self._here.work(partial(self.owner.took, party, task, answer))
        self._news.set()

    async def _own_part(self) -> None:
        while (task := await self._next(self._own.party)) is not None:
            await self._took(self._own.party, task, await self._here.work(partial(self.owner.answer, task)))

    async def _ask(self, guest: str) -> None:
        while (task := await self._next(guest)) is not None:
            await self._took(guest, task, await self._answered(guest, task))

    async def _answered(self, guest: str, task: Task) -> bytes:
        """Asks until there is an answer, by one host after the other."""
        content = task_bytes(task)
        if not self._asking[guest]:
            self._heard[guest] = self._here.awake_s()
        self._asking[guest] += 1
        while True:
            for host in self._lines:
                answer = await self._asked(guest, host, content)
                if answer is None or answer.outcome is Outcome.WAIT:
                    continue
                self._asking[guest] -= 1
                if answer.outcome is Outcome.DONE:
                    return answer.content
                reason = answer.content.decode(errors="replace")
                raise RunFailed(f"{guest} cannot do what alignment asks of it: {reason}; one version for all is right")
            await asyncio.sleep(_AGAIN_S)

    async def _asked(self, guest: str, host: str, content: bytes) -> Answer | None:
        known = await self._met(guest, host)
        if known is None:
            return None
        session, seal = known
        letter = encode(Letter(session, np.frombuffer(seal.close(content), np.uint8)))
        reply = await self._lines[host].letter(guest, letter)
        if reply is None:
            return None
        try:
            message = decode(reply, Reply, Refused)
            if isinstance(message, Refused):  # started again, and knows nobody; or a host that makes it up
                self._forget(guest, session)
                return None
            answer = read_answer(seal.open(message.content.tobytes()))
        except BadMessage as error:
            self._drop(guest, error)
            return None
        self._heard[guest] = self._here.awake_s()
        return answer

    async def _met(self, guest: str, host: str) -> tuple[str, Seal] | None:
        """The seal that both have, after an introduction where there is none."""
        async with self._introducing[guest]:
            if guest in self._seals:
                return self._seals[guest]
            session = secrets.token_hex(16)
            approach = Approach(self._own, guest, session)
            reply = await self._lines[host].letter(guest, encode(approach.introduce()))
            if reply is None:
                return None
            try:
                message = decode(reply, Introduced, Refused)
                if isinstance(message, Refused):
                    raise BadMessage(f"refused, {message.reason}")
                self._seals[guest] = session, approach.introduced(message, datetime.now(UTC))
            except BadMessage as error:
                self._drop(guest, error)
                return None
            self._heard[guest] = self._here.awake_s()
            return self._seals[guest]

    def _forget(self, guest: str, session: str) -> None:
        if guest in self._seals and self._seals[guest][0] == session:
            del self._seals[guest]

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            now = self._here.awake_s()
            since = {guest: now - self._heard[guest] if self._asking[guest] else 0.0 for guest in self._guests}
            silent = [guest for guest, seconds in since.items() if seconds > self._deadline_s]
            if silent:
                raise Silent(silent)
            quiet = {guest for guest, seconds in since.items() if seconds > _TELL_S}
            if news := sorted(quiet - self._told):
                self._log(f"alignment waits for {', '.join(news)}")
            self._told = quiet
