"""What is wrong with a party's folder, and how to mend it; whether it runs or not, and without touching anything."""

import asyncio
import json
import logging
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dvfl.align.ids import IdRules, normalised
from dvfl.errors import UserError
from dvfl.federation.custody.enrolment import shown
from dvfl.federation.keys.authority import Usage
from dvfl.federation.keys.credentials import (
    authority_path,
    certificate_path,
    check_certificate,
    key_path,
    read_authority,
    read_certificate,
    read_plan_key,
)
from dvfl.federation.local.connectivity import Finding, Visitor, look_at_hosts, look_at_own_broker
from dvfl.federation.owner.labels import owner_labels, slot_count
from dvfl.federation.owner.owner_alignment import Aligned
from dvfl.federation.party.lifecycle import STATUS
from dvfl.federation.party.settings import (
    FEDERATION,
    PARTY,
    Federation,
    GuestFile,
    HostFile,
    OwnerFile,
    Slots,
    read_federation,
    read_guest,
    read_host,
    read_owner,
    role_of,
)
from dvfl.federation.party.storage import saved_values
from dvfl.federation.tables.id_files import own_ids, slots_file
from dvfl.federation.tables.slots import find_slots
from dvfl.federation.tables.table import survey_table
from dvfl.federation.transport.accounts import Site
from dvfl.federation.transport.broker import OLDEST, check_version, find_server
from dvfl.version import __version__

_SOON = timedelta(days=30)  # a certificate that ends within is to be renewed
_LEAST_BYTES = 1 << 30  # free on the disk
_SILENT_S = 10.0


@dataclass(frozen=True)
class Patient:
    """A party whose files could be read."""

    folder: Path
    federation: Federation
    file: GuestFile | HostFile | OwnerFile

    @property
    def party(self) -> str:
        return self.file.party


def examine(folder: Path, *, now: datetime) -> Iterator[Finding]:
    """Looks at one thing after the other."""
    yield _checked("versions", _versions)
    yield _checked("secrets", partial(_secrets, folder))
    yield _checked("disk", partial(_disk, folder))
    yield _checked("process", partial(_process, folder, now))
    try:
        patient = _read(folder)
    except UserError as error:
        yield Finding("files", False, str(error))
        return
    file, federation = patient.file, patient.federation
    yield Finding("files", True, f"{patient.party}, {role_of(folder)} of the federation {federation.name}")
    yield Finding(FEDERATION, True, f"version {federation.version}, {shown(federation.hash)}")
    yield _checked("quorum", partial(_quorum, federation))
    usages: tuple[Usage, ...] = ("client", "server") if isinstance(file, HostFile) else ("client",)
    known = [_checked(f"{usage} certificate", partial(_certificate, patient, usage, now)) for usage in usages]
    yield from known
    if isinstance(file, GuestFile):
        yield _checked("table", partial(_table, patient, file))
    elif isinstance(file, OwnerFile):
        yield _checked("owner's keys", partial(_owner_keys, patient))
        yield _checked("labels", partial(_labels, patient, file))
        yield _checked("plan", partial(_plan, patient, file))
    else:
        yield _checked("broker", partial(_broker, file))
    if known[0].well:
        yield from _hosts(patient)


def _read(folder: Path) -> Patient:
    role, federation = role_of(folder), read_federation(folder)
    if role == "guest":
        return Patient(folder, federation, read_guest(folder, federation))
    return Patient(
        folder, federation, read_host(folder, federation) if role == "host" else read_owner(folder, federation)
    )


def _checked(subject: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, True, check())
    except UserError as error:
        return Finding(subject, False, str(error))
    except OSError as error:
        return Finding(subject, False, f"{error.filename} cannot be read ({error.strerror})")


def _versions() -> str:
    try:
        packages = [f"{name} {version(name)}" for name in ("torch", "nats-py", "cryptography")]
    except PackageNotFoundError as error:
        raise UserError(f"{error.name} is not installed; pip install 'dvfl[federation]' is right") from error
    return ", ".join([f"dvfl {__version__}", f"Python {platform.python_version()}", *packages])


def _secrets(folder: Path) -> str:
    keys = folder / "keys"
    if not keys.is_dir():
        raise UserError(f"{keys} is not there; dvfl join or dvfl federation create makes it")
    found = sorted(keys.glob("*.key"))
    for path in (keys, *found):
        if path.stat().st_mode & 0o077:
            right = "700" if path == keys else "600"
            raise UserError(f"{path} can be read by others of this machine; chmod {right} {path}")
    return f"{', '.join(path.name for path in found) or 'none'}: nobody else can read them"


def _disk(folder: Path) -> str:
    state = folder / "state"
    place = state if state.exists() else folder
    if not os.access(place, os.W_OK | os.X_OK):
        raise UserError(f"{place} cannot be written by this user; chown it to the one who runs the party")
    free = shutil.disk_usage(place).free
    if free < _LEAST_BYTES:
        raise UserError(f"{place}: {free / 1e6:.0f} MB are free; make room, {_LEAST_BYTES / 1e6:.0f} MB are right")
    return f"{place} can be written, {free / 1e9:.0f} GB are free"


def _process(folder: Path, now: datetime) -> str:
    try:
        told = json.loads((folder / STATUS).read_text())
        silent = now.timestamp() - (folder / STATUS).stat().st_mtime
        runs = told.get("running", True) and silent < _SILENT_S
        return f"runs: {told['state']}" if runs else f"does not run; {told['state']} when it last did"
    except (OSError, ValueError, KeyError, TypeError):
        return "never ran here"


