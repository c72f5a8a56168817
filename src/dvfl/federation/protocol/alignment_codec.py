"""What is inside the sealed messages of alignment: the owner's task, and the guest's answer."""

import struct
from dataclasses import dataclass
from enum import IntEnum

from dvfl.align.tasks import MOST_BYTES, Task
from dvfl.federation.protocol.wire_types import BadMessage

_HEAD = struct.Struct("<32sIQB")  # session, round, number, length of the kind
_LONGEST_KIND = 32


class Outcome(IntEnum):
    """What became of a task."""

    DONE = 0
    WAIT = 1  # it is being done: ask again
    REFUSED = 2  # it cannot be done, and why


@dataclass(frozen=True)
class Answer:
    """A guest's answer to one task."""

    outcome: Outcome
    content: bytes = b""


def task_bytes(task: Task) -> bytes:
    """A task as it is sealed."""
    kind = task.kind.encode("ascii")
    return _HEAD.pack(task.session, task.round, task.number, len(kind)) + kind + task.content


def read_task(content: bytes) -> Task:
    """BadMessage for what is no task."""
    if not _HEAD.size < len(content) <= _HEAD.size + _LONGEST_KIND + MOST_BYTES:
        raise BadMessage("not of the size of a task")
    session, round_, number, length = _HEAD.unpack_from(content)
    kind, rest = content[_HEAD.size : _HEAD.size + length], content[_HEAD.size + length :]
    if not 0 < length <= _LONGEST_KIND or len(kind) < length or not kind.isalpha():
        raise BadMessage("not a kind of task")
    return Task(session, round_, kind.decode("ascii"), number, rest)


def answer_bytes(answer: Answer) -> bytes:
    """An answer as it is sealed."""
    return bytes([answer.outcome]) + answer.content


def read_answer(content: bytes) -> Answer:
    """BadMessage for what is no answer."""
    if not 0 < len(content) <= 1 + MOST_BYTES or content[0] not in set(Outcome):
        raise BadMessage("not an answer to a task")
    return Answer(Outcome(content[0]), content[1:])
