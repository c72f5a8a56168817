"""What parties say to each other, as values; the annotation of each field is the rule it keeps on the wire."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from dvfl.federation.protocol.wire_types import (
    Age,
    Ages,
    BadMessage,
    Count,
    Document,
    Flag,
    Floats,
    Loss,
    Marks,
    Name,
    Octets,
    Seconds,
    Slots,
    SomeFloats,
    SomeSlots,
    States,
    Text,
    believed,
    by_name,
    optional,
    record,
)

Role = Literal["guest", "host", "owner"]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Which part of a guest's final sweep, and by which encoder."""

    part: Count  # from 0
    parts: Count
    encoder: Text  # the hash of the guest's frozen weights
    origin: Text  # which weights and tables it is made from


def _sweep(value: Any, where: str) -> Sweep:
    sweep = Sweep(**believed(Sweep, value, where))
    if not sweep.part < sweep.parts:
        raise BadMessage(f"{where} has no such part")
    return sweep


@dataclass(frozen=True, slots=True, eq=False)
class Encodings:
    """Guest to host: the encodings of some rows."""

    run: Text
    guest: Name
    lineage: Count
    incarnation: Count
    epoch: Count
    iteration: Count
    sweep: Annotated[Sweep | None, optional(_sweep)]
    slots: Slots  # (rows,)
    values: Floats  # (rows, width)


@dataclass(frozen=True, slots=True)
class Hello:
    """Guest to host: who and where it is."""

    run: Text  # empty before the guest knows the plan
    guest: Name
    lineage: Count
    incarnation: Count
    epoch: Count  # of the last message it pushed, 0 before
    iteration: Count
    state: Text
    revision: Count  # of the plan it knows, 0 for none
    restarts: Count
    resumed_from_epoch: Count
    messages_sent: Count
    messages_received: Count
    messages_dropped: Count
    loss: Loss
    longest_wait_s: Seconds


@dataclass(frozen=True, slots=True)
class Welcome:
    """Host to guest: the answer to Hello."""

    host: Name
    lineage: Count  # the accepted one
    incarnation: Count  # the accepted one
    epoch: Count  # of the last position the host holds
    iteration: Count
    refill: Flag
    fenced: Flag
    swept: Flag  # the host has the guest's whole sweep
    frozen: Flag
    plan: Document  # signed, empty for none


@dataclass(frozen=True, slots=True)
class Tell:
    """Owner to host: the plan as it is now."""

    plan: Document


@dataclass(frozen=True, slots=True)
class GuestSeen:
    """A guest as a host sees it."""

    state: Text
    epoch: Count
    iteration: Count
    held: Count  # slots
    age_s: Age  # of the newest encodings
    sweep: Text  # the encoder's hash once the whole sweep is there, else empty
    loss: Loss
    restarts: Count
    resumed_from_epoch: Count
    messages_sent: Count
    messages_received: Count
    messages_dropped: Count
    longest_wait_s: Seconds
    up: Flag = False  # it answered the host's last question, whatever that was
    bytes_sent: Count = 0
    bytes_received: Count = 0


@dataclass(frozen=True, slots=True)
class Status:
    """Host to owner: the answer to Tell."""

    host: Name
    run: Text
    revision: Count
    state: Text
    steps: Count
    budget: Count
    earned: Count
    loss: Loss
    frozen: Text  # the host's hash, empty before
    chunks: Count
    restarts: Count
    resumed_from_step: Count
    messages_received: Count
    messages_applied: Count
    messages_superseded: Count
    messages_dropped: Count
    longest_wait_s: Seconds
    guests: Annotated[dict[str, GuestSeen], by_name(record(GuestSeen))]
    bytes_sent: Count = 0  # of this process, to its broker
    bytes_received: Count = 0
    vouched_s: Age = -1.0  # since when all guests last said that nothing has changed since it froze; -1: one has not


@dataclass(frozen=True, slots=True)
class Collect:
    """Owner to host: a wish for one chunk of a frozen host's encodings."""

    run: Text
    frozen: Text  # the host's hash
    chunk: Count
    pass_number: Count = 0  # 0: all guests are seen; the later ones hide some, others in each


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Host to owner: the host's encodings of consecutive slots."""

    host: Name
    run: Text
    frozen: Text
    chunk: Count
    first: Count  # slot
    values: Floats  # (rows, width)
    present: Marks  # (rows, guests): whom each row rests on
    pass_number: Count = 0


@dataclass(frozen=True, slots=True, eq=False)
class Predict:
    """Owner to host: what does it make of some rows as they are now?"""

    run: Text
    frozen: Text  # the host's hash
    left_ms: Count  # for the answer
    slots: Slots


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """Host to owner: its encodings of these rows, and what they rest on."""

    host: Name
    run: Text
    frozen: Text
    slots: Slots
    values: Floats  # (rows, width)
    states: States  # (rows, guests): absent, cached, fresh or suspected
    ages: Ages  # (rows, guests): seconds, -1 for a guest that is absent


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """Host to guest: how does it encode these rows now? Of no rows: is it there?"""

    run: Text
    left_ms: Count  # for the answer
    slots: SomeSlots


@dataclass(frozen=True, slots=True, eq=False)
class Fresh:
    """Guest to host: those of them that it has, by the encoder of that hash."""

    guest: Name
    run: Text
    encoder: Text
    origin: Text  # which weights and tables they are made from
    slots: SomeSlots
    values: SomeFloats  # (rows, width)


@dataclass(frozen=True, slots=True)
class Here:
    """Guest to host: the answer to Ask of no rows."""

    guest: Name
    run: Text  # empty before the guest knows the plan
    origin: Text  # which weights and tables it encodes with now; empty before it is trained
    state: Text
    loss: Loss
    bytes_sent: Count  # of this process, to all hosts
    bytes_received: Count


@dataclass(frozen=True, slots=True)
class Introduce:
    """Owner to guest, by any host: who asks, and the key for what it seals (`sealing`)."""

    session: Text
    key: Text  # 32 bytes in hexadecimal
    certificate: Document  # DER in base64
    signature: Text  # in hexadecimal


@dataclass(frozen=True, slots=True)
class Introduced:
    """Guest to owner: the same of itself."""

    session: Text
    key: Text
    certificate: Document
    signature: Text


@dataclass(frozen=True, slots=True, eq=False)
class Letter:
    """Owner to guest: a sealed question of alignment."""

    session: Text
    content: Octets


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """Guest to owner: its sealed answer."""

    session: Text
    content: Octets


@dataclass(frozen=True, slots=True)
class Refused:
    """No, and why: from a host to anyone, from a guest to the owner or a host."""

    reason: Text


Message = (
    Encodings
    | Hello
    | Welcome
    | Tell
    | Status
    | Collect
    | Chunk
    | Predict
    | Predicted
    | Ask
    | Fresh
    | Here
    | Introduce
    | Introduced
    | Letter
    | Reply
    | Refused
)

# To whom each kind goes. Refused alone may go to anyone, and has no arrays. What goes to a guest has none of floats.
TO: dict[type, Role] = {
    Encodings: "host",
    Hello: "host",
    Welcome: "guest",
    Tell: "host",
    Status: "owner",
    Collect: "host",
    Chunk: "owner",
    Predict: "host",
    Predicted: "owner",
    Ask: "guest",
    Fresh: "host",
    Here: "host",
    Introduce: "guest",
    Introduced: "owner",
    Letter: "guest",
    Reply: "owner",
}
