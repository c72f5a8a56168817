"""Entity augmentation against absent values: n labelled rows at every guest, m more labelled rows at each guest alone.

    python benchmarks/entity_augmentation.py --data-dir DIR            # on held-out training rows
    python benchmarks/entity_augmentation.py --data-dir DIR --test     # on test rows, once

Every guest has the n rows and 2,048 of its own, of which the first m have labels; so guests learn the same whatever m.
`aligned` trains the owner on the n rows alone, `augmented` on them and m artificial entities, `absent` on them and all
4 m others, where three guests are absent each. One host, which concatenates, and about 300 owner rounds for everyone;
otherwise preset `tuned` for few labels. Prints a table: mean accuracy and 2 sigma over seeds.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import Tensor

from dvfl.data import VerticalData, load
from dvfl.data.split.vertical import ABSENT
from dvfl.parties.guest import Guest
from dvfl.parties.numerics.randomness import numpy_generator
from dvfl.settings.training import Settings
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.tuned_preset import tuned

OWN, HELD, ROUNDS = 2048, 5000, 300


def split(data: VerticalData, aligned: int, seed: int, test: bool) -> VerticalData:
    """All labels of rows that every guest has, then of those of the first guest alone, of the second, and so on."""
    shuffle = numpy_generator(seed, "augmentation").permutation(data.rows)
    held, rest = np.split(shuffle, [HELD])
    common, guests = rest[:aligned], len(data.guests)
    own = [rest[aligned + OWN * guest : aligned + OWN * (guest + 1)] for guest in range(guests)]
    where = np.full((guests, aligned + OWN * guests), ABSENT)
    where[:, :aligned] = np.arange(aligned)
    tables = []
    for number, (guest, rows) in enumerate(zip(data.guests, own, strict=True)):
        first = aligned + OWN * number
        where[number, first : first + OWN] = np.arange(aligned, aligned + OWN)
        tests = guest.test if test else guest.train[held]
        tables.append(replace(guest, train=guest.train[np.concatenate([common, rows])], test=tests))
    y = data.y_train[np.concatenate([common, *own])]
    return replace(
        data, guests=tuple(tables), y_train=y, labelled=where, y_test=data.y_test if test else data.y_train[held]
    )


def with_labels(data: VerticalData, aligned: int, more: int) -> VerticalData:
    """The data with the labels of the common rows and of so many of each guest's own."""
    number = np.arange(len(data.y_train)) - aligned
    kept = (number < 0) | (number % OWN < more)
    assert data.labelled is not None
    return replace(data, y_train=data.y_train[kept], labelled=data.labelled[:, kept])


def trained_guests(data: VerticalData, settings: Settings, seed: int) -> list[Tensor]:
    """The guests' parameters, which no label has a part in."""
    training = Dvfl(data, settings, [seed])
    while not training.guests.finished:
        training.advance()
    return [g.guest.learner.parameters.clone() for g in training.stack.groups if isinstance(g.guest, Guest)]


def accuracy(data: VerticalData, settings: Settings, seed: int, guests: list[Tensor], rows: int) -> float:
    """Of an owner that trains on so many samples, in as many rounds as any other."""
    entries = rows * (1 + settings.copies)
    settings = replace(settings, owner_epochs=max(1, round(ROUNDS / -(-entries // settings.batch))))
    training = Dvfl(data, settings, [seed])
    for group, parameters in zip(training.stack.groups, guests, strict=True):
        assert isinstance(group.guest, Guest)
        group.guest.learner.parameters.copy_(parameters)
    training.guests.epoch = settings.guest_epochs
    training.run()
    return float(training.scores()[0])


def compared(data: VerticalData, n: int, m: int, settings: Settings, seed: int, guests: list[Tensor]) -> list[float]:
    """The accuracy of `aligned`, or those of `augmented` and `absent` where there are more labels."""
    labelled = with_labels(data, n, m)
    if m == 0:
        return [accuracy(labelled, settings, seed, guests, n)]
    augmented = replace(settings, entity_augmentation=True)
    return [
        accuracy(labelled, augmented, seed, guests, n + m),
        accuracy(labelled, settings, seed, guests, n + m * len(data.guests)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--aligned", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--unaligned", type=int, nargs="+", default=[0, 512, 2048])
    parser.add_argument("--test", action="store_true")
    given = parser.parse_args()
    mnist = load("mnist", data_dir=given.data_dir)
    print("| n | m | aligned | augmented | absent |\n| --- | --- | --- | --- | --- |")
    for n in given.aligned:
        scores: dict[int, list[list[float]]] = {m: [] for m in given.unaligned}
        for seed in range(given.seeds):
            data = split(mnist, n, seed, given.test)
            settings = replace(tuned(with_labels(data, n, 0)), hosts=1)
            guests = trained_guests(data, settings, seed)
            for m in given.unaligned:
                scores[m].append(compared(data, n, m, settings, seed, guests))
                print(f"n {n}, m {m}, seed {seed}: {scores[m][-1]}", file=sys.stderr, flush=True)
        for m, by_seed in scores.items():
            cells = [f"{np.mean(one):.2f} ± {2 * np.std(one, ddof=1):.2f}" for one in zip(*by_seed, strict=True)]
            print(f"| {n} | {m} | {' | '.join([*cells, '', ''] if m == 0 else ['', *cells])} |", flush=True)


if __name__ == "__main__":
    main()
