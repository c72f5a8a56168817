"""What a host's NATS server is told: one account a party, and the few subjects that join them."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dvfl.errors import UserError
from dvfl.federation.keys.authority import dns_name
from dvfl.federation.keys.credentials import authority_path, certificate_path, key_path

MAX_PAYLOAD = 1 << 20  # bytes of one message; the wire's own cap is below it
MAX_CONNECTIONS = 16  # of one party, with those that a crash left half open; without a cap it could take them all
LOG_BYTES = 10 << 20
# Each stream has its cap. Left to itself the server allows three quarters of the disk that is free when it starts, so
# less each time; and it does not reload a configuration with a lower limit.
STORE_BYTES = 1 << 40

# Where the owner's requests arrive in the host's account.
TELL, COLLECT, PREDICT = "owner.tell", "owner.collect", "owner.predict"
ALIGN = "align"  # where they arrive in a guest's, past the host
ENCODE = "encode"  # where the host's requests arrive in a guest's


@dataclass(frozen=True)
class Site:
    """What the broker of one host has to know. The host's folder holds its keys and, below `broker`, all it writes."""

    federation: str
    host: str
    guests: tuple[str, ...]
    owner: str
    folder: Path
    listen: str  # address:port; 0.0.0.0 or [::] for all addresses of the machine

    def __post_init__(self) -> None:
        parties = [self.host, *self.guests, self.owner]
        for party in parties:
            dns_name(party, self.federation)
            if parties.count(party) > 1:
                raise UserError(f"{self.folder}: two parties are named {party}; names of their own are right")
        self.address()

    def address(self) -> tuple[str, int]:
        """Where to listen, taken apart."""
        parts = split_address(self.listen)
        if parts is None:
            raise UserError(
                f"{self.folder}: cannot listen on '{self.listen}'; an address and a port such as 0.0.0.0:4222 is right"
            )
        return parts

    @property
    def url(self) -> str:
        """Where the host itself reaches its broker."""
        host, port = self.address()
        near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        return f"tls://[{near}]:{port}" if ":" in near else f"tls://{near}:{port}"

    @property
    def home(self) -> Path:
        """Where the broker keeps its configuration, log and streams."""
        return self.folder.absolute() / "broker"


def split_address(text: str) -> tuple[str, int] | None:
    """`address:port` taken apart, brackets of IPv6 off; None where it is no such thing."""
    found = re.fullmatch(r"(\[[0-9a-fA-F:.%]+\]|[^\s\[\]:/]+):([0-9]{1,5})", text)
    if found is None or not 0 < int(found[2]) < 65536:
        return None
    return found[1].strip("[]"), int(found[2])


def push_subject(guest: str) -> str:
    """Where a guest's encodings arrive in the host's account."""
    return f"push.{guest}"


def hello_subject(guest: str) -> str:
    """Where a guest's greetings arrive in the host's account."""
    return f"hello.{guest}"


def align_subject(guest: str) -> str:
    """Where the owner, in its own account, reaches a guest."""
    return f"align.{guest}"


def encode_subject(guest: str) -> str:
    """Where the host, in its own account, reaches a guest."""
    return f"encode.{guest}"


def server_config(site: Site) -> str:
    """The broker's configuration. It is JSON, which NATS servers read, so that no path can break out of its quotes.

    A guest has the two subjects `push` and `hello`, the owner `tell`, `collect` and `predict`; each leads to one
    subject of the host's account that no other account has. In every guest's account the owner, and nobody else,
    reaches `align`, and the host, and nobody else, `encode`.
    Nothing else crosses: not even reply subjects, which a NATS server does not check inside an account.
    """
    host, port = site.address()
    folder = site.folder.absolute()
    config = {
        "server_name": dns_name(site.host, site.federation),
        "host": host,
        "port": port,
        "max_payload": MAX_PAYLOAD,
        "pid_file": str(site.home / "broker.pid"),
        "log_file": str(site.home / "broker.log"),
        "logfile_size_limit": LOG_BYTES,
        "logfile_max_num": 2,
        "tls": {
            "cert_file": str(certificate_path(folder, "server")),
            "key_file": str(key_path(folder, "server")),
            "ca_file": str(authority_path(folder)),
            "verify_and_map": True,
            "handshake_first": True,  # otherwise a first line in plain text could talk a client out of TLS
            "min_version": "1.3",
        },
        "jetstream": {
            "store_dir": str(site.home / "streams"),
            "max_memory_store": 0,
            "max_file_store": STORE_BYTES,
            "sync_interval": "1s",
        },
        "accounts": _accounts(site),
    }
    return json.dumps(config, indent=2, ensure_ascii=False) + "\n"


def _accounts(site: Site) -> dict[str, object]:
    inside = {guest: {"push": push_subject(guest), "hello": hello_subject(guest)} for guest in site.guests}
    inside[site.owner] = {"tell": TELL, "collect": COLLECT, "predict": PREDICT}
    host = {
        "users": [{"user": dns_name(site.host, site.federation)}],
        "jetstream": {"max_file": STORE_BYTES, "max_bytes_required": True},
        "exports": [
            {"service": subject, "accounts": [party]}
            for party, services in inside.items()
            for subject in services.values()
        ],
        "imports": [
            {"service": {"account": guest, "subject": ENCODE}, "to": encode_subject(guest)} for guest in site.guests
        ],
    }
    visitors = {party: _visitor(party, services, site) for party, services in inside.items()}
    for guest in site.guests:
        visitors[guest]["exports"] = [
            {"service": ALIGN, "accounts": [site.owner]},
            {"service": ENCODE, "accounts": [site.host]},
        ]
        visitors[site.owner]["imports"].append(
            {"service": {"account": guest, "subject": ALIGN}, "to": align_subject(guest)}
        )
    return {site.host: host, **visitors}


def _visitor(party: str, services: Mapping[str, str], site: Site) -> dict[str, Any]:
    return {
        "users": [{"user": dns_name(party, site.federation)}],
        "limits": {"max_connections": MAX_CONNECTIONS},
        "imports": [
            {"service": {"account": site.host, "subject": subject}, "to": name} for name, subject in services.items()
        ],
    }
