"""The broker as a process: finding, starting, reloading and ending it."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from nats.aio.client import Client
from nats.errors import NoRespondersError

from dvfl.errors import RunFailed, UserError
from dvfl.federation.transport.broker import Broker, check_version, find_server
from dvfl.federation.transport.streams import ensure_stream

if TYPE_CHECKING:
    from conftest import Brokered

MIB = 1 << 20


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def pid_of(broker: Broker) -> int:
    return int((broker.site.home / "broker.pid").read_text())


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(pid: int, seconds: float = 5) -> bool:
    deadline = time.monotonic() + seconds
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not runs(pid)


async def push(client: Client, data: bytes = b"encodings") -> bytes:
    return (await client.request("push", data, timeout=2)).data


# Finding a server.


def test_without_a_path_the_server_of_this_python_environment_is_taken() -> None:
    assert find_server(None) == Path(sys.executable).with_name("nats-server")
    check_version(find_server(None))


def test_a_server_that_was_named_is_taken(tmp_path: Path) -> None:
    assert find_server(str(script(tmp_path / "mine", ""))) == tmp_path / "mine"


def test_without_one_in_the_environment_the_server_on_the_path_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    server = script(tmp_path / "bin" / "nats-server", "")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_server(None) == server


def test_where_there_is_no_server_the_error_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"install dvfl\[federation\] or name one in \[broker\] server"):
        find_server(None)


def test_a_named_server_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="gone is not there"):
        find_server(str(tmp_path / "gone"))


@pytest.mark.parametrize("version", ["2.14.9", "2.9.0", "1.4.1", "0.15.0"])
def test_an_old_server_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(UserError, match=f"has version {version}; 2.15 or later is right"):
        check_version(script(tmp_path / "old", f"echo nats-server: v{version}"))


@pytest.mark.parametrize("version", ["2.15.0", "2.15.0-RC.1", "2.100.0", "3.0.0"])
def test_a_server_that_is_new_enough_is_taken(tmp_path: Path, version: str) -> None:
    check_version(script(tmp_path / "new", f"echo nats-server: v{version}"))


@pytest.mark.parametrize("text", ["echo hello", "exit 3", "echo v2.15.1", "exec cat"])
def test_another_program_is_not_taken_for_a_server(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match="is not a NATS server"):
        check_version(script(tmp_path / "other", text))


def test_a_file_that_cannot_be_run_is_not_taken_for_a_server(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nats-server: v2.15.1")
    with pytest.raises(UserError, match="is not a NATS server"):
        check_version(tmp_path / "notes.txt")


# Starting and stopping.


def test_a_started_broker_takes_connections_and_a_stopped_one_is_gone(own_federation: "Brokered") -> None:
    broker = own_federation.broker
    assert not broker.alive
    broker.start()
    host, port = broker.site.address()
    assert broker.alive
    socket.create_connection((host, port), timeout=1).close()
    broker.stop()
    assert not broker.alive
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, port), timeout=1)
    broker.stop()


def test_starting_a_broker_that_runs_leaves_it_alone(own_federation: "Brokered") -> None:
    broker = own_federation.broker
    broker.start()
    pid = pid_of(broker)
    broker.start()
    assert pid_of(broker) == pid
    assert runs(pid)


def test_nobody_else_can_read_the_configuration_or_the_streams(own_federation: "Brokered") -> None:
    own_federation.broker.start()
    home = own_federation.broker.site.home
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / "broker.conf").stat().st_mode & 0o777 == 0o600


def test_a_broker_works_in_a_folder_with_any_name(own_federation: "Brokered") -> None:
    odd = own_federation.root / """it's "odd" $HOME \\ {äß} #1"""
    own_federation.folder("host-1").rename(odd)
    broker = Broker(replace(own_federation.broker.site, folder=odd), find_server(None))
    broker.start()
    assert broker.alive
    broker.stop()


def test_a_taken_port_is_named(own_federation: "Brokered") -> None:
    host, port = own_federation.broker.site.address()
    with socket.socket() as other:
        other.bind((host, port))
        other.listen()
        with pytest.raises(UserError, match=f"^port {port} of 127.0.0.1 is taken"):
            own_federation.broker.start()
    assert not own_federation.broker.alive
    own_federation.broker.start()


