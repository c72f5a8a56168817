"""`dvfl federation`: make a federation, run all of it here, see how it is doing."""

from pathlib import Path
from typing import Annotated

import typer

from dvfl.cli import custody
from dvfl.errors import UserError

_Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
EXAMPLE = "Example: dvfl federation init practice --guests 4 --hosts 2 --dataset digits; dvfl federation up practice"

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Real parties: make a federation, run it, watch it.",
    epilog=EXAMPLE,
)
app.command(epilog=custody.CREATE)(custody.create)
app.command(epilog=custody.REMOVE)(custody.remove)


@app.command(epilog="Example: dvfl federation init practice --guests 4 --hosts 2 --dataset digits")
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder.")],
    guests: Annotated[int, typer.Option(min=1, help="Guests.")] = 4,
    hosts: Annotated[int, typer.Option(min=1, help="Hosts, each with its own broker.")] = 2,
    dataset: Annotated[str, typer.Option(help="Practice data, split among the guests.")] = "digits",
    preset: Annotated[str, typer.Option(help="paper: its hyperparameters to the letter; tuned: our best.")] = "tuned",
    seed: Annotated[int, typer.Option(min=0, help="Of the run.")] = 0,
    rows: Annotated[int | None, typer.Option(min=1, help="Training rows; all unless given.")] = None,
    data_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Where data files lie (docs/data.md).")] = None,
    align: custody.Align = "union",
    labelled: Annotated[
        int | None, typer.Option(min=1, help="So many labelled rows for all; the rest is shared out among the guests.")
    ] = None,
    debug: _Debug = False,
) -> None:
    """Make a federation for practice: all parties' folders, their data and all keys, in one place."""
    from dvfl.orders.extras import needed
    from dvfl.orders.practice import make_practice

    needed("federation", "nats", "cryptography", "nacl")
    if align == "given":
        raise UserError("--align given: practice parties have no slots of their own; union or star is right")
    make_practice(folder, guests, hosts, dataset, preset, seed, rows, data_dir, align, labelled)
    typer.echo(f"{folder}: {guests} guests, {hosts} hosts and the owner, with practice data of {dataset}.")
    typer.echo("All keys were made in one place: good for practice, not for secrets.")
    typer.echo(f"Run it here: dvfl federation up {folder}")


@app.command(epilog="Example: dvfl federation up practice --keep --page")
def up(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that init made.")],
    keep: Annotated[bool, typer.Option("--keep", help="Stay up after the result, for predictions.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Show it as a web page, as dvfl serve does.")] = False,
    page_port: Annotated[int, typer.Option(min=0, max=65535, help="Where, on 127.0.0.1; 0: a free port.")] = 8080,
    debug: _Debug = False,
) -> None:
    """Run all parties here, each in its own process, until the owner's result is written."""
    from dvfl.orders.extras import needed
    from dvfl.orders.federation_table import run_up

    needed("federation", "nats", "cryptography", "nacl")
    if page:
        needed("serve", "fastapi", "uvicorn", "prometheus_client")
    run_up(folder, keep, page_port if page else None)


@app.command(epilog="Example: dvfl federation status practice")
def status(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that init made, or one party's.")],
    debug: _Debug = False,
) -> None:
    """How the parties in a folder are doing, from what they last wrote there."""
    from dvfl.orders.federation_table import show_status

    show_status(folder)
