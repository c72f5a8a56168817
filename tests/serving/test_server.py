"""The server as a process: TLS, certificates of clients, and how it leaves."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import httpx
import pytest

pytest.importorskip("cryptography", reason="the extra dvfl[federation] is not installed")

from dvfl.federation.keys.authority import make_authority
from dvfl.federation.keys.credentials import authority_path, certificate_path, key_path, write_credentials

HERE = Path(__file__).resolve().parent
Start = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts servers; a process and its address each."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str | Path) -> tuple[subprocess.Popen[str], str]:
        environment = os.environ | {"PYTHONPATH": f"{HERE.parents[1] / 'src'}{os.pathsep}{HERE}"}
        command = [sys.executable, HERE / "serving_clinic.py", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(list(map(str, command)), text=True, env=environment, **pipes)
        started.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """Folders of a server, of a client, and of a stranger with a certificate of another authority."""
    now = datetime.now(UTC)
    ours, others = make_authority("clinics", now), make_authority("others", now)
    equip = partial(write_credentials, days=2, now=now)
    equip(tmp_path / "server", ours, party="server", role="host", federation="clinics")
    equip(tmp_path / "client", ours, party="client", role="guest", federation="clinics")
    equip(tmp_path / "stranger", others, party="stranger", role="guest", federation="others")
    return tmp_path


def pems(keys: Path) -> tuple[Path, Path, Path]:
    server = keys / "server"
    return certificate_path(server, "server"), key_path(server, "server"), authority_path(server)


def trusting(keys: Path, client: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority_path(keys / "server"))
    context.check_hostname = False
    if client is not None:
        context.load_cert_chain(certificate_path(keys / client, "client"), key_path(keys / client, "client"))
    return context


def test_clients_with_a_certificate_of_the_authority_are_answered_and_others_are_not(start: Start, keys: Path) -> None:
    _, address = start("127.0.0.1:0", *pems(keys))
    assert address.startswith("https://127.0.0.1:")
    response = httpx.get(f"{address}/healthz", verify=trusting(keys, "client"))
    assert response.json() == {"status": "ok"}
    assert "max-age" in response.headers["strict-transport-security"]
    for client in (None, "stranger"):
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{address}/healthz", verify=trusting(keys, client))
    with pytest.raises(httpx.TransportError):
        httpx.get(address.replace("https", "http") + "/healthz")


def test_it_leaves_soon_and_well_when_it_is_asked_to_with_pages_open(start: Start) -> None:
    process, address = start("127.0.0.1:0")
    with httpx.stream("GET", f"{address}/v1/events", timeout=10) as response:
        lines = response.iter_lines()
        assert next(lines) == "event: history"
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        for _ in lines:
            pass
        assert process.wait(10) == 0
        assert time.monotonic() - began < 4


def test_the_log_is_a_line_of_json_for_each_request_on_stderr(start: Start) -> None:
    process, address = start("127.0.0.1:0")
    httpx.post(f"{address}/v1/predict", json={"ids": ["4711"]})
    with socket.create_connection(("127.0.0.1", httpx.URL(address).port)) as stranger:
        stranger.sendall(b"no HTTP at all\r\n\r\n")
        assert b"400 Bad Request" in stranger.recv(1000)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0
    assert process.stderr is not None
    (line,) = process.stderr.read().splitlines()
    assert json.loads(line)["ids"] == 1 and "4711" not in line


def test_a_port_that_is_taken_is_said_in_a_line(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process, _ = start(f"127.0.0.1:{taken.getsockname()[1]}")
        _, errors = process.communicate(timeout=20)
    assert "cannot be listened on; another --listen HOST:PORT is right" in errors.splitlines()[-1]
    assert process.returncode == 1
    assert "already in use" not in errors  # uvicorn's line beside ours


def test_a_key_that_does_not_fit_is_the_users_to_mend(start: Start, keys: Path) -> None:
    certificate, _, clients = pems(keys)
    process, _ = start("127.0.0.1:0", certificate, key_path(keys / "client", "client"), clients)
    _, errors = process.communicate(timeout=20)
    assert "two PEM files that fit are right" in errors.splitlines()[-1]


def test_an_authority_of_clients_that_is_none_is_named(start: Start, keys: Path, tmp_path: Path) -> None:
    certificate, key, _ = pems(keys)
    (tmp_path / "authority.pem").write_text("none\n")
    process, _ = start("127.0.0.1:0", certificate, key, tmp_path / "authority.pem")
    _, errors = process.communicate(timeout=20)
    assert "authority.pem: no certificates" in errors.splitlines()[-1]
