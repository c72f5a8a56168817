"""A new federation's folders: for practice, with all keys made in one place."""

import shutil
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dvfl.errors import UserError
from dvfl.federation.keys.authority import make_authority
from dvfl.federation.keys.credentials import key_path, write_authority, write_credentials, write_key
from dvfl.federation.party.configuration import written
from dvfl.federation.party.settings import (
    FEDERATION,
    PARTY,
    Alignment,
    BrokerEntry,
    Federation,
    GuestData,
    GuestEntry,
    GuestFile,
    HostFile,
    OwnerData,
    OwnerFile,
    OwnerHead,
    Training,
)
from dvfl.federation.protocol.wire import Role
from dvfl.files import write_text

OWNER = "owner"
_DAYS = 825  # of a practice certificate

_FEDERATION_COMMENTS = {
    "name": "What all parties must agree on: the file is the same in every folder. Addresses are in each party.toml.",
    "plan_key": "Only plans that this key of the owner's signed are followed.",
    "version": "Rises with every change: whoever changes something by hand adds one.",
    "alignment": "How ids become slots (docs/alignment.md): union, star or given; case keep or fold.",
    "quorum": "With how few the run may go on at a deadline.",
    "deadlines": "Seconds: of silence before a host trains on what it has; for late sweeps; for phase 1 in all.",
}
_PARTY_COMMENTS = {
    "hosts": "Where each host's broker is reached.",
    "data": "Files, relative to this folder.",
    "broker": "Guests and owner dial in here.",
    "head": "How the owner trains; nobody else needs to know.",
    "record": "true: notes what passes this party's lines, never values or ids, in recorded/ for dvfl audit.",
    "flatten": "true, with clip: all directions of an encoding are equally strong, so that noise hides each alike.",
    "noise": "With clip = LENGTH above it, encodings leave no longer than that, with noise * clip of noise.",
    "slots": "How many rows alignment gave a slot: trained on, and only ever encoded.",
}


@dataclass(frozen=True)
class Founding:
    """What a practice federation is made of."""

    name: str
    guests: dict[str, GuestEntry]
    hosts: tuple[str, ...]
    training: Training
    head: OwnerHead
    tests: bool  # there are rows that are only ever encoded
    about: dict[str, str]
    alignment: Alignment


def found(folder: Path, founding: Founding) -> Federation:
    """Makes the folders of all parties, each whole and movable, and the federation's file beside them."""
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty; a new folder is right")
    now, plan_key = datetime.now(UTC), Ed25519PrivateKey.generate()
    federation = Federation(
        founding.name,
        OWNER,
        plan_key.public_key().public_bytes_raw().hex(),
        founding.hosts,
        founding.guests,
        founding.training,
        alignment=founding.alignment,
    )
    authority = make_authority(founding.name, now)
    addresses = dict(zip(founding.hosts, free_addresses(len(founding.hosts)), strict=True))
    tests = founding.tests
    files: dict[str, tuple[Role, GuestFile | HostFile | OwnerFile]] = {
        guest: ("guest", GuestFile(guest, addresses, GuestData(test_table="test_table.parquet" if tests else None)))
        for guest in founding.guests
    }
    files |= {host: ("host", HostFile(host, BrokerEntry(address))) for host, address in addresses.items()}
    data = OwnerData(test_labels="test_labels.parquet" if tests else None)
    files[OWNER] = ("owner", OwnerFile(OWNER, addresses, founding.head, data=data, about=founding.about))
    write_federation(folder, federation)
    for party, (role, file) in files.items():
        own = folder / party
        write_party(own, file)
        shutil.copyfile(folder / FEDERATION, own / FEDERATION)
        if role == "owner":
            write_authority(own, authority)
            write_key(key_path(own, "plan"), plan_key)
        write_credentials(own, authority, party=party, role=role, federation=founding.name, days=_DAYS, now=now)
    return federation


def check_fresh(folder: Path) -> None:
    """Raises where a party lives already; its files may lie there, but no keys."""
    if (folder / PARTY).exists() or (folder / "keys").exists():
        raise UserError(f"{folder} is the folder of a party already; a new one is right")


def write_federation(folder: Path, federation: Federation) -> None:
    """Writes what all parties share into the folder of one."""
    write_text_in(folder, FEDERATION, written(federation, _FEDERATION_COMMENTS))


def write_party(folder: Path, file: GuestFile | HostFile | OwnerFile) -> None:
    """Writes a party's own file."""
    write_text_in(folder, PARTY, written(file, _PARTY_COMMENTS))


def placed(folder: Path, file: Path) -> str:
    """A file as a party's file names it: relative where it lies in the party's folder, so that both can move."""
    whole, home = file.resolve(), folder.resolve()
    return str(whole.relative_to(home) if whole.is_relative_to(home) else whole)


def write_text_in(folder: Path, name: str, text: str) -> None:
    """Writes a file into a folder that may not be there yet."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / name, text)
    except OSError as error:
        raise UserError(f"{folder} cannot be written ({error.strerror}); another place is right") from error


def free_addresses(count: int) -> list[str]:
    """Ports that are free on this machine just now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    finally:
        for one in sockets:
            one.close()
