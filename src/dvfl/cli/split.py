"""`dvfl split`: vertically split practice data from one table."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: dvfl split customers.csv --id customer --label paid --guests 4 --overlap 0.3 --out practice"


def split(
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder for the files.")],
    table: Annotated[
        Path | None, typer.Argument(metavar="TABLE", help="One table, CSV or Parquet, to be split.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="A data set by its name in the place of TABLE.")] = None,
    guests: Annotated[int | None, typer.Option(min=1, help="Guests that share the columns; 4 of a table.")] = None,
    overlap: Annotated[float, typer.Option(help="Share of the rows that every guest has.")] = 0.3,
    labelled: Annotated[
        int | None, typer.Option(help="How many of those have labels; all of them unless given.")
    ] = None,
    test: Annotated[float, typer.Option(help="Share of TABLE's rows that go to test files.")] = 0.0,
    id: Annotated[str | None, typer.Option(metavar="COLUMN", help="TABLE's id column.")] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="TABLE's label column.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw.")] = 0,
    data_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Where data files lie (docs/data.md).")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Make practice data: guest-1.parquet .., labels.parquet, some rows at all guests and each other at one."""
    from dvfl.data.tables import practice
    from dvfl.errors import UserError

    shares = practice.Shares(overlap, labelled, seed)
    if (table is None) == (dataset is None):
        raise UserError("dvfl split: either TABLE or --dataset NAME is right")
    if table is not None:
        if id is None or label is None:
            raise UserError(f"{table}: --id COLUMN and --label COLUMN are needed with a table")
        whole = practice.from_table(table, id, label, guests or 4)
        files = practice.split(whole, test, shares)
    else:
        assert dataset is not None
        if id is not None or label is not None or test:
            raise UserError("--id, --label and --test go with TABLE: a data set has labels and test rows of its own")
        whole, tests = practice.from_dataset(dataset, guests, data_dir, seed)
        files = practice.split(whole, tests, shares)
    practice.write(files, out)
    width = max(map(len, files)) + len(".parquet")
    for name, frame in files.items():
        typer.echo(f"{f'{name}.parquet':<{width}}  {len(frame):>9,} rows, {frame.shape[1] - 1} columns and the id")
    tables = [word for name in files if name.startswith("guest-") for word in ("--table", str(out / f"{name}.parquet"))]
    command = ["dvfl", "train", *tables, "--labels", str(out / "labels.parquet"), "--id", whole.id_column]
    typer.echo(f"Train on it: {shlex.join(command)}")
