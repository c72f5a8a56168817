"""What one corrupt guest costs at prediction, with and without the screen, and how well it is found.

    python benchmarks/corrupt_guests.py --out DIR --data-dir DIR --device cuda

Preset `tuned` for absence. One guest at a time sends wrong encodings of all test rows, in batches of 64. With the
screen (parties/screening.py) it is absent for a batch in which it is suspected. Writes DIR/corrupt_guests.json and
DIR/corrupt_guests.md: test accuracy, the area under the curve of the culprit's score against its score when it is right
(batches of 64, and rows by themselves), and how often somebody is suspected where nothing is wrong.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from missing_parties import machine
from numpy.typing import NDArray
from torch import Tensor

from dvfl.data import load
from dvfl.data.split.vertical import fewer_rows
from dvfl.files import write_json, write_text
from dvfl.parties.faults.corruption import HOWS, How, corrupted
from dvfl.parties.numerics.randomness import numpy_generator, torch_generator
from dvfl.parties.screening import Screen, fit_screen
from dvfl.settings.training import Settings
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.presets import for_absence, preset

BATCH = 64
Exact = NDArray[np.float64]


class Asked:
    """Test rows of one replica as guests encode them, in batches, and what the owner makes of them."""

    def __init__(self, training: Dvfl, replica: int, encodings: Tensor, order: NDArray[np.int64]) -> None:
        self._training, self._replica = training, replica
        rows = order[: len(order) // BATCH * BATCH]
        self.b = encodings[replica, torch.from_numpy(rows).to(encodings.device)]  # (rows, all widths)
        self._y = training.data.y_test[rows]
        self._columns = columns_of(training)

    def spoiled(self, guest: int, how: How) -> Tensor:
        """The encodings with a guest's wrong, batch by batch."""
        made = self.b.clone()
        for number, batch in enumerate(made.split(BATCH)):
            own = batch[:, self._columns[guest]]
            order = torch.from_numpy(numpy_generator(number, "wrong rows", how, guest).permutation(BATCH))
            noise = torch.randn(own.shape, generator=torch_generator(number, "wrong noise", guest))
            own.copy_(corrupted(own.clone(), how, order.to(own.device), noise.to(own.device)))
        return made

    def parts(self, b: Tensor) -> list[NDArray[np.float32]]:
        """Each guest's."""
        return guest_parts(b, self._columns)

    def batches(self, b: Tensor) -> list[list[NDArray[np.float32]]]:
        """Each guest's, batch by batch."""
        parts = self.parts(b)
        return [[own[at : at + BATCH] for own in parts] for at in range(0, len(b), BATCH)]

    def accuracy(self, b: Tensor, suspects: list[list[int]] | None = None) -> float:
        """In percent; `suspects` of each batch are absent."""
        stack, present = self._training.stack, torch.ones(len(b), len(self._columns), dtype=torch.bool)
        for number, gone in enumerate(suspects or ()):
            present[number * BATCH : (number + 1) * BATCH, gone] = False
        # All replicas are asked, since they are one stack; this one's answer counts.
        every, marks = b.expand(stack.replicas, -1, -1), present.to(b.device).expand(stack.replicas, -1, -1)
        outputs = stack.predict(stack.encode_hosts(every, marks), gaps=True)[self._replica]
        return float((outputs.argmax(-1).cpu().numpy() == self._y).mean() * 100)


def columns_of(training: Dvfl) -> list[slice]:
    """Where each guest's encodings are."""
    ends = np.cumsum(training.stack.latents).tolist()
    return [slice(end - width, end) for width, end in zip(training.stack.latents, ends, strict=True)]


def guest_parts(b: Tensor, columns: list[slice]) -> list[NDArray[np.float32]]:
    """Each guest's encodings, of (rows, all widths)."""
    whole = b.cpu().numpy()
    return [np.ascontiguousarray(whole[:, own]) for own in columns]


def area(right: Exact, wrong: Exact) -> float:
    """How likely a wrong one has the larger score; ties count half."""
    ordered = np.sort(right)
    below, up_to = (np.searchsorted(ordered, wrong, side=side) for side in ("left", "right"))
    return float((below + up_to).mean() / 2 / len(right))