def _quorum(federation: Federation) -> str:
    said = []
    for kind, wanted, there in (
        ("hosts", federation.quorum.hosts, len(federation.hosts)),
        ("guests", federation.quorum.guests, len(federation.guests)),
    ):
        if not there:
            raise UserError(f"there are no {kind} yet; the owner's dvfl admit enters them")
        if wanted > there:
            raise UserError(f"{FEDERATION}: [quorum] {kind} = {wanted} and there are {there}; at most {there} is right")
        said.append(f"{wanted} of {there} {kind}")
    return ", ".join(said)


def _certificate(patient: Patient, usage: Usage, now: datetime) -> str:
    folder, path = patient.folder, certificate_path(patient.folder, usage)
    check_certificate(
        path,
        key_path(folder, usage),
        authority_path(folder),
        party=patient.party,
        federation=patient.federation.name,
        usage=usage,
        now=now,
    )
    last = read_certificate(path).not_valid_after_utc
    if last - now < _SOON:
        raise UserError(f"{path} ends on {last:%Y-%m-%d}; the owner renews it with dvfl admit on the same request")
    return f"valid until {last:%Y-%m-%d} by this machine's clock, and its key belongs to it"


def _owner_keys(patient: Patient) -> str:
    read_authority(patient.folder)
    path = key_path(patient.folder, "plan")
    if read_plan_key(path).public_key().public_bytes_raw().hex() != patient.federation.plan_key:
        raise UserError(f"{path} is not the key whose public half {FEDERATION} names; the one from the backup is right")
    return "authority.key and plan.key are those of this federation"


def _table(patient: Patient, file: GuestFile) -> str:
    folder, data, entry = patient.folder, file.data, patient.federation.guests[patient.party]
    saved = saved_values(folder / "state")
    survey = partial(survey_table, id_column=data.id, values=entry.values)
    table = survey(folder / data.table, schema=saved["schema"] if saved else None)
    if table.width != entry.columns:
        raise UserError(
            f"{folder / data.table} gives {table.width} columns and {FEDERATION} says {entry.columns};"
            " the table from when the party joined is right"
        )
    since = "as when training began" if saved else "as when it joined"
    tables = [(table.ids, data.table)]
    if data.test_table is not None:
        tables.append((survey(folder / data.test_table, schema=table.schema).ids, data.test_table))
    slots, aligned = slots_file(folder, data.slots, patient.federation.alignment), _aligned(patient)
    if aligned and not slots.exists():
        rules = IdRules(patient.federation.alignment.case)
        for ids, name in tables:
            normalised(ids, rules, str(folder / name), data.id)
        return f"{table.rows} rows, {table.width} columns {since}, ready to be aligned"
    without = sum(int((find_slots(ids, folder / name, data.id, slots, some=aligned) < 0).sum()) for ids, name in tables)
    having = f"all but {without} with a slot" if without else "all with a slot"
    return f"{table.rows} rows, {table.width} columns {since}, {having}"


def _labels(patient: Patient, file: OwnerFile) -> str:
    folder, data = patient.folder, file.data
    if _aligned(patient) and Aligned.read(folder) is None:
        test = None if data.test_labels is None else folder / data.test_labels
        own = own_ids(folder / data.labels, test, data.id, IdRules(patient.federation.alignment.case))
        return f"{len(own.rows.train)} rows, ready to be aligned"
    labels, test_labels = owner_labels(folder, patient.federation, file)
    slots = slot_count(folder, patient.federation, file)
    parts = [(labels, data.labels, slots.training)]
    if test_labels is not None:
        parts.append((test_labels, str(data.test_labels), slots.training + slots.encode_only))
    for part, name, end in parts:
        if part.slots.max() >= end:
            raise UserError(f"{folder / PARTY}: [slots] gives {end}, and {name} has a row with slot {part.slots.max()}")
    kind = "numbers" if labels.classes is None else f"{len(labels.classes)} classes"
    return f"{len(labels.slots)} rows with a slot, {kind}"


def _aligned(patient: Patient) -> bool:
    """Whether its slots are drawn by alignment, which may be still to come."""
    return patient.federation.alignment.way != "given"


def _plan(patient: Patient, file: OwnerFile) -> str:
    if _aligned(patient) and Aligned.read(patient.folder) is None:
        patient.federation.plan("0" * 32, Slots(1))
        return "a run can begin: dvfl owner aligns first"
    slots = slot_count(patient.folder, patient.federation, file)
    if slots.training < 1:
        raise UserError(f"{patient.folder / PARTY}: [slots] training = 0; how many rows alignment gave a slot is right")
    patient.federation.plan("0" * 32, slots)
    saved = saved_values(patient.folder / "state")
    return "a run is under way" if saved else "a run can begin: dvfl owner makes its plan"


def _broker(file: HostFile) -> str:
    server = find_server(file.broker.server)
    check_version(server)
    return f"{server}, {'.'.join(map(str, OLDEST))} or later"


def _hosts(patient: Patient) -> list[Finding]:
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it speaks of connections that brokers close
    folder, federation, file = patient.folder, patient.federation, patient.file
    visitor = Visitor(folder, patient.party, role_of(folder), federation.name)
    if not isinstance(file, HostFile):
        return asyncio.run(look_at_hosts(visitor, file.hosts))
    guests = tuple(federation.guests)
    site = Site(federation.name, file.party, guests, federation.owner, folder, file.broker.listen)
    return asyncio.run(look_at_own_broker(visitor, site))
