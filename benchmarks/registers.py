"""Batch registers against row registers: test accuracy with and without lost messages, and what hosts hold in memory.

    python benchmarks/registers.py --dataset mnist --rows 2000 --data-dir DIR

Prints a table. All trainings of one sort of registers are one stack; differences are row minus batch, paired by seed,
with their 95 % interval. Means and deviations leave out what Table 1's filter leaves out.
"""

import argparse
from collections import defaultdict
from pathlib import Path

from dvfl.data.outages import read_outages
from dvfl.reproduce.blocks import Training, run
from dvfl.reproduce.outcome.experiment import Source
from dvfl.reproduce.outcome.statistics import compare, summary
from dvfl.reproduce.sources import Sources
from dvfl.simulation.simulation import Simulation
from dvfl.strategies.decoupled.dvfl import Dvfl

CONDITIONS: list[tuple[str, ...]] = [(), ("connection:0.3:0.1",)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--preset", default="tuned")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    sources, source = Sources(given.data_dir, given.rows), Source(given.dataset)
    data = sources.example(source)
    accuracy: dict[tuple[str, tuple[str, ...]], dict[int, float | None]] = defaultdict(dict)
    megabytes: dict[str, float] = defaultdict(float)
    for registers in ("batch", "row"):
        change = (("registers", registers),)
        block = [Training("dvfl", faults, seed, change, source) for faults in CONDITIONS for seed in range(given.seeds)]

        def note(simulation: Simulation, registers: str = registers) -> None:
            assert isinstance(simulation, Dvfl)
            held = [store.batches for store in simulation.hosts.stores]
            held += simulation.hosts.holding.state().values()
            size = sum(tensor.nbytes for tensor in held) / len(simulation.seeds) / 1e6
            megabytes[registers] = max(megabytes[registers], size)

        outcomes = run(block, given.preset, sources, given.device, read_outages, note)
        for training, outcome in zip(block, outcomes, strict=True):
            accuracy[registers, training.faults][training.seed] = outcome.accuracy
    print("| data | faults | batch, % | 2 sigma | row, % | 2 sigma | row minus batch | 95 % interval |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for faults in CONDITIONS:
        batch, row = accuracy["batch", faults], accuracy["row", faults]
        cells = [f"{number:.2f}" for by_seed in (batch, row) for number in summary(list(by_seed.values()))]
        against = compare(row, batch)
        difference = f"{against.difference:+.2f} | {against.low:+.2f} to {against.high:+.2f}" if against else "| "
        print(
            f"| {data.name}, {data.rows:,} rows | {', '.join(faults) or 'none'} | {' | '.join(cells)} | {difference} |"
        )
    for registers, size in megabytes.items():
        print(f"{registers}: hosts hold {size:.1f} MB a training")


if __name__ == "__main__":
    main()
