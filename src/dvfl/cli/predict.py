"""`dvfl predict`: predictions for a list of ids, with whoever is there."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: dvfl predict practice/owner --ids ids.csv --out predictions.parquet"


def predict(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The owner's folder; hosts must run.")],
    ids: Annotated[Path, typer.Option("--ids", help="CSV or Parquet with the column of the ids, or text: one a line.")],
    out: Annotated[Path, typer.Option("--out", help="Where predictions go: a .parquet or .csv file.")],
    deadline: Annotated[float, typer.Option("--deadline", help="Seconds for every 4,096 ids, 3,600 at most.")] = 2.0,
    pad: Annotated[
        int, typer.Option("--pad", min=0, help="Ask for a multiple of so many rows, so that hosts see not which.")
    ] = 0,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Predict with the trained federation. What is missing is said: per guest fresh, cached (and how old) or absent.

    Ids that the owner has no slot for are counted and get no class; dvfl align gives slots to rows that came later.
    """
    from dvfl.cli.party import checked
    from dvfl.show.predict_table import run_and_show

    run_and_show(checked(folder), ids, out, deadline, pad)
