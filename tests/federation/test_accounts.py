"""The configuration of a broker: who gets which subjects, and where it listens."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dvfl.errors import UserError
from dvfl.federation.transport.accounts import Site, server_config

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,62}", fullmatch=True)


def site(guests: tuple[str, ...] = ("guest-1", "guest-2"), listen: str = "0.0.0.0:4222", **other: Any) -> Site:
    return Site(
        **{"federation": "f", "host": "host-1", "owner": "owner", "folder": Path("host-1")} | other,
        guests=guests,
        listen=listen,
    )


def config(of: Site) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(server_config(of))
    return read


@given(st.lists(NAMES, min_size=3, max_size=8, unique=True))
def test_every_subject_of_the_host_is_open_to_one_party_alone(names: list[str]) -> None:
    host, owner, *guests = names
    accounts = config(site(tuple(guests), host=host, owner=owner))["accounts"]
    assert set(accounts) == set(names)
    exports = {export["service"]: export["accounts"] for export in accounts[host]["exports"]}
    assert len(exports) == len(accounts[host]["exports"]) == 2 * len(guests) + 3
    imported = {}
    for party in (owner, *guests):
        for service in accounts[party]["imports"]:
            if service["service"]["account"] == host:
                imported[service["service"]["subject"]] = [party]
    assert imported == exports
    for guest in guests:
        wanted = {"push": f"push.{guest}", "hello": f"hello.{guest}"}
        assert {entry["to"]: entry["service"]["subject"] for entry in accounts[guest]["imports"]} == wanted


@given(st.lists(NAMES, min_size=3, max_size=8, unique=True))
def test_the_owner_and_the_host_alone_reach_guests_and_each_there_one_subject(names: list[str]) -> None:
    host, owner, *guests = names
    accounts = config(site(tuple(guests), host=host, owner=owner))["accounts"]
    for guest in guests:
        exports = {export["service"]: export["accounts"] for export in accounts[guest]["exports"]}
        assert exports == {"align": [owner], "encode": [host]}
        assert {entry["service"]["account"] for entry in accounts[guest]["imports"]} == {host}
    reached = {e["to"]: e["service"] for e in accounts[owner]["imports"] if e["service"]["account"] != host}
    assert reached == {f"align.{guest}": {"account": guest, "subject": "align"} for guest in guests}
    asked = {entry["to"]: entry["service"] for entry in accounts[host]["imports"]}
    assert asked == {f"encode.{guest}": {"account": guest, "subject": "encode"} for guest in guests}


def test_only_the_host_has_streams_and_the_owner_exports_nothing() -> None:
    accounts = config(site())["accounts"]
    assert [party for party, account in accounts.items() if "jetstream" in account] == ["host-1"]
    assert [party for party, account in accounts.items() if "exports" in account] == ["host-1", "guest-1", "guest-2"]


def test_each_account_has_one_user_and_that_is_the_name_in_its_certificate() -> None:
    users = {party: account["users"] for party, account in config(site())["accounts"].items()}
    assert users == {party: [{"user": f"{party}.f.dvfl"}] for party in ("host-1", "guest-1", "guest-2", "owner")}


@pytest.mark.parametrize("name", ["", "Guest", "guest.1", "guest 1", "*", ">", "$SYS", 'a"b', "a\nb", "é", "g" * 64])
def test_what_is_no_name_does_not_come_into_a_configuration(name: str) -> None:
    with pytest.raises(UserError, match="cannot name a party"):
        site((name,))
    with pytest.raises(UserError, match="cannot name a party"):
        site(federation=name)


@pytest.mark.parametrize("guests", [("a", "a"), ("owner",), ("host-1", "a")])
def test_two_parties_of_one_name_are_refused(guests: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match="two parties are named"):
        site(guests)


@pytest.mark.parametrize(
    ("listen", "host", "port", "url"),
    [
        ("127.0.0.1:4222", "127.0.0.1", 4222, "tls://127.0.0.1:4222"),
        ("0.0.0.0:1", "0.0.0.0", 1, "tls://127.0.0.1:1"),
        ("[::]:65535", "::", 65535, "tls://[::1]:65535"),
        ("[fe80::1]:4222", "fe80::1", 4222, "tls://[fe80::1]:4222"),
        ("broker.example.org:4222", "broker.example.org", 4222, "tls://broker.example.org:4222"),
    ],
)
def test_addresses_are_taken_apart(listen: str, host: str, port: int, url: str) -> None:
    read = config(site(listen=listen))
    assert (read["host"], read["port"]) == (host, port)
    assert site(listen=listen).url == url


@pytest.mark.parametrize(
    "listen", ["", "4222", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "::1:4222", "a b:1", "tls://a:1"]
)
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(UserError, match="an address and a port such as"):
        site(listen=listen)
