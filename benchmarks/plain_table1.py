"""How long Table 1 would take as plain per-party PyTorch loops on this machine, one training after the other.

    python benchmarks/plain_table1.py --device cuda

Times rounds of every strategy written as one would first write them (a module and an optimiser a party, fused, no
needless copies) at MNIST's size with the preset `paper`, and scales them to 10 conditions x 10 seeds and the paper's
epochs. What waits stalls under faults, so only its column without faults counts. Prints one JSON object.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from dvfl.lab.bench_training import ROUNDS, bench_training, mnist_like
from dvfl.parties.networks.mlp import Mlp
from dvfl.settings.training import SplitSettings
from dvfl.simulation.stack import shape
from dvfl.strategies.plain_loops import optimizer, sequential
from dvfl.strategies.split.split_model import SplitModel

TRAININGS = {"splitnn-wait": 10}  # of the others 100: ten conditions, ten seeds


class PlainSplit:
    """Guests' encoders and the host's head as modules, each with an optimiser."""

    def __init__(self, device: torch.device, summed: bool) -> None:
        self.data, settings = mnist_like(64 * 64), SplitSettings()
        model = SplitModel(shape(self.data), settings, [0], device, summed=summed, apart=True)
        self.summed = summed
        self.guests, self.latents = [], []
        for group in model.groups:
            assert isinstance(group.net, Mlp)  # FedVS alone has others
            self.guests.append(sequential(group.net, group.learner.parameters[0]))
            self.latents.append(group.net.out_width)
        self.host = sequential(model.head, model.host.parameters[0])
        modules = [*self.guests, self.host]
        self.optimizers = [optimizer(list(module.parameters()), settings.guest_rule) for module in modules]
        self.tables = [torch.from_numpy(guest.train).to(device) for guest in self.data.guests]
        self.labels = torch.from_numpy(self.data.y_train).to(device)

    def round(self, rows: Tensor) -> None:
        """All guests forward, the host, all guests back."""
        codes = [guest(table[rows]) for guest, table in zip(self.guests, self.tables, strict=True)]
        self._learn(codes, rows, self.optimizers)

    def turns(self, rows: Tensor) -> None:
        """VAFL: one guest after the other, with what is held of the rest."""
        held = [torch.zeros(len(rows), latent, device=rows.device) for latent in self.latents]
        for number, (guest, table) in enumerate(zip(self.guests, self.tables, strict=True)):
            code = guest(table[rows])
            self._learn(
                [*held[:number], code, *held[number + 1 :]], rows, [self.optimizers[number], self.optimizers[-1]]
            )
            held[number] = code.detach()

    def _learn(self, codes: Sequence[Tensor], rows: Tensor, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        x = torch.stack(list(codes)).sum(0) if self.summed else torch.cat(list(codes), -1)
        loss = nn.functional.cross_entropy(self.host(x), self.labels[rows])
        for one in optimizers:
            one.zero_grad(set_to_none=True)
        loss.backward()
        for one in optimizers:
            one.step()


def seconds_a_round(work: Callable[[Tensor], None], device: torch.device, rounds: int) -> float:
    """The mean over rounds, after some that warm up."""
    rows = torch.arange(64, device=device)
    for _ in range(20):
        work(rows)
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(rounds):
        work(rows)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=300)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    phases = bench_training(arguments.device, rounds=arguments.rounds, repeats=2)
    split, summed = PlainSplit(device, summed=False), PlainSplit(device, summed=True)
    epoch = {
        name: ROUNDS * seconds_a_round(work, device, arguments.rounds)
        for name, work in (("splitnn", split.round), ("vfb2", summed.round), ("vafl", split.turns))
    }
    owner = phases["owner"]["plain_seconds"]
    training = {
        "dvfl": phases["overall"]["plain_seconds"],
        **{f"splitnn-{name}": 60 * epoch["splitnn"] for name in ("wait", "skip", "zeros", "buffer")},
        "fedonce-zeros": phases["guests"]["plain_seconds"] + owner,
        "vafl": 60 * epoch["vafl"],
        "vfb2": 60 * epoch["vfb2"],
    }
    total = sum(seconds * TRAININGS.get(name, 100) for name, seconds in training.items())
    print(json.dumps({"device": arguments.device, "seconds_a_training": training, "hours_of_table1": total / 3600}))


if __name__ == "__main__":
    main()
