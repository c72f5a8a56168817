"""`dvfl audit`: what leaks of a run, or of a party's own folder, measured."""

from pathlib import Path
from typing import Annotated, Literal

import typer

EXAMPLE = """Example: dvfl audit runs/first --out audits/first, after dvfl train --seeds 5 --record --out runs/first

Of a party: dvfl audit practice/guest-1 --out audits/guest-1"""


def audit(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run folder (dvfl train --record), or a party's folder.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results go; one that was stopped goes on there.")],
    defences: Annotated[
        list[str] | None,
        typer.Option("--defence", metavar="NAME", help="all (the default), none, or one by name. May repeat."),
    ] = None,
    known: Annotated[
        list[int] | None, typer.Option(min=1, metavar="N", help="Rows whose columns an attacker knows. May repeat.")
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Without SplitNN (or DVFL, where the run is SplitNN) beside it.")
    ] = False,
    small: Annotated[bool, typer.Option("--small", help="Attackers that try less hard, for two CPU cores.")] = False,
    encoders: Annotated[
        bool,
        typer.Option(
            "--dp-encoders",
            help="Only train the encoders of dp-sgd, which need opacus: the audit can then go on where there is none.",
        ),
    ] = False,
    device: Annotated[
        Literal["auto", "cpu", "cuda"], typer.Option(help="auto takes a GPU where there is one.")
    ] = "auto",
    data_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Where data files lie (docs/data.md).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress; only where the results are.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Attack what parties sent, with and without defences; write audit.json, audit.md, audit.html and plots."""
    from dvfl.orders.auditing import AuditOrder, carry_out
    from dvfl.runs.interrupts import Interrupted, Interrupts

    order = AuditOrder(
        run, out, tuple(defences or ["all"]), tuple(known or ()), alone, small, device, data_dir, encoders
    )
    with Interrupts():
        try:
            page = carry_out(order, quiet)
        except Interrupted as stop:
            raise Interrupted(
                "stopped; the same command goes on with the attacks that are missing", stop.signum
            ) from stop
    typer.echo(str(page))
