"""The page's process beside `dvfl federation up`, with no party running."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

pytest.importorskip("fastapi", reason="the extra dvfl[serve] is not installed")
pytest.importorskip("nats", reason="the extra dvfl[federation] is not installed")

from dvfl.cli import main
from dvfl.errors import UserError
from dvfl.federation.local.supervisor import Supervisor
from dvfl.orders.page_process import PageProcess


@pytest.fixture
def supervisor(tmp_path: Path) -> Supervisor:
    folder = tmp_path / "practice"
    assert main(["federation", "init", str(folder), "--guests", "2", "--hosts", "1", "--dataset", "wine"]) == 0
    return Supervisor(folder)


@pytest.fixture
def page(supervisor: Supervisor) -> Iterator[PageProcess]:
    page = PageProcess(supervisor, 0)
    yield page
    page.stop()


def test_a_page_that_was_killed_comes_back_in_its_place(page: PageProcess) -> None:
    address = page.start().removeprefix("the page is at ")
    assert page._process is not None
    page._process.kill()
    page._process.wait()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        page.watch()
        try:
            assert httpx.get(f"{address}healthz").status_code == 200
            return
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError("the page did not come back")


def test_a_port_that_is_taken_is_refused_by_the_option_that_names_it(supervisor: Supervisor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        page = PageProcess(supervisor, taken.getsockname()[1])
        with pytest.raises(UserError, match="cannot be listened on; another --page-port PORT is right"):
            page.start()
