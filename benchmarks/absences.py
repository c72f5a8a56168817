"""How often to hide guests in training where rows lack some: accuracy on held-out training rows by `guest_dropout`.

    python benchmarks/absences.py --dataset digits
    python benchmarks/absences.py --dataset mnist --rows 6000 --data-dir DIR

Every guest lacks a share of all rows, drawn apart from the others. A sixth of the training rows, with absences alike,
is scored; test rows take no part. The last three lines have the preset's own settings: with the labels alone of rows
that every guest has, with such rows alone, and without absences.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from dvfl.data import VerticalData, load
from dvfl.data.split.vertical import completed, fewer_rows, intersection, with_absences
from dvfl.parties.numerics.randomness import numpy_generator
from dvfl.settings.training import Settings
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.tuned_preset import tuned

DROPOUTS = {"autoencoder": (0.0, 0.1, 0.2, 0.3), "concatenate": (0.0, 0.1, 0.2, 0.3, 0.4)}


def held_out(data: VerticalData) -> VerticalData:
    """The training rows alone, a sixth of them in the place of the test rows."""
    shuffle = numpy_generator(0, "tuning", data.name).permutation(data.rows)
    held, kept = np.split(shuffle, [data.rows // 6])
    guests = tuple(replace(guest, train=guest.train[kept], test=guest.train[held]) for guest in data.guests)
    return replace(data, guests=guests, y_train=data.y_train[kept], y_test=data.y_train[held])


def accuracies(data: list[VerticalData], settings: Settings) -> str:
    """Mean and twice the deviation over seeds, each with data of its own."""
    scores = []
    for seed, one in enumerate(data):  # one by one: with absences their tables differ in length
        training = Dvfl(one, settings, [seed])
        training.run()
        scores.append(training.scores()[0])
    return f"{np.mean(scores):.2f} | {2 * np.std(scores, ddof=1):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--share", type=float, default=0.3)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    whole = held_out(fewer_rows(load(given.dataset, data_dir=given.data_dir), given.rows))
    data = [with_absences(whole, given.share, seed) for seed in range(given.seeds)]
    settings = tuned(data[0])
    print("| rows | hosts | guest_dropout | held-out accuracy, % | 2 sigma |\n| --- | --- | --- | --- | --- |")
    for model, dropouts in DROPOUTS.items():
        for dropout in dropouts:
            tried = replace(settings, host_model=model, guest_dropout=dropout)  # type: ignore[arg-type]
            print(f"| all | {model} | {dropout} | {accuracies(data, tried)} |", flush=True)
    chosen = f"{settings.host_model} | {settings.guest_dropout}"
    print(
        f"| labels at every guest | {chosen} | {accuracies([completed(one) for one in data], settings)} |", flush=True
    )
    print(f"| intersection | {chosen} | {accuracies([intersection(one) for one in data], settings)} |", flush=True)
    print(f"| nothing absent | {chosen} | {accuracies([whole] * given.seeds, settings)} |")


if __name__ == "__main__":
    main()
