"""`dvfl reproduce`: the paper's tables and figures, ours beside the published numbers."""

from pathlib import Path
from typing import Annotated, Literal

import typer

EXAMPLE = "Example: dvfl reproduce table1 --preset paper --rows 10000 --seeds 2 --out results/small"


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="table1, redundancy, communication, intersection, misalignment, width, datasets, time,"
            " simclr, memory, or all."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results go; one that was stopped goes on there.")],
    preset: Annotated[str, typer.Option(help="paper: its hyperparameters to the letter; tuned: our best.")] = "paper",
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Trainings of every cell; as many as the experiment says (3 to 30) unless given."),
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Training rows; all unless given.")] = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"], typer.Option(help="auto takes a GPU where there is one.")
    ] = "auto",
    data_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Where data files lie (docs/data.md).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress; only where the results are.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Run an experiment of the paper and write NAME.json, NAME.md, NAME.svg and report.html."""
    from dvfl.cli.block_progress import BlockLines
    from dvfl.cli.interrupts import Interrupted, Interrupts
    from dvfl.cli.options import chosen_device
    from dvfl.experiments.paper import chosen
    from dvfl.experiments.reproduce import REPORT, Order
    from dvfl.experiments.reproduce import reproduce as carry_out
    from dvfl.strategies.presets import check_preset

    chosen(name)
    check_preset(preset)
    order = Order(name, preset, seeds, rows, chosen_device(device), data_dir)
    with Interrupts():
        try:
            results = carry_out(order, out, BlockLines(quiet))
        except Interrupted as stop:
            raise Interrupted(
                "stopped; the same command goes on with the blocks that are missing", stop.signum
            ) from stop
    for one in results:
        typer.echo(
            f"{one.experiment}: {len(one.cells)} cells, {one.seconds:.0f} s of training, {out / one.experiment}.md"
        )
    typer.echo(str(out / REPORT))
