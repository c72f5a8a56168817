"""`dvfl align`: the owner aligns everybody's rows, shows what came of it, and leaves."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: dvfl align practice/owner"


def align(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The owner's folder; guests and hosts must run.")],
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Give every row of every guest a slot, so that rows of one person have one; nobody sees another's ids.

    The first time all rows are aligned, which dvfl owner does by itself too. Later it aligns rows that have come since;
    stop the owner for that, and start it again afterwards.
    """
    from dvfl.cli.party import checked
    from dvfl.show.align_table import run_and_show

    run_and_show(checked(folder))
