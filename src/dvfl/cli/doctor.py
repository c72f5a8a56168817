"""`dvfl doctor`: what is wrong with a party, one line for each thing that was looked at."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from dvfl.errors import UserError

EXAMPLE = "Example: dvfl doctor practice/guest-1"


def doctor(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A party's own folder.")],
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Look at a party's files, keys, clock, table and lines, whether it runs or not; changes nothing.

    Ends with status 0 where all is well, and with 2 where something is to be mended.
    """
    from dvfl.orders.extras import needed

    needed("federation", "nats", "cryptography", "nacl")
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; that of a party is right")
    from dvfl.audit.party.party_promise import party_promise
    from dvfl.federation.local.doctor import examine

    ill = 0
    for finding in examine(folder, now=datetime.now(UTC)):
        ill += not finding.well
        typer.echo(f"{'ok' if finding.well else 'mend':<6}{finding.subject}: {finding.says}")
    if (promised := party_promise(folder)) is not None:
        typer.echo(f"{'ok':<6}noise: {promised}")
    if ill:
        raise typer.Exit(2)
