"""Why more hosts are not always better in preset paper: its owner on one to four hosts, as they are and standardised.

    python benchmarks/redundant_hosts.py --data-dir DIR --device cuda

Guests and four hosts are trained once with and once without connection faults. The owner is then trained on the
encodings of the first hosts alone, with the preset's settings, and again with every column standardised. Scores are of
training rows that were held out; test rows are not used. Prints one JSON line for each.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import torch
from tune import held_out

from dvfl.parties.faults import NO_FAULTS, Fault, Faults
from dvfl.strategies.dvfl import Dvfl
from dvfl.strategies.presets import paper
from dvfl.strategies.stack import Stack
from dvfl.strategies.supervision import OwnerPhase

HOSTS = 4
LOST = Faults((Fault("connection", 0.6, 0.5),))


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--dataset", default="mnist")
    given = parser.parse_args()
    data = held_out(given.dataset, None, 0, given.data_dir)
    seeds = [*range(given.seeds)] * 2
    faults = [condition for condition in (NO_FAULTS, LOST) for _ in range(given.seeds)]
    settings = replace(paper(data), hosts=HOSTS)
    simulation = Dvfl(data, settings, seeds, faults=faults, device=given.device)
    while simulation.phase != "owner":
        simulation.advance()
    simulation.hosts.release()
    train, test = simulation.collect(), simulation.stack.encode(simulation.tables.test())
    width = train.shape[2] // HOSTS
    truth = torch.from_numpy(data.y_test).to(train.device)
    for standardise in (False, True):
        for hosts in range(1, HOSTS + 1):
            own = replace(settings, hosts=hosts, standardise=standardise)
            stack = Stack(simulation.stack.shape, own, seeds, simulation.device)
            read = slice(hosts * width)
            offset = train[:, :, read].mean(1).norm(dim=1)
            owner = OwnerPhase(stack, train[:, :, read].clone(), simulation.tables.labels(), [own] * len(seeds))
            with stack.suited(own.batch):
                while not owner.finished:
                    owner.advance()
            owner.finish()
            right = (stack.predict(test[:, :, read]).argmax(2) == truth).float().mean(1) * 100
            for number, condition in enumerate(("no faults", "connection:0.6:0.5")):
                part = slice(number * given.seeds, (number + 1) * given.seeds)
                print(
                    json.dumps(
                        {
                            "faults": condition,
                            "hosts": hosts,
                            "standardise": standardise,
                            "held_out_mean": round(right[part].mean().item(), 3),
                            "two_sigma": round(2 * right[part].std().item(), 3) if given.seeds > 1 else None,
                            "offset": round(offset[part].mean().item(), 1),
                            "accuracy": [round(value, 2) for value in right[part].tolist()],
                        }
                    ),
                    flush=True,
                )


if __name__ == "__main__":
    main()
