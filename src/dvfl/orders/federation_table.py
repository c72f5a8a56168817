"""`dvfl federation up` and `status`: the parties as a table."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from dvfl.errors import RunFailed, UserError
from dvfl.federation.local.supervisor import Supervisor
from dvfl.federation.party.lifecycle import STATUS
from dvfl.orders.page_process import PageProcess
from dvfl.runs.interrupts import Interrupted, Interrupts

_LOOK_S = 0.5
_LINE_S = 30.0  # between two lines where there is no terminal


def run_up(folder: Path, keep: bool, page_port: int | None = None) -> None:
    """Runs all parties until the result is there, or for good; with a page where there is a port for it."""
    supervisor = Supervisor(folder)
    page = None if page_port is None else PageProcess(supervisor, page_port)
    began = supervisor.result.stat().st_mtime_ns if supervisor.result.exists() else 0
    with Interrupts():
        try:
            supervisor.start()
            if page is not None:
                typer.echo(page.start())
            _watch(supervisor, keep, began, page)
        except Interrupted as stop:
            raise Interrupted("stopped; every party has saved, the same command goes on", stop.signum) from stop
        finally:
            if page is not None:
                page.stop()
            supervisor.stop()
    _print_result(supervisor.result)


def show_status(folder: Path) -> None:
    """Prints what the parties in a folder last wrote."""
    parties = (
        [folder] if (folder / "party.toml").is_file() else sorted(path.parent for path in folder.glob("*/party.toml"))
    )
    if not parties:
        raise UserError(f"{folder}: no party's folder is here; one that dvfl federation init made is right")
    Console().print(_table([_read(party) for party in parties]))


def _watch(supervisor: Supervisor, keep: bool, began: int, page: PageProcess | None) -> None:
    shown = sys.stdout.isatty()
    live = Live(refresh_per_second=4, transient=True) if shown else None
    said = 0.0
    if live is not None:
        live.start()
    try:
        while True:
            supervisor.watch()
            if page is not None:
                page.watch()
            statuses = [_read(supervisor.folder / party) for party in supervisor.roles]
            if live is not None:
                live.update(_table(statuses))
            elif time.monotonic() - said >= _LINE_S:
                typer.echo("; ".join(_line(status) for status in statuses))
                said = time.monotonic()
            if not keep and supervisor.result.exists() and supervisor.result.stat().st_mtime_ns != began:
                return
            time.sleep(_LOOK_S)
    finally:
        if live is not None:
            live.stop()


def _read(folder: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((folder / STATUS).read_text())
        return {**found, "seen_s": time.time() - (folder / STATUS).stat().st_mtime}
    except (OSError, ValueError):
        return {"party": folder.name, "state": "not started"}


def _table(statuses: list[dict[str, Any]]) -> Table:
    headings = ("oldest", "sent", "received", "dropped", "MB sent", "MB received", "restarts")
    table = Table("party", "state", "epoch", "loss", *headings, box=None)
    for status in statuses:
        ages = [age for age in (status.get("ages_s") or {}).values() if age is not None]
        silent = status.get("running", True) and status.get("seen_s", 0) > 10
        note = " (left)" if not status.get("running", True) else " (silent)" if silent else ""
        table.add_row(
            status["party"],
            f"{status['state']}{note}",
            _progress(status),
            f"{status['loss']:.4f}" if status.get("loss") is not None else "",
            f"{max(ages):.0f} s" if ages else "",
            *(f"{status[name]:,}" if name in status else "" for name in _COUNTS),
            *(f"{status[name] / 1e6:,.1f}" if name in status else "" for name in _BYTES),
            str(status.get("restarts", "")),
        )
    return table


_COUNTS = ("messages_sent", "messages_received", "messages_dropped")
_BYTES = ("bytes_sent", "bytes_received")  # since the process was started


def _line(status: dict[str, Any]) -> str:
    return f"{status['party']} {status['state']} {_progress(status)}".rstrip()


def _progress(status: dict[str, Any]) -> str:
    """Epochs, or steps of alignment."""
    for done, total in (("epoch", "epochs"), ("aligned", "to_align")):
        if done in status:
            return f"{status[done]}/{status[total]}"
    return ""


def _print_result(path: Path) -> None:
    if not path.exists():
        raise RunFailed(f"{path} was not written")
    result = json.loads(path.read_text())
    accuracy = result["accuracy_mean"]
    typer.echo(f"accuracy {accuracy:.2f} %" if accuracy is not None else f"R2 {result.get('r2_mean')}")
    typer.echo(f"longest wait of any party {result['longest_wait_s']:.1f} s, {result['seconds']['total']:.0f} s in all")
    typer.echo(str(path))
