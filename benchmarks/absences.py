"""How often to hide guests in training where rows lack some: accuracy on held-out training rows by `guest_dropout`.

    python benchmarks/absences.py --dataset digits
    python benchmarks/absences.py --dataset mnist --rows 6000 --data-dir DIR

Every guest lacks a share of all rows, drawn apart from the others. A sixth of the training rows, with absences alike,
is scored; test rows take no part. `complete`: the same training without absences. `intersection`: rows that all have.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from dvfl.data import VerticalData, load
from dvfl.data.vertical import completed, fewer_rows, intersection, with_absences
from dvfl.parties.randomness import numpy_generator
from dvfl.strategies.dvfl import Dvfl
from dvfl.strategies.presets import tuned

DROPOUTS = (0.0, 0.1, 0.2, 0.3)


def held_out(data: VerticalData) -> VerticalData:
    """The training rows alone, a sixth of them in the place of the test rows."""
    shuffle = numpy_generator(0, "tuning", data.name).permutation(data.rows)
    held, kept = np.split(shuffle, [data.rows // 6])
    guests = tuple(replace(guest, train=guest.train[kept], test=guest.train[held]) for guest in data.guests)
    return replace(data, guests=guests, y_train=data.y_train[kept], y_test=data.y_train[held])


def accuracies(data: list[VerticalData], **change: float) -> str:
    """Mean and twice the deviation over seeds, each with data of its own."""
    settings = replace(tuned(data[0]), **change)  # type: ignore[arg-type]
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
    print("| rows | guest_dropout | held-out accuracy, % | 2 sigma |\n| --- | --- | --- | --- |")
    for dropout in DROPOUTS:
        print(f"| all | {dropout} | {accuracies(data, guest_dropout=dropout)} |", flush=True)
    print(f"| labelled at every guest | 0.2 | {accuracies([completed(one) for one in data], guest_dropout=0.2)} |")
    alone = [replace(intersection(one), tested=one.tested) for one in data]
    print(f"| intersection | 0.2 | {accuracies(alone, guest_dropout=0.2)} |", flush=True)
    print(f"| complete | 0.0 | {accuracies([whole] * given.seeds)} |")


if __name__ == "__main__":
    main()
