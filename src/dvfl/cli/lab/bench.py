"""`dvfl bench`: how fast this machine trains."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

EXAMPLE = "Example: dvfl bench training --device cpu --json"

_Device = Annotated[Literal["auto", "cpu", "cuda"], typer.Option(help="auto takes a GPU where there is one.")]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout in place of a table.")]
_Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Measure how fast this machine trains.", epilog=EXAMPLE
)


@app.command(epilog=EXAMPLE)
def training(
    device: _Device = "auto",
    rounds: Annotated[int, typer.Option(min=10, help="Rounds in an epoch that is timed.")] = 300,
    repeats: Annotated[int, typer.Option(min=1, help="Epochs timed of each kind; the median counts.")] = 5,
    as_json: _Json = False,
    debug: _Debug = False,
) -> None:
    """One replica of the paper's MNIST training beside plain per-party loops that compute the same losses."""
    from dvfl.lab.bench_training import EPOCHS, bench_training
    from dvfl.orders.options import chosen_device

    result = bench_training(chosen_device(device), rounds, repeats)
    if as_json:
        return _print(result)
    typer.echo(f"seconds of {', '.join(f'{count} {name}' for name, count in EPOCHS.items())} epochs at MNIST's size")
    typer.echo(f"{'':10}{'plain':>10}{'ours':>10}{'ratio':>8}{'floor':>10}")
    for name in (*EPOCHS, "overall"):
        row = result[name]
        figures = f"{row['plain_seconds']:10.1f}{row['ours_seconds']:10.1f}{row['ratio']:8.2f}"
        typer.echo(f"{name:10}{figures}{row['matmul_floor_seconds']:10.1f}")


@app.command(epilog="Example: dvfl bench scaling --plot docs/scaling.svg --json")
def scaling(
    device: _Device = "auto",
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the curves as an SVG.")] = None,
    as_json: _Json = False,
    debug: _Debug = False,
) -> None:
    """How the cost of an epoch grows with guests, hosts, rows and replicas."""
    from dvfl.errors import UserError
    from dvfl.lab.bench_scaling import bench_scaling, plot_scaling
    from dvfl.orders.options import chosen_device

    if plot is not None and not plot.resolve().parent.is_dir():
        raise UserError(f"--plot {plot}: the folder {plot.resolve().parent} does not exist")
    result = bench_scaling(chosen_device(device))
    if plot is not None:
        plot_scaling(result, plot)
    if as_json:
        return _print(result)
    for name in ("guests", "hosts", "rows", "replicas"):
        row = result[name]
        points = ", ".join(
            f"{value}: {seconds:.3g} s" for value, seconds in zip(row["values"], row["seconds"], strict=True)
        )
        typer.echo(f"{name:9} slope {row['slope']:.2f}   {points}")


@app.command(epilog="Example: dvfl bench transport --json")
def transport(
    messages: Annotated[int, typer.Option(min=10, help="Messages of about 160 KB that are timed.")] = 500,
    repeats: Annotated[int, typer.Option(min=1, help="Timings of each kind, in turn; the median counts.")] = 5,
    as_json: _Json = False,
    debug: _Debug = False,
) -> None:
    """Pushing encodings to a real broker beside plain nats-py publishing of the same bytes."""
    from dvfl.orders.extras import needed

    needed("federation", "nats", "cryptography", "nacl")
    from dvfl.lab.bench_transport import bench_transport

    result = bench_transport(messages, repeats)
    if as_json:
        return _print(result)
    for name, value in result.items():
        typer.echo(f"{name.replace('_', ' '):26}{value:10.2f}")


def _print(result: dict[str, Any]) -> None:
    typer.echo(json.dumps(result))
