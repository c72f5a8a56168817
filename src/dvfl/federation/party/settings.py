"""`federation.toml`, which all parties share, and `party.toml`, which is each party's own."""

import hashlib
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dvfl.align.ids import Case
from dvfl.data.tables.targets import Task
from dvfl.errors import UserError
from dvfl.federation.party.configuration import load, read
from dvfl.federation.party.owner_settings import OwnerSettings
from dvfl.federation.protocol.messages import Role
from dvfl.federation.protocol.plan import Plan, PlannedGuest
from dvfl.federation.protocol.plan_fields import canonical
from dvfl.parties.host import HostModel
from dvfl.parties.numerics.learner import Adam, Rule, Sgd
from dvfl.parties.numerics.schedules import Schedule
from dvfl.parties.objectives.objective import ObjectiveName
from dvfl.parties.objectives.warps import Strip

FEDERATION, PARTY = "federation.toml", "party.toml"
INVITATION, REQUEST = "invitation.toml", "request.toml"  # what a real federation begins with
RuleName = Literal["adam", "sgd"]
Way = Literal["union", "star", "given"]  # given: every party has its slots.parquet from elsewhere


@dataclass(frozen=True)
class Optimiser:
    """A learning rule by name."""

    name: RuleName
    rate: float
    momentum: float = 0.0
    weight_decay: float = 0.0

    def rule(self) -> Rule:
        if self.name == "adam":
            return Adam(self.rate, weight_decay=self.weight_decay)
        return Sgd(self.rate, momentum=self.momentum, weight_decay=self.weight_decay)

    @staticmethod
    def of(rule: Rule) -> "Optimiser":
        if isinstance(rule, Adam):
            return Optimiser("adam", rule.rate, 0.0, rule.weight_decay)
        return Optimiser("sgd", rule.rate, rule.momentum, rule.weight_decay)


@dataclass(frozen=True)
class GuestEntry:
    """What everyone knows of a guest."""

    columns: int  # after categories, dates and missing values were made numbers
    values: Literal["standardise", "unit"] = "standardise"  # unit: numbers from 0 to 1, taken as they are
    strip: tuple[int, ...] | None = None  # pixels: height, width, rows of the picture above, rows of the picture


@dataclass(frozen=True)
class Training:
    """How guests and hosts train."""

    seed: int
    rule: str
    batch: int
    guest_epochs: int
    host_epochs: int
    period: int
    guest: Optimiser
    host: Optimiser
    guest_schedule: Schedule = "constant"
    host_schedule: Schedule = "constant"
    guest_noise: float = 0.0
    guest_dropout: float = 0.0
    w_g: int | None = None
    w_h: int | None = None
    guest_hidden: int | None = None
    guest_objective: ObjectiveName = "reconstruction"
    host_model: HostModel = "autoencoder"  # concatenate: hosts learn nothing and pass on what they hold
    host_objective: ObjectiveName = "reconstruction"
    temperature: float = 0.5
    partial: int = 0
    adversary: float = 0.0


@dataclass(frozen=True)
class Quorum:
    """With how few the run may go on at a deadline."""

    hosts: int = 1
    guests: int = 1


@dataclass(frozen=True)
class Deadlines:
    """Seconds."""

    stall_s: float = 30.0  # without news from guests, after which a host trains on what it has
    sweep_s: float = 300.0  # after the first guest's sweep, within which a host waits for the others'
    phase1_s: float = 86_400.0  # for guests and hosts in all


@dataclass(frozen=True)
class Slots:
    """How many slots there are, where they are given and not drawn by alignment."""

    training: int
    encode_only: int = 0
    rows: int | None = None  # training rows of the guest that has most; None: it has all of them


@dataclass(frozen=True)
class Alignment:
    """How ids become slots (docs/alignment.md)."""

    way: Way = "union"
    case: Case = "keep"  # fold: A and a are one id
    pad: int = 1  # every party rounds the number of its rows up to a multiple of it
    reserve: int = 1000  # slots for rows that come later
    silence_s: float = 3600.0  # after which a guest that does not answer is left out

    def __post_init__(self) -> None:
        for name, least in (("pad", 1), ("reserve", 0), ("silence_s", 1)):
            if getattr(self, name) < least:
                raise UserError(f"{FEDERATION}: [alignment] {name} = {getattr(self, name)}; at least {least} is right")


