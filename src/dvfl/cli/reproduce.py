"""`dvfl reproduce`: the paper's tables and figures, ours beside the published numbers."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dvfl.errors import UserError

if TYPE_CHECKING:
    from dvfl.reproduce.workers import Workers

EXAMPLE = """Example: dvfl reproduce table1 --preset paper --rows 10000 --seeds 2 --out results/small

On a Ray cluster: dvfl reproduce table1 --ray auto --device cuda --out results/table1"""


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
    workers: Annotated[
        int, typer.Option(min=1, help="Processes of this machine to spread blocks over; with GPUs, one each.")
    ] = 1,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Ray cluster to spread them over: auto, local or HOST:PORT."),
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Where data files lie (docs/data.md).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress; only where the results are.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Run an experiment of the paper and write NAME.json, NAME.md, NAME.svg and report.html."""
    from dvfl.reproduce.paper import chosen
    from dvfl.reproduce.reproduce import REPORT, Order
    from dvfl.reproduce.reproduce import reproduce as carry_out
    from dvfl.runs.interrupts import Interrupted, Interrupts
    from dvfl.show.block_progress import BlockLines
    from dvfl.strategies.presets import check_preset

    chosen(name)
    check_preset(preset)
    with _workers(workers, ray, device) as spread, Interrupts():
        order = Order(name, preset, seeds, rows, spread.device, data_dir)
        try:
            results = carry_out(order, out, BlockLines(quiet), spread)
        except Interrupted as stop:
            raise Interrupted(
                "stopped; the same command goes on with the blocks that are missing", stop.signum
            ) from stop
    for one in results:
        typer.echo(
            f"{one.experiment}: {len(one.cells)} cells, {one.seconds:.0f} s of training, {out / one.experiment}.md"
        )
    typer.echo(str(out / REPORT))


def _workers(count: int, ray: str | None, device: str) -> "AbstractContextManager[Workers]":
    from dvfl.orders.extras import needed
    from dvfl.orders.options import chosen_device
    from dvfl.reproduce.worker_pool import WorkerPool
    from dvfl.reproduce.workers import ThisProcess

    if ray is not None:
        if count > 1:
            raise UserError("--workers does not go with --ray: the cluster's own resources say how many")
        needed("ray", "ray")
        from dvfl.reproduce.ray_cluster import ray_workers

        return ray_workers(ray, device)
    here = chosen_device(device)
    return nullcontext(ThisProcess(here) if count == 1 else WorkerPool(count, here))
