"""How many updates split networks make under Table 1's faults, preset `paper`: counted, without training.

    python benchmarks/updates.py --data-dir DIR

Prints, by strategy and column, the rounds in which the host learned (mean over seeds, and their share of all rounds)
and the guests that were heard in them.
"""

import argparse
from pathlib import Path

import numpy as np

from dvfl.data import load
from dvfl.data.outages import read_outages
from dvfl.parties.faults.fault_set import Faults
from dvfl.reproduce.outcome.experiment import MNIST
from dvfl.reproduce.pages.table1_findings import label
from dvfl.reproduce.paper import table1
from dvfl.strategies import STRATEGIES
from dvfl.strategies.presets import preset
from dvfl.strategies.split.split_training import EndToEnd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    data = load(MNIST.dataset, data_dir=arguments.data_dir)
    faulty = [condition for condition in table1.conditions() if condition["kind"] != "none"]
    faults = [
        Faults.parse(table1.faults(condition), read_outages) for condition in faulty for _ in range(arguments.seeds)
    ]
    seeds = list(range(arguments.seeds)) * len(faulty)
    print("| strategy | column | updates | share of rounds | guests heard |\n| --- | --- | --- | --- | --- |")
    for name in ("splitnn-skip", "splitnn-zeros"):
        simulation = STRATEGIES.find(name)(data, preset("paper", data, name), seeds, faults=faults)
        assert isinstance(simulation, EndToEnd)
        rounds = simulation.epochs * simulation.rows.iterations
        masks = simulation.algorithm.masks(simulation.rows.iterations, rounds)  # the first epoch's are made already
        learned = masks["learn"].reshape(rounds, len(faulty), -1)
        heard = masks["heard"].reshape(rounds, len(faulty), arguments.seeds, -1).sum(-1)
        for number, condition in enumerate(faulty):
            own = learned[:, number]
            text = label((condition["kind"], condition["up"]))
            guests = np.mean(heard[:, number][own])
            print(f"| {name} | {text} | {own.sum(0).mean():,.0f} | {100 * own.mean():.2f} % | {guests:.2f} |")


if __name__ == "__main__":
    main()