@dataclass(frozen=True)
class Federation:
    """What all parties must agree on; addresses are not among it, so that a party can move."""

    name: str
    owner: str
    plan_key: str  # the owner's public key, 64 hexadecimal digits: only plans signed by it are followed
    hosts: tuple[str, ...]
    guests: dict[str, GuestEntry]
    training: Training
    quorum: Quorum = Quorum()
    deadlines: Deadlines = Deadlines()
    alignment: Alignment = Alignment()
    version: int = 1  # rises with every change, so that nobody goes back to an older file

    @property
    def hash(self) -> str:
        """Of all of it: parties with different files do not belong together."""
        return hashlib.sha256(canonical(asdict(self))).hexdigest()

    def key(self) -> Ed25519PublicKey:
        try:
            return Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.plan_key))
        except ValueError:
            raise UserError(f"{FEDERATION}: plan_key is no Ed25519 public key in hexadecimal") from None

    def plan(self, run: str, slots: Slots) -> Plan:
        """The plan of a new run."""
        if not self.guests or not self.hosts:
            who = "hosts" if self.guests else "guests"
            raise UserError(f"{FEDERATION}: there are no {who} yet; the run can begin when dvfl admit has entered them")
        t = self.training
        return Plan(
            run=run,
            federation=self.hash,
            seed=t.seed,
            guests=tuple(
                PlannedGuest(name, entry.columns, entry.values == "unit", _strip(name, entry))
                for name, entry in self.guests.items()
            ),
            hosts=self.hosts,
            rule=t.rule,
            w_g=t.w_g,
            w_h=t.w_h,
            guest_hidden=t.guest_hidden,
            guest_objective=t.guest_objective,
            host_model=t.host_model,
            host_objective=t.host_objective,
            temperature=t.temperature,
            adversary=t.adversary,
            batch=t.batch,
            guest_epochs=t.guest_epochs,
            period=t.period,
            host_epochs=t.host_epochs,
            guest_rule=t.guest.rule(),
            host_rule=t.host.rule(),
            guest_schedule=t.guest_schedule,
            host_schedule=t.host_schedule,
            guest_noise=t.guest_noise,
            guest_dropout=t.guest_dropout,
            partial=t.partial,
            rows=slots.training if slots.rows is None else slots.rows,
            slots=slots.training,
            encode_slots=slots.encode_only,
            quorum_hosts=self.quorum.hosts,
            quorum_guests=self.quorum.guests,
            stall_s=self.deadlines.stall_s,
            sweep_deadline_s=self.deadlines.sweep_s,
            phase1_deadline_s=self.deadlines.phase1_s,
        )


@dataclass(frozen=True)
class GuestData:
    """Files, relative to the party's folder."""

    table: str = "table.parquet"
    slots: str = "slots.parquet"  # where they are given
    id: str = "id"
    test_table: str | None = None  # rows that are only ever encoded


@dataclass(frozen=True)
class GuestFile:
    """A guest's `party.toml`."""

    party: str
    hosts: dict[str, str]  # where each host's broker is reached, address:port
    data: GuestData = GuestData()
    record: bool = False  # what passes its lines, for an audit (docs/threat-model.md)
    flatten: bool = False  # all directions of an encoding are made equally strong before it is clipped
    clip: float | None = None  # the most that an encoding may be long when it leaves; None: as it is
    noise: float = 0.0  # added to each of its numbers, as a standard deviation in parts of `clip`

    def __post_init__(self) -> None:
        if self.clip is not None and not 0 < self.clip < math.inf:
            raise UserError(f"{PARTY}: clip = {self.clip}; a finite number above 0 is right")
        if not 0 <= self.noise < math.inf:
            raise UserError(f"{PARTY}: noise = {self.noise}; a finite number, 0 for none, is right")
        if self.noise and self.clip is None:
            raise UserError(f"{PARTY}: noise = {self.noise} without clip, of which it is a part; clip too is right")
        if self.flatten and self.clip is None:
            raise UserError(f"{PARTY}: flatten without clip; clip too is right, about the root of an encoding's width")


@dataclass(frozen=True)
class BrokerEntry:
    """A host's NATS server."""

    listen: str
    server: str | None = None  # path of the program; the one that was installed with dvfl unless given
    stream_megabytes: int = 64  # of each guest's messages; about one epoch of them is right


