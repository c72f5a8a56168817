"""The report of `dvfl chaos` as a table."""

from typing import Any

import typer
from rich.console import Console
from rich.table import Table


def print_report(report: dict[str, Any]) -> None:
    """Says what was done to whom, and how it went."""
    table = Table("kind", "kills", "stops", "links", "recovered", "median", "longest")
    for kind in report["kinds"]:
        back = report["recovery_s"].get(kind)
        links = ", ".join(f"{count} {way}" for way, count in report["links"].items()) if kind == "connection" else ""
        table.add_row(
            kind,
            *(str(report[name].get(kind, 0)) if kind != "connection" else "" for name in ("kills", "stops")),
            links,
            *([str(back["count"]), f"{back['median']:.1f} s", f"{back['max']:.1f} s"] if back else ["0", "", ""]),
        )
    Console().print(table)
    for line in _lines(report):
        typer.echo(line)


def _lines(report: dict[str, Any]) -> list[str]:
    restarts, writes, messages = report["restarts"], report["writes"], report["messages"]
    lines = [
        f"{report['instant_restarts']} kills with a restart at once; parties were started again {restarts['counted']}"
        f" times, {len(restarts['not_resumed'])} of them not from where they were",
        f"longest wait of any party {report['longest_wait_s']:.1f} s, of {report['wait_deadline_s']:.0f} s that it may"
        f" take; longest stop {report['longest_stop_s']:.1f} s",
        f"messages at hosts: {messages['applied']} applied, {messages['superseded']} superseded,"
        f" {messages['dropped']} dropped",
        f"acknowledged writes: {writes['checked']} checked, {writes['applied']} in the tables as they are,"
        f" {writes['superseded']} superseded, {writes['too_late']} too late, {writes['lost']} lost",
    ]
    lines += [f"{party} died for good in epoch {epoch}" for party, epoch in report["dead"].items()]
    lines += [f"ended by itself: {words}" for words in report["ended_by_themselves"]]
    if report["score"] is not None:
        beside = [
            f"{name} {report[f'{name}_score']:.2f} ({report[f'against_{name}']:+.2f})"
            for name in ("quiet", "simulator")
            if report.get(f"against_{name}") is not None
        ]
        lines.append(f"accuracy or R2 {report['score']:.2f}{''.join(f', {text}' for text in beside)}")
    return lines
