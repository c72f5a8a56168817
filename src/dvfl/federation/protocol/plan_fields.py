"""What the parties of a run agree on: the fields of its plan, and what each of them may be."""

import hashlib
import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NoReturn, TypeVar, get_args

from dvfl.errors import UserError
from dvfl.federation.protocol.wire_types import MAX_GUESTS, MAX_LENGTH, MAX_PLAN, check_name
from dvfl.parties.host import HostModel
from dvfl.parties.networks.sizes import Sizes, sizes
from dvfl.parties.numerics.learner import Adam, Rule, Sgd
from dvfl.parties.numerics.schedules import Schedule
from dvfl.parties.objectives.contrastive import LEAST_TEMPERATURE
from dvfl.parties.objectives.objective import ObjectiveName
from dvfl.parties.objectives.warps import Strip


@dataclass(frozen=True)
class PlannedGuest:
    """What everyone knows of a guest."""

    name: str
    columns: int
    unit: bool  # all its values lie between 0 and 1
    strip: Strip | None = None  # of which picture's pixels, where a row is a strip of one


@dataclass(frozen=True)
class Plan:
    """All that the parties of a run agree on. It never changes; UserError names a field that cannot be so."""

    run: str  # 32 hexadecimal digits
    federation: str  # SHA-256 of the federation file
    seed: int
    guests: tuple[PlannedGuest, ...]
    hosts: tuple[str, ...]
    rule: str  # of dvfl.parties.networks.sizes
    w_g: int | None
    w_h: int | None
    guest_hidden: int | None  # width of each guest's hidden layer; None: the rule's
    guest_objective: ObjectiveName
    host_model: HostModel  # concatenate: hosts learn nothing and pass on what they hold
    host_objective: ObjectiveName
    temperature: float  # of SimCLR
    adversary: float  # weight of a decoder that each guest learns against beside SimCLR
    batch: int
    guest_epochs: int
    period: int  # K: guests push in epochs e, counted from 1, with e % K == 0
    host_epochs: int
    guest_rule: Rule
    host_rule: Rule
    guest_schedule: Schedule
    host_schedule: Schedule
    guest_noise: float
    guest_dropout: float
    partial: int  # times more that hosts encode every slot, each time with other guests hidden
    rows: int  # training rows of the guest that has most: a host's epoch is as long as that guest's
    slots: int  # of training rows, from 0
    encode_slots: int  # further ones that are only ever encoded, numbered from `slots`
    quorum_hosts: int
    quorum_guests: int
    stall_s: float
    sweep_deadline_s: float
    phase1_deadline_s: float

    def __post_init__(self) -> None:
        _check_parties(self)
        _check_training(self)
        _check_reach(self)

    @cached_property
    def sizes(self) -> Sizes:
        """The widths of all networks."""
        return sizes(self.rule, [guest.columns for guest in self.guests], self.w_g, self.w_h, self.guest_hidden)

    @property
    def host_iterations(self) -> int:
        """Steps of a host's epoch."""
        return -(-self.rows // self.batch)

    @property
    def host_steps(self) -> int:
        """A host's budget."""
        return self.host_epochs * self.host_iterations if self.host_model == "autoencoder" else 0

    @property
    def host_width(self) -> int:
        """Of a host's encodings."""
        return self.sizes.host_latent if self.host_model == "autoencoder" else sum(self.sizes.guest_latent)

    @property
    def all_slots(self) -> int:
        """Trained on or only encoded."""
        return self.slots + self.encode_slots

    def other_file(self, own: str) -> str:
        """What to say to a party whose federation.toml, of this hash, is not the one the plan was made from."""
        if own == self.federation:
            return ""
        return (
            f"federation.toml here ({own[:12]}) is not the one that the plan was made from ({self.federation[:12]});"
            " the plan is followed, get the newest file from the owner"
        )

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the plan as canonical JSON, in hexadecimal."""
        return hashlib.sha256(canonical(self.to_dict())).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        plain["guests"] = [_plain_guest(guest) for guest in self.guests]
        plain["hosts"] = list(self.hosts)
        for name in ("guest_rule", "host_rule"):
            numbers = {key: float(value) for key, value in vars(plain[name]).items()}
            plain[name] = {"name": type(plain[name]).__name__.lower(), **numbers}
        for name in _NUMBERS:
            plain[name] = float(plain[name])  # 30 and 30.0 seconds are one plan, so they have one hash
        return plain

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> "Plan":
        """Takes back what `to_dict` gave; UserError for anything else."""
        values = dict(plain)
        for name in ("guests", "hosts"):
            if not isinstance(values.get(name), list):
                _wrong(name, values.get(name), "a list")
            values[name] = tuple(values[name])
        values["guests"] = tuple(_built(PlannedGuest, _with_strip(guest), "guests") for guest in values["guests"])
        for name in ("guest_rule", "host_rule"):
            values[name] = _rule(values.get(name), name)
        return _built(Plan, values, "all of it")


def canonical(value: Any) -> bytes:
    """JSON in the one form that is hashed and signed: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


_RULES: dict[str, type[Rule]] = {"adam": Adam, "sgd": Sgd}
Kind = TypeVar("Kind")


def _rule(plain: Any, name: str) -> Rule:
    if not isinstance(plain, Mapping) or plain.get("name") not in list(_RULES):  # a list: what came may not be hashable
        _wrong(name, plain, f"an object whose name is {' or '.join(_RULES)}")
    return _built(_RULES[plain["name"]], {key: value for key, value in plain.items() if key != "name"}, name)


def _built(kind: type[Kind], plain: Any, where: str) -> Kind:
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    if not isinstance(plain, Mapping) or plain.keys() != set(names):
        _wrong(where, plain, f"an object with exactly the fields {', '.join(names)}")
    return kind(**plain)


# What each field may be.

_MOST = 2**31 - 1  # slots are 32-bit numbers on the wire
_WHOLE = {  # least and most
    "seed": (0, 2**63 - 1),
    "batch": (1, _MOST),
    "guest_epochs": (1, _MOST),
    "period": (1, _MOST),
    "host_epochs": (1, _MOST),
    "rows": (1, _MOST),
    "slots": (1, _MOST),
    "encode_slots": (0, _MOST),
    "partial": (0, 16),
    "quorum_hosts": (1, _MOST),
    "quorum_guests": (1, _MOST),
}
_Range = tuple[Callable[[float], bool], str]
_PART: _Range = (lambda value: 0 <= value < 1, "a number from 0 to below 1")
_POSITIVE: _Range = (lambda value: value > 0, "a positive number")
_NOT_NEGATIVE: _Range = (lambda value: value >= 0, "a number from 0")
_NUMBERS: dict[str, _Range] = {
    "temperature": (lambda value: value >= LEAST_TEMPERATURE, f"a number from {LEAST_TEMPERATURE}"),
    "adversary": _NOT_NEGATIVE,
    "guest_noise": _PART,
    "guest_dropout": _PART,
    "stall_s": _POSITIVE,
    "sweep_deadline_s": _POSITIVE,
    "phase1_deadline_s": _POSITIVE,
}
_RULE_NUMBERS = {
    "rate": _POSITIVE,
    "weight_decay": _NOT_NEGATIVE,
    "momentum": _PART,
    "beta1": _PART,
    "beta2": _PART,
    "eps": _POSITIVE,
}


def _check_parties(plan: Plan) -> None:
    for name in ("guests", "hosts"):
        if not isinstance(getattr(plan, name), tuple) or not 1 <= len(getattr(plan, name)) <= MAX_GUESTS:
            _wrong(name, getattr(plan, name), f"1 to {MAX_GUESTS} of them")
    for guest in plan.guests:
        if not isinstance(guest, PlannedGuest) or not isinstance(guest.unit, bool):
            _wrong("guests", guest, "a name, a number of columns, and whether they are of unit range")
        _check_whole(f"columns of {guest.name!r:.80}", guest.columns, 1, _MOST)
        _check_strip(guest)
    names: set[str] = set()
    for name in [*(guest.name for guest in plan.guests), *plan.hosts]:
        if not isinstance(name, str):
            _wrong("guests and hosts", name, "a name")
        check_name(name)
        if name in names:
            _wrong("guests and hosts", name, "a name that no other party has")
        names.add(name)


def _check_strip(guest: PlannedGuest) -> None:
    strip = guest.strip
    if strip is None:
        return
    if not isinstance(strip, Strip):
        _wrong(f"strip of {guest.name!r:.80}", strip, "height, width, top and whole height of a picture")
    for name, value in strip._asdict().items():
        _check_whole(f"strip of {guest.name!r:.80}, {name}", value, int(name != "top"), _MOST)
    if strip.height * strip.width != guest.columns or strip.top + strip.height > strip.whole:
        _wrong(f"strip of {guest.name!r:.80}", tuple(strip), f"one of {guest.columns} pixels inside its picture")


def _plain_guest(guest: PlannedGuest) -> dict[str, Any]:
    """Without a strip where there is none: a plan may have a thousand guests, and has to fit into a message."""
    plain = dict(vars(guest))
    strip = plain.pop("strip")
    return plain if strip is None else {**plain, "strip": list(strip)}


def _with_strip(guest: Any) -> Any:
    """What `_plain_guest` gave, the strip as a value."""
    if not isinstance(guest, Mapping):
        return guest
    if "strip" not in guest:
        return {**guest, "strip": None}
    strip = guest["strip"]
    return {**guest, "strip": Strip(*strip)} if isinstance(strip, list) and len(strip) == 4 else guest


def _check_training(plan: Plan) -> None:
    for name, digits in (("run", 32), ("federation", 64)):
        if not isinstance(getattr(plan, name), str) or not re.fullmatch(f"[0-9a-f]{{{digits}}}", getattr(plan, name)):
            _wrong(name, getattr(plan, name), f"{digits} hexadecimal digits")
    for name, (least, most) in _WHOLE.items():
        _check_whole(name, getattr(plan, name), least, most)
    for name in ("w_g", "w_h", "guest_hidden"):
        if getattr(plan, name) is not None:
            _check_whole(name, getattr(plan, name), 1, _MOST)
    for name, allowed in _NUMBERS.items():
        _check_number(name, getattr(plan, name), allowed)
    for name in ("guest_rule", "host_rule"):
        if not isinstance(getattr(plan, name), Rule):
            _wrong(name, getattr(plan, name), "Adam or Sgd")
        for key, value in vars(getattr(plan, name)).items():
            _check_number(f"{name}.{key}", value, _RULE_NUMBERS[key])
    for kind, names in (
        (Schedule, ("guest_schedule", "host_schedule")),
        (ObjectiveName, ("guest_objective", "host_objective")),
        (HostModel, ("host_model",)),
    ):
        for name in names:
            if getattr(plan, name) not in get_args(kind):
                _wrong(name, getattr(plan, name), " or ".join(get_args(kind)))
    if not isinstance(plan.rule, str) or not plan.rule.isidentifier():  # `sizes` knows which there are
        _wrong("rule", plan.rule, "the name of a sizing rule")


def _check_reach(plan: Plan) -> None:
    """What no field can break alone."""
    for name, party in (("quorum_hosts", "hosts"), ("quorum_guests", "guests")):
        if getattr(plan, name) > len(getattr(plan, party)):
            there = len(getattr(plan, party))
            _wrong(
                name,
                getattr(plan, name),
                f"the plan has {there} {party}, so this quorum cannot be met; at most {there}",
            )
    if plan.period > plan.guest_epochs:
        _wrong("period", plan.period, f"at most guest_epochs ({plan.guest_epochs})")
    if "simclr" in (plan.guest_objective, plan.host_objective) and plan.batch < 2:
        _wrong("batch", plan.batch, "with SimCLR, which tells rows of a batch from each other, 2 at least")
    if plan.host_model == "concatenate" and plan.host_objective != "reconstruction":
        _wrong(
            "host_objective", plan.host_objective, "with hosts that concatenate, which learn nothing, reconstruction"
        )
    if plan.partial and not plan.guest_dropout:
        _wrong("partial", plan.partial, "with guest_dropout = 0, which hides nobody, 0")
    if plan.partial and plan.host_model == "concatenate":
        _wrong("partial", plan.partial, "with hosts that concatenate, whose owner hides guests itself, 0")
    if plan.guest_objective == "simclr" and plan.guest_noise:
        _wrong("guest_noise", plan.guest_noise, "with SimCLR, whose guests reconstruct no values, 0")
    if plan.adversary and plan.guest_objective != "simclr":
        _wrong("adversary", plan.adversary, f"with {plan.guest_objective}, whose guests learn to be decoded, 0")
    if plan.all_slots > _MOST:
        _wrong("slots and encode_slots", plan.all_slots, f"at most {_MOST} together")
    widest = max(*plan.sizes.guest_latent, plan.host_width)
    if widest > MAX_LENGTH:
        _wrong("w_g or w_h", widest, f"encodings of at most {MAX_LENGTH} numbers")
    length, most = len(canonical(plan.to_dict())), MAX_PLAN - 512  # the signature and what else is around it
    if length > most:
        _wrong("guests and hosts", f"{length} characters of plan", f"fewer or shorter names, for at most {most},")


def _check_whole(name: str, value: Any, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        _wrong(name, value, f"a whole number from {least} to {most}")


def _check_number(name: str, value: Any, allowed: _Range) -> None:
    holds, right = allowed
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not abs(value) <= sys.float_info.max or not holds(value):
        _wrong(name, value, right)


def _wrong(name: str, value: Any, right: str) -> NoReturn:
    raise UserError(f"plan: {name}: {value!r:.80}; {right} is right")