@dataclass(frozen=True)
class HostFile:
    """A host's `party.toml`."""

    party: str
    broker: BrokerEntry
    record: bool = False  # what passes its line, for an audit


@dataclass(frozen=True)
class OwnerData:
    """Files, relative to the party's folder."""

    labels: str = "labels.parquet"
    slots: str = "slots.parquet"  # where they are given
    id: str = "id"
    label: str | None = None
    task: Task = "auto"
    test_labels: str | None = None


@dataclass(frozen=True)
class OwnerHead:
    """How the owner trains; nobody else needs to know."""

    optimiser: Optimiser
    epochs: int = 100
    batch: int = 64
    schedule: Schedule = "cosine"
    standardise: bool = True
    dropout: float = 0.5
    host_dropout: float = 0.0
    validation: float = 0.0
    patience: int = 20
    hidden: tuple[int, ...] | None = None
    smoothing: float = 0.0
    calibration: float = 0.05

    def settings(self) -> OwnerSettings:
        return OwnerSettings(
            self.epochs,
            self.batch,
            self.optimiser.rule(),
            self.schedule,
            self.standardise,
            self.dropout,
            self.host_dropout,
            self.validation,
            self.patience,
            self.hidden,
            self.smoothing,
            self.calibration,
        )


@dataclass(frozen=True)
class OwnerFile:
    """The owner's `party.toml`."""

    party: str
    hosts: dict[str, str]
    head: OwnerHead
    slots: Slots | None = None
    data: OwnerData = OwnerData()
    collect_s: float = 300.0  # within which hosts must have given their encodings
    about: dict[str, str] = field(default_factory=dict)  # data set and preset, for the result
    record: bool = False  # what passes its lines, for an audit


def _strip(name: str, entry: GuestEntry) -> Strip | None:
    if entry.strip is None:
        return None
    if len(entry.strip) != len(Strip._fields):
        raise UserError(f"{FEDERATION}: strip of {name} = {list(entry.strip)}; {', '.join(Strip._fields)} are right")
    return Strip(*entry.strip)


def read_federation(folder: Path) -> Federation:
    """The file in a party's folder."""
    if not (folder / FEDERATION).exists() and (folder / REQUEST).exists():
        raise UserError(
            f"{folder}: not admitted yet; send {REQUEST} to the owner, and take its answer with"
            f" dvfl join {folder} --admission FILE"
        )
    return read(Federation, folder / FEDERATION)


def role_of(folder: Path) -> Role:
    """Whose folder it is, by what only that role's file has."""
    if not (folder / PARTY).is_file():
        raise UserError(f"{folder}: no {PARTY}; the folder of one party is right, such as {folder / 'owner'}")
    plain = load(folder / PARTY)
    return "host" if "broker" in plain else "owner" if "head" in plain else "guest"


def check_owner(folder: Path) -> None:
    """Refuses the folder of anybody else."""
    role = role_of(folder)
    if role != "owner":
        raise UserError(f"{folder} is the folder of a {role}; that of the owner is right")


def read_guest(folder: Path, federation: Federation) -> GuestFile:
    """A guest's own file."""
    party = read(GuestFile, folder / PARTY)
    _check_role(folder, party.party, "guest", list(federation.guests))
    _check_hosts(folder, party.hosts, federation)
    return party


def read_host(folder: Path, federation: Federation) -> HostFile:
    """A host's own file."""
    party = read(HostFile, folder / PARTY)
    _check_role(folder, party.party, "host", list(federation.hosts))
    return party


def read_owner(folder: Path, federation: Federation) -> OwnerFile:
    """The owner's own file."""
    party = read(OwnerFile, folder / PARTY)
    _check_role(folder, party.party, "owner", [federation.owner])
    _check_hosts(folder, party.hosts, federation)
    return party


def _check_role(folder: Path, party: str, role: str, known: list[str]) -> None:
    if party not in known:
        raise UserError(f"{folder / PARTY}: '{party}' is no {role} of {FEDERATION} ({', '.join(known)})")


def _check_hosts(folder: Path, addresses: dict[str, str], federation: Federation) -> None:
    missing = [host for host in federation.hosts if host not in addresses]
    unknown = [host for host in addresses if host not in federation.hosts]
    if missing or unknown:
        what = f"has no address of {missing[0]}" if missing else f"names a host '{unknown[0]}' that is not one"
        raise UserError(f"{folder / PARTY}: [hosts] {what}; those of {FEDERATION} are right")