def measured(screen: Screen, asked: Asked) -> list[dict[str, Any]]:
    """One replica: a line for every guest and kind of corruption."""
    clean = np.stack([screen.scores(batch) for batch in asked.batches(asked.b)])  # (batches, guests)
    rows = screen.row_scores(asked.parts(asked.b))
    made = []
    for guest in range(clean.shape[1]):
        for how in HOWS:
            b = asked.spoiled(guest, how)
            batches = asked.batches(b)
            suspects = [screen.suspects(batch) for batch in batches]
            wrong = np.array([screen.scores(batch)[guest] for batch in batches])
            made.append(
                {
                    "guest": guest + 1,
                    "how": how,
                    "screen off": asked.accuracy(b),
                    "screen on": asked.accuracy(b, suspects),
                    "batch AUC": area(clean[:, guest], wrong),
                    "row AUC": area(rows[:, guest], screen.row_scores(asked.parts(b))[:, guest]),
                    "found": float(np.mean([guest in found for found in suspects])),
                    "alone": float(np.mean([found == [guest] for found in suspects])),
                }
            )
    return made


def alarms(screen: Screen, asked: Asked) -> float:
    """The share of batches in which somebody is suspected although nothing is wrong."""
    return float(np.mean([bool(screen.suspects(batch)) for batch in asked.batches(asked.b)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--rows", type=int, help="training rows; all unless given")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--shuffles", type=int, default=10, help="orders of the test rows that alarms are counted in")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    data = fewer_rows(load(given.dataset, data_dir=given.data_dir), given.rows)
    settings, start = for_absence(preset("tuned", data)), time.perf_counter()
    assert isinstance(settings, Settings)
    training = Dvfl(data, settings, range(given.seeds), device=given.device)
    training.run()
    with torch.no_grad():
        sets = training.tables.train(), training.tables.test()
        train, test = (training.stack.encode_guests([one.to(training.device) for one in tables]) for tables in sets)
    whole, lines_of, counted = len(data.y_test), [], []
    for replica in range(given.seeds):

        def asked(order: NDArray[np.int64], replica: int = replica) -> Asked:
            return Asked(training, replica, test, order)

        shuffled = [asked(numpy_generator(n, "asked").permutation(whole)) for n in range(given.shuffles)]
        screen = fit_screen(guest_parts(train[replica], columns_of(training)))
        first = shuffled[0]
        suspects = [screen.suspects(batch) for batch in first.batches(first.b)]
        counted.append(
            {
                "accuracy": first.accuracy(first.b),
                "accuracy with the screen": first.accuracy(first.b, suspects),
                "alarms": float(np.mean([alarms(screen, one) for one in shuffled])),
                "alarms in the file's order": alarms(screen, asked(np.arange(whole))),
            }
        )
        lines_of.append(measured(screen, first))
        print(f"seed {replica}: {counted[-1]}, {time.perf_counter() - start:.0f} s", flush=True)
    cells = [
        {key: values[0][key] if key in ("guest", "how") else [one[key] for one in values] for key in values[0]}
        for values in zip(*lines_of, strict=True)
    ]
    rows = f" --rows {given.rows}" if given.rows else ""
    words = f"--dataset {given.dataset}{rows} --seeds {given.seeds} --shuffles {given.shuffles} --device {given.device}"
    command = f"python benchmarks/corrupt_guests.py {words}"
    usual = {key: float(np.mean([one[key] for one in counted])) for key in counted[0]}
    text = ["# A corrupt guest at prediction", "", f"`{command} --out DIR`", ""]
    text += [f"Nothing wrong: {', '.join(f'{key} {value:.4f}' for key, value in usual.items())}.", ""]
    keys = [key for key in cells[0] if key not in ("guest", "how")]
    text += ["| guest | how | " + " | ".join(keys) + " | lost |", "| --- | --- |" + " --- |" * (len(keys) + 1)]
    for cell in cells:
        means = [float(np.mean(cell[key])) for key in keys]
        gone = usual["accuracy"] - float(np.mean(cell["screen on"]))
        shown = " | ".join(f"{mean:.3f}" if mean <= 1 else f"{mean:.2f}" for mean in means)
        text.append(f"| {cell['guest']} | {cell['how']} | {shown} | {gone:.2f} |")
    plain = {"command": command, **machine(given.device), "seconds": round(time.perf_counter() - start, 1)}
    given.out.mkdir(parents=True, exist_ok=True)
    write_json(given.out / "corrupt_guests.json", {**plain, "nothing wrong": counted, "cells": cells})
    write_text(given.out / "corrupt_guests.md", "\n".join(text) + "\n")
    print("\n".join(text))


if __name__ == "__main__":
    main()
