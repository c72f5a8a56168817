"""`dvfl train`: one training of a simulated federation, from data to report."""

from pathlib import Path
from typing import Annotated, Literal

import typer

EXAMPLE = "Example: dvfl train --dataset digits --seeds 3 --faults connection:0.3:0.1 --out runs/first"


def train(
    dataset: Annotated[str | None, typer.Option(help="A data set by its name; digits unless said otherwise.")] = None,
    strategy: Annotated[str | None, typer.Option(help="The algorithm; dvfl unless said otherwise.")] = None,
    preset: Annotated[
        str | None, typer.Option(help="paper: its hyperparameters to the letter; tuned (the default): our best.")
    ] = None,
    hosts: Annotated[
        int | None, typer.Option(min=0, help="Number of hosts; the preset's unless given, which is 4 mostly.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Trainings at once, seeds 0 .. N-1; 1 by default.")] = None,
    faults: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND:R_d:R_u",
            help="connection, guest or host; R_d: dies, R_u: rejoins. Or recorded:FILE, delay:D, reorder:D,"
            " duplicate:D, corrupt:HOW:PHASE:GUEST (docs/comparison.md). May repeat.",
        ),
    ] = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"], typer.Option(help="auto takes a GPU where there is one.")
    ] = "auto",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The run folder; a fresh one under runs/ unless given.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in --out; options need not be repeated.")
    ] = False,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where data files lie, prepared or as published (docs/data.md).")
    ] = None,
    split: Annotated[
        Literal["official", "subject", "random"] | None,
        typer.Option(help="How test rows are chosen; parkinsons alone has a choice: subject (the default) or random."),
    ] = None,
    split_seed: Annotated[
        int | None, typer.Option(min=0, help="Another draw of training and test rows; 0 by default.")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Training rows; all unless given.")] = None,
    guests: Annotated[int | None, typer.Option(min=1, help="Number of guests that share the columns.")] = None,
    table: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A guest's own table, CSV or Parquet. Repeat for each.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(metavar="FILE", help="The owner's labels, CSV or Parquet.")] = None,
    id: Annotated[str | None, typer.Option(metavar="COLUMN", help="The id column that joins the tables.")] = None,
    label_column: Annotated[str | None, typer.Option(metavar="COLUMN", help="Which column of --labels.")] = None,
    task: Annotated[
        Literal["auto", "classify", "regress"] | None, typer.Option(help="What the labels are; auto by default.")
    ] = None,
    missing: Annotated[
        Literal["impute", "forbid"] | None, typer.Option(help="Missing values in tables; impute by default.")
    ] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Rows a round.")] = None,
    period: Annotated[
        int | None,
        typer.Option(min=1, help="K: guests push in every K-th epoch; 1, and with --adversary the last alone."),
    ] = None,
    w_g: Annotated[int | None, typer.Option(min=1, help="W_g: width of all guests' encodings together.")] = None,
    registers: Annotated[
        Literal["batch", "row"] | None,
        typer.Option(help="What a host holds of a guest: its newest batch (the paper's), or the newest of each row."),
    ] = None,
    guest_objective: Annotated[
        Literal["reconstruction", "simclr"] | None,
        typer.Option(help="What guests learn by; simclr compares altered copies of rows."),
    ] = None,
    host_objective: Annotated[
        Literal["reconstruction", "simclr"] | None, typer.Option(help="What hosts learn by.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="Of simclr's similarities; 0.05 or more.")] = None,
    adversary: Annotated[
        float | None,
        typer.Option(
            metavar="WEIGHT",
            help="Of a decoder that guests of simclr learn against, so that encodings are harder to invert; 0.5, say.",
        ),
    ] = None,
    guest_epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of the guests.")] = None,
    host_epochs: Annotated[int | None, typer.Option(min=0, help="Epochs of the hosts, replay included.")] = None,
    owner_epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of the owner.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of a split network.")] = None,
    entity_augmentation: Annotated[
        bool,
        typer.Option(
            "--entity-augmentation",
            help="The owner also learns from artificial entities: labelled rows of different ones, one of each guest.",
        ),
    ] = False,
    absent: Annotated[
        bool,
        typer.Option(
            "--absent",
            help="Learn to do without any party that is down at prediction; sets the next three unless they are given.",
        ),
    ] = False,
    guest_dropout: Annotated[
        float | None, typer.Option(min=0, help="How often a guest is hidden from a host in training, row by row.")
    ] = None,
    host_dropout: Annotated[
        float | None, typer.Option(min=0, help="How often a host is hidden from the owner in training, row by row.")
    ] = None,
    partial: Annotated[
        int | None, typer.Option(min=0, help="Times more that hosts encode labelled rows, with guests hidden.")
    ] = None,
    gradient_noise: Annotated[
        float | None,
        typer.Option(min=0, help="Noise on what a split network sends back, as a share of the gradients' mean length."),
    ] = None,
    gradient_defence: Annotated[
        Literal["none", "max_norm", "sign"] | None,
        typer.Option(help="What else hides labels there: all rows as long as the longest, or signs alone."),
    ] = None,
    clip: Annotated[
        float | None,
        typer.Option(help="The longest encoding of a row that leaves a guest; longer ones are scaled down."),
    ] = None,
    noise: Annotated[
        float | None, typer.Option(help="Gaussian noise on all that leaves a guest: its deviation, in units of --clip.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="In place of --noise: the most that all releases of a row's encoding may cost, at delta 1e-5"
            " (needs dvfl[privacy])."
        ),
    ] = None,
    retries: Annotated[
        int | None, typer.Option(min=0, help="How often splitnn-wait asks again for a lost message.")
    ] = None,
    shield: Annotated[
        float | None,
        typer.Option(
            metavar="STRENGTH",
            help="Encodings that are harder to invert, with noise of so many times their size; 0.6, say.",
        ),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Keep what parties saw of each other, for dvfl audit (some 100 MB).")
    ] = False,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Curves for TensorBoard, one folder a seed, as it trains.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress; only the result.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Train a simulated federation and write a run folder: result.json, history.json, models/ and report.html."""
    from dvfl.orders.options import Given
    from dvfl.orders.running import run

    data = {
        "dataset": dataset,
        "data_dir": data_dir,
        "split": split,
        "split_seed": split_seed,
        "rows": rows,
        "guests": guests,
        "tables": table or None,
        "labels": labels,
        "id": id,
        "label_column": label_column,
        "task": task,
        "missing": missing,
    }
    overrides = {
        "hosts": hosts,
        "batch": batch,
        "period": period,
        "registers": registers,
        "w_g": w_g,
        "guest_objective": guest_objective,
        "host_objective": host_objective,
        "temperature": temperature,
        "adversary": adversary,
        "guest_epochs": guest_epochs,
        "host_epochs": host_epochs,
        "owner_epochs": owner_epochs,
        "epochs": epochs,
        "entity_augmentation": entity_augmentation or None,
        "guest_dropout": guest_dropout,
        "host_dropout": host_dropout,
        "partial": partial,
        "gradient_noise": gradient_noise,
        "gradient_defence": gradient_defence,
        "clip": clip,
        "noise": noise,
        "retries": retries,
    }
    given = Given(
        data=data,
        strategy=strategy,
        preset=preset,
        seeds=seeds,
        faults=faults or None,
        device=device,
        overrides=overrides,
        absent=absent,
        shield=shield,
        epsilon=epsilon,
    )
    run(given, out, resume=resume, quiet=quiet, tensorboard=tensorboard, record=record)
