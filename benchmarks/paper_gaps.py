"""Why some baselines of preset paper stay below the paper's figures: the cell again with one choice changed.

    python benchmarks/paper_gaps.py buffers labels tables --out DIR --data-dir DIR

`buffers`: SplitNN-buffer whose host keeps the last encoding of every row, in place of the guest's last batch.
`labels`: SplitNN on few labels without held-out rows, with Adam 1e-3 everywhere, and with both.
`tables`: SplitNN on the tabular sets without held-out rows.

The changed cells are beside those of `dvfl reproduce`, on the same test rows; nothing is chosen by them. Writes
DIR/gap_NAME.json (every seed) and DIR/gaps.md with all that DIR has.
"""

import argparse
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dvfl.data.outages import read_outages
from dvfl.files import write_json, write_text
from dvfl.parties.faults.fault_set import Faults
from dvfl.parties.numerics.learner import Adam
from dvfl.reproduce.blocks import Training, settings_of
from dvfl.reproduce.outcome.experiment import MNIST, Change, Source
from dvfl.reproduce.outcome.statistics import summary
from dvfl.reproduce.pages.text_tables import number
from dvfl.reproduce.paper.intersection import LABELLED
from dvfl.reproduce.paper.published import DATASETS, INTERSECTION, TABLE1
from dvfl.reproduce.sources import Sources
from dvfl.reproduce.workers import machine
from dvfl.runs.run_folder import versions
from dvfl.simulation.rounds import Round
from dvfl.strategies.split.split_training import EndToEnd
from dvfl.strategies.split.splitnn import SplitNN

PRESET = "paper"
EVERYWHERE = Adam(1e-3, weight_decay=1e-6)
LABEL_CHANGES: dict[str, Change] = {
    "as in the preset": (),
    "no rows held out": (("validation", 0.0),),
    "Adam 1e-3 everywhere": (("guest_rule", EVERYWHERE),),
    "both": (("validation", 0.0), ("guest_rule", EVERYWHERE)),
}


class RowBuffer(SplitNN):
    """SplitNN whose host puts the row's own last encoding in the place of what is missing; zeros before the first."""

    def __init__(self) -> None:
        super().__init__("buffer")
        self._places = threading.local()  # of the rows of a round; parts of a stack run side by side

    def open(self, training: EndToEnd) -> None:
        super().open(training)
        model, rows = training.model, training.rows.entries
        assert len(model.groups) == 1, "guests of one width"
        members, latent = len(model.groups[0].members), model.latents[0]
        self._table = torch.zeros(model.replicas * rows, members, latent, device=model.device)
        self._first_row = (torch.arange(model.replicas, device=model.device) * rows)[:, None]

    def part(self, replicas: slice) -> Callable[[Round], Tensor]:
        run, body = self._training, super().part(replicas)

        def placed(t: Round) -> Tensor:
            self._places.now = (run.rows.at(run.feed, t)[replicas] + self._first_row[replicas]).flatten()
            return body(t)

        return placed

    def _complete(self, piece: Tensor, there: Tensor, substitute: Tensor) -> Tensor:
        places = self._places.now
        held = self._table.index_select(0, places).view(piece.shape[0], piece.shape[2], *self._table.shape[1:])
        made = torch.where(there, piece, held.transpose(1, 2))
        self._table.index_copy_(0, places, made.transpose(1, 2).flatten(0, 1))
        return made


def trained(
    strategy: str, source: Source, change: Change, faults: tuple[str, ...], seeds: int, given: Any
) -> list[float]:
    """Test accuracy by seed."""
    sources, device = given.sources, given.device
    data = [sources.data(source, seed) for seed in range(seeds)]
    settings = settings_of(Training(strategy, faults, 0, change, source), PRESET, data[0])
    known = [Faults.parse(faults, read_outages)] * seeds
    algorithm = RowBuffer() if strategy == "splitnn-buffer" else SplitNN("wait")
    simulation = EndToEnd(data, settings, range(seeds), algorithm=algorithm, faults=known, device=device)  # type: ignore[arg-type]
    simulation.run()
    return [round(float(score), 4) for score in simulation.scores()]


def buffers(given: Any) -> list[dict[str, Any]]:
    """The columns in which SplitNN-buffer is below the paper's figure."""
    cells = []
    for kind in ("connection", "guest"):
        for up in (0.5, 0.1):
            accuracy = trained("splitnn-buffer", MNIST, (), (f"{kind}:0.3:{up:g}",), given.seeds or 3, given)
            figure = TABLE1["splitnn-buffer"][kind, up]
            assert figure is not None
            cells.append(_cell(f"{kind} {up:g}", "the row's own last encoding", accuracy, figure[0]))
    return cells


def labels(given: Any) -> list[dict[str, Any]]:
    """Few labels."""
    cells = []
    for labelled in LABELLED:
        for name, change in LABEL_CHANGES.items():
            both = (*change, ("epochs", 160))
            accuracy = trained("splitnn-wait", Source(labelled=labelled), both, (), given.seeds or 10, given)
            cells.append(_cell(f"{labelled} labels", name, accuracy, INTERSECTION["splitnn-wait"][labelled]))
    return cells


def tables(given: Any) -> list[dict[str, Any]]:
    """The tabular sets."""
    cells = []
    for dataset, figure in DATASETS["splitnn-wait"].items():
        for name, change in (("as in the preset", ()), ("no rows held out", (("validation", 0.0),))):
            accuracy = trained("splitnn-wait", Source(dataset, "random"), change, (), given.seeds or 10, given)
            cells.append(_cell(dataset, name, accuracy, figure))
    return cells


def _cell(condition: str, change: str, accuracy: list[float], paper: float) -> dict[str, Any]:
    mean, two_sigma = summary(accuracy)
    return {
        "condition": condition,
        "change": change,
        "accuracy": accuracy,
        "mean": mean,
        "two_sigma": two_sigma,
        "paper_mean": paper,
    }


EXPERIMENTS = {"buffers": buffers, "labels": labels, "tables": tables}


def page(out: Path) -> str:
    """What the folder has, as text."""
    lines = ["# Baselines below the paper's figures in preset paper: one choice changed", ""]
    for name in EXPERIMENTS:
        file = out / f"gap_{name}.json"
        if not file.is_file():
            continue
        found = json.loads(file.read_text())
        where = ", ".join(f"{key} {value}" for key, value in found["machine"].items())
        lines += [f"## {name}", "", f"`{found['command']} --out DIR`, {where}", ""]
        lines += [
            "| condition | change | accuracy, % | 2 sigma | the paper's | seeds |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for cell in found["cells"]:
            figures = f"{number(cell['mean'])} | {number(cell['two_sigma'])} | {number(cell['paper_mean'])}"
            lines.append(f"| {cell['condition']} | {cell['change']} | {figures} | {len(cell['accuracy'])} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=EXPERIMENTS)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int)
    given = parser.parse_args()
    given.sources = Sources(given.data_dir, None)
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.names:
        start = time.perf_counter()
        cells = EXPERIMENTS[name](given)
        seeds = "" if given.seeds is None else f" --seeds {given.seeds}"
        plain = {
            "command": f"python benchmarks/paper_gaps.py {name}{seeds} --device {given.device}",
            "machine": machine(given.device),
            "versions": versions(),
            "seconds": round(time.perf_counter() - start, 1),
            "cells": cells,
        }
        write_json(given.out / f"gap_{name}.json", plain)
    write_text(given.out / "gaps.md", page(given.out))
    print(page(given.out))


if __name__ == "__main__":
    main()