def test_an_address_of_another_machine_is_named(own_federation: "Brokered") -> None:
    broker = Broker(replace(own_federation.broker.site, listen="192.0.2.1:4222"), find_server(None))
    with pytest.raises(UserError, match=r"^192\.0\.2\.1 is not an address of this machine"):
        broker.start()


def test_what_the_server_has_against_its_configuration_is_shown(own_federation: "Brokered") -> None:
    keys = own_federation.folder("host-1") / "keys"
    (keys / "client.key").replace(keys / "server.key")
    with pytest.raises(UserError, match=r"ended at once: .*private key does not match public key") as caught:
        own_federation.broker.start()
    assert "\n" not in str(caught.value)


def test_a_server_that_dies_without_a_word_is_an_error(own_federation: "Brokered", tmp_path: Path) -> None:
    broker = Broker(own_federation.broker.site, script(tmp_path / "server", "exit 1"))
    with pytest.raises(UserError, match="the broker ended at once: it said nothing"):
        broker.start()


def test_a_server_that_never_gets_ready_is_ended_even_if_it_does_not_want_to(
    own_federation: "Brokered", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dvfl.federation.transport.broker.START_S", 0.3)
    monkeypatch.setattr("dvfl.federation.transport.broker.STOP_S", 0.3)
    stubborn = f"echo $$ > {tmp_path}/pid; trap '' TERM; while :; do sleep 0.1; done"
    broker = Broker(own_federation.broker.site, script(tmp_path / "server", stubborn))
    with pytest.raises(RunFailed, match="did not get ready"):
        broker.start()
    assert not broker.alive
    assert ends(int((tmp_path / "pid").read_text()))


def test_a_broker_that_died_is_seen_and_can_be_started_again(own_federation: "Brokered") -> None:
    broker = own_federation.broker
    broker.start()
    os.kill(pid_of(broker), signal.SIGKILL)
    assert ends(pid_of(broker))
    deadline = time.monotonic() + 2
    while broker.alive and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not broker.alive
    broker.start()
    assert broker.alive


# Ending with the host.

HOST_PROCESS = """
import sys, time
from pathlib import Path
from dvfl.federation.transport.accounts import Site
from dvfl.federation.transport.broker import Broker, find_server

site = Site("practice", "host-1", ("guest-1", "guest-2"), "owner", Path(sys.argv[1]), sys.argv[2])
Broker(site, find_server(None)).start()
print("started", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the broker is ended when the host starts again")
def test_a_broker_dies_with_a_host_that_is_killed_and_keeps_what_it_acknowledged(own_federation: "Brokered") -> None:
    broker = own_federation.broker
    command = [sys.executable, "-c", HOST_PROCESS, str(broker.site.folder), broker.site.listen]
    host = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert host.stdout is not None and host.stdout.readline() == b"started\n"

    async def fill() -> str:
        async with own_federation.connected("host-1") as client, own_federation.connected("guest-1") as guest:
            identity = await ensure_stream(client.jetstream(), "guest-1", MIB, MIB // 4)
            for _ in range(20):
                await push(guest)
            return identity

    identity, pid = asyncio.run(fill()), pid_of(broker)
    host.kill()
    host.wait()
    host.stdout.close()
    assert ends(pid)
    broker.start()

    async def look() -> tuple[str, int]:
        async with own_federation.connected("host-1") as client:
            again = await ensure_stream(client.jetstream(), "guest-1", MIB, MIB // 4)
            return again, (await client.jetstream().stream_info("G-guest-1")).state.messages

    assert asyncio.run(look()) == (identity, 20)


def test_a_broker_outlives_the_thread_that_started_it(own_federation: "Brokered") -> None:
    thread = Thread(target=own_federation.broker.start)
    thread.start()
    thread.join()
    time.sleep(0.2)
    assert own_federation.broker.alive


def test_a_broker_that_was_left_behind_is_ended_first(own_federation: "Brokered") -> None:
    broker = own_federation.broker
    broker.start()
    broker.stop()
    left = subprocess.Popen([find_server(None), "-c", broker.site.home / "broker.conf"])
    try:
        deadline = time.monotonic() + 5
        while pid_of(broker) != left.pid and time.monotonic() < deadline:
            time.sleep(0.02)
        broker.start()
        assert left.wait(5) is not None
    finally:
        left.kill()
    assert broker.alive
    assert pid_of(broker) != left.pid


def test_another_program_with_the_number_of_an_old_broker_is_left_alone(own_federation: "Brokered") -> None:
    broker = own_federation.broker
    broker.site.home.mkdir()
    other = subprocess.Popen(["sleep", "60"])
    try:
        (broker.site.home / "broker.pid").write_text(str(other.pid))
        broker.start()
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("text", ["", "none", "-1", "99999999999"])
def test_a_pid_file_that_says_nothing_is_passed_over(own_federation: "Brokered", text: str) -> None:
    own_federation.broker.site.home.mkdir()
    (own_federation.broker.site.home / "broker.pid").write_text(text)
    own_federation.broker.start()
    assert own_federation.broker.alive


# Other members.


def test_a_party_that_is_admitted_is_heard_after_a_reload(own_federation: "Brokered") -> None:
    broker = own_federation.broker
    broker.start()
    own_federation.admit("guest-3", "guest")

    async def admitted() -> None:
        async with own_federation.connected("host-1") as host, own_federation.connected("guest-1") as old:
            for guest in ("guest-1", "guest-3"):
                await ensure_stream(host.jetstream(), guest, MIB, MIB // 4)
            broker.reload(replace(broker.site, guests=(*broker.site.guests, "guest-3")))
            async with own_federation.connected("guest-3") as new:
                assert b'"stream":"G-guest-3"' in await push(new)
                assert b'"stream":"G-guest-1"' in await push(old)
            assert host.is_connected

    asyncio.run(admitted())


def test_a_party_that_is_removed_is_cut_off_by_a_reload(own_federation: "Brokered") -> None:
    broker = own_federation.broker
    broker.start()

    async def removed() -> None:
        gone = asyncio.Event()

        async def closed() -> None:
            gone.set()

        async with (
            own_federation.connected("guest-1") as kept,
            own_federation.connected("guest-2", closed_cb=closed),
        ):
            broker.reload(replace(broker.site, guests=("guest-1",)))
            await asyncio.wait_for(gone.wait(), 3)
            assert kept.is_connected
            with pytest.raises(Exception, match="Authorization Violation"):
                async with own_federation.connected("guest-2"):
                    pass

    asyncio.run(removed())


def test_a_party_that_was_removed_can_be_admitted_again(own_federation: "Brokered") -> None:
    broker = own_federation.broker
    broker.start()
    whole = broker.site

    async def again() -> None:
        async with own_federation.connected("host-1") as host:
            await ensure_stream(host.jetstream(), "guest-2", MIB, MIB // 4)
            broker.reload(replace(whole, guests=("guest-1",)))
            broker.reload(whole)
            async with own_federation.connected("guest-2") as guest:
                assert b'"stream":"G-guest-2"' in await push(guest)

    asyncio.run(again())


def test_members_of_a_reload_are_those_of_a_restart(own_federation: "Brokered") -> None:
    broker = own_federation.broker
    broker.start()
    broker.reload(replace(broker.site, guests=("guest-1",)))
    broker.restart()

    async def members() -> None:
        async with own_federation.connected("guest-1") as guest:
            with pytest.raises(NoRespondersError):  # connected; its stream was not made
                await push(guest)
        with pytest.raises(Exception, match="Authorization Violation"):
            async with own_federation.connected("guest-2"):
                pass

    asyncio.run(members())


def test_a_reload_that_fails_says_why_and_changes_nothing(
    own_federation: "Brokered", free_port: Callable[[], int]
) -> None:
    broker = own_federation.broker
    broker.start()
    before, text = broker.site, (broker.site.home / "broker.conf").read_text()
    with pytest.raises(UserError, match=r"kept its old settings: .*; restart the host"):
        broker.reload(replace(before, listen=f"127.0.0.1:{free_port()}"))
    assert broker.site == before
    assert broker.alive
    assert (before.home / "broker.conf").read_text() == text


def test_reloading_a_broker_that_is_down_starts_it(own_federation: "Brokered") -> None:
    own_federation.broker.reload(replace(own_federation.broker.site, guests=("guest-1",)))
    assert own_federation.broker.alive
