"""The run's plan, signed by the owner: made, read and replaced by a newer one."""

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dvfl.errors import UserError
from dvfl.federation.protocol.plan_fields import Plan, PlannedGuest, canonical
from dvfl.federation.protocol.wire import json_object
from dvfl.federation.protocol.wire_types import MAX_PLAN, BadMessage

__all__ = ["PHASES", "BadPlan", "Phase", "Plan", "PlannedGuest", "SignedPlan", "heard", "newer", "read_plan", "sign"]

Phase = Literal["train", "collect", "done", "retired"]
PHASES: tuple[Phase, ...] = get_args(Phase)  # in the order in which a run goes through them


class BadPlan(Exception):
    """A plan that must not be followed; a few words say why."""


@dataclass(frozen=True)
class SignedPlan:
    """A plan, and what does change: the phase of its run, under a revision that only rises."""

    plan: Plan
    phase: Phase
    revision: int  # from 1
    signature: bytes

    def text(self) -> str:
        """The document that travels; `read_plan` takes it back."""
        return self._text

    @cached_property
    def _text(self) -> str:  # it is said to everybody again and again
        document = {
            "plan": self.plan.to_dict(),
            "hash": self.plan.hash,
            "phase": self.phase,
            "revision": self.revision,
            "signature": self.signature.hex(),
        }
        return canonical(document).decode()


def sign(plan: Plan, phase: Phase, revision: int, key: Ed25519PrivateKey) -> SignedPlan:
    """The owner's word that the run is in this phase."""
    if phase not in PHASES or not 1 <= revision < 2**63:
        raise ValueError(f"phase {phase}, revision {revision}: one of {', '.join(PHASES)} and 1 or more are right")
    return SignedPlan(plan, phase, revision, key.sign(_covered(plan.hash, phase, revision, plan.federation, plan.run)))


def read_plan(text: str, public: Ed25519PublicKey) -> SignedPlan:
    """The plan in a document that the owner signed; BadPlan for any other text.

    Signature and hash come first: what the owner did not write is not looked at any further.
    """
    document = _read_document(text)
    plain, phase, revision = document["plan"], document["phase"], document["revision"]
    signature = bytes.fromhex(document["signature"])
    try:
        public.verify(signature, _covered(document["hash"], phase, revision, plain.get("federation"), plain.get("run")))
        if hashlib.sha256(canonical(plain)).hexdigest() != document["hash"]:
            raise BadPlan("not the plan that the owner signed")
    except (InvalidSignature, ValueError, RecursionError) as error:  # the latter two: no JSON of ours
        raise BadPlan("not signed by the owner") from error
    try:
        plan = Plan.from_dict(plain)
    except UserError as error:  # an owner that knows other rules
        raise BadPlan(f"cannot be followed: {str(error)[:200]}") from error
    if plan.hash != document["hash"]:
        raise BadPlan("cannot be followed: a number is written in another way")
    return SignedPlan(plan, phase, revision, signature)


def heard(known: SignedPlan | None, text: str, public: Ed25519PublicKey) -> SignedPlan:
    """The plan to follow once this document has come; BadPlan for one that cannot be followed."""
    if known is not None and text == known.text():
        return known
    return newer(known, read_plan(text, public))


def newer(known: SignedPlan | None, offered: SignedPlan) -> SignedPlan:
    """The one of two to keep; BadPlan where the offered one contradicts the known one."""
    if known is None:
        return offered
    if offered.plan.run != known.plan.run:
        if known.phase != "retired":
            raise BadPlan("of another run, and the known one is not retired")
        return offered
    if offered.revision <= known.revision:
        return known
    if offered.plan.hash != known.plan.hash:
        raise BadPlan("another plan for the same run")
    if PHASES.index(offered.phase) < PHASES.index(known.phase):
        raise BadPlan(f"back from {known.phase} to {offered.phase}")
    return offered


def _covered(hashed: str, phase: str, revision: int, federation: Any, run: Any) -> bytes:
    """What the signature covers; the words in front keep it from being taken for anything else the owner signs."""
    covered = {"hash": hashed, "phase": phase, "revision": revision, "federation": federation, "run": run}
    return b"dvfl signed plan, version 1\n" + canonical(covered)


def _read_document(text: str) -> dict[str, Any]:
    """The fields of a signed plan, each of the right type, none believed yet."""
    if len(text) > MAX_PLAN:
        raise BadPlan("too long")
    try:
        document = json_object(text)
    except BadMessage as error:
        raise BadPlan(str(error)) from error
    if document.keys() != {"plan", "hash", "phase", "revision", "signature"}:
        raise BadPlan("does not have exactly the fields of a signed plan")
    if type(document["plan"]) is not dict:
        raise BadPlan("plan is not an object")
    for name, digits in (("hash", 64), ("signature", 128)):
        if type(document[name]) is not str or not re.fullmatch(f"[0-9a-f]{{{digits}}}", document[name]):
            raise BadPlan(f"{name} is not {digits} hexadecimal digits")
    if document["phase"] not in PHASES:
        raise BadPlan("unknown phase")
    if type(document["revision"]) is not int or not 1 <= document["revision"] < 2**63:
        raise BadPlan("revision is not a whole number from 1 to 2**63 - 1")
    return document
