"""How long a quiet federation takes beside plain per-party loops doing the same training, on the same cores.

    python benchmarks/federation_time.py --data-dir DIR [--rows N] [--rounds 400] [--out FILE]

Makes a practice federation of MNIST (4 guests, 2 hosts, preset tuned), runs it here, and takes the time of its
alignment and that from the plan to the owner's result. Before and after it times rounds of plain loops (one module and
one optimiser a party, one party after the other), scaled to the same number of rounds; the mean of both counts. Prints
JSON.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dvfl.data import load
from dvfl.data.split.vertical import VerticalData, fewer_rows
from dvfl.files import write_json
from dvfl.parties.networks.sizes import sizes
from dvfl.parties.numerics.randomness import torch_generator
from dvfl.parties.objectives.objective import Reconstruction
from dvfl.parties.party_networks import guest_objective, host_objective, owner_supervision
from dvfl.strategies.plain_loops import PlainCoder, PlainOwner
from dvfl.strategies.tuned_preset import tuned

GUESTS, HOSTS = 4, 2


class PlainParties:
    """All parties as one would first write them, with the preset's networks, hidden values and dropout."""

    def __init__(self, data: VerticalData) -> None:
        self.data, self.settings = data, tuned(data)
        s, widths = self.settings, sizes(data.sizes, [guest.columns for guest in data.guests])
        self._tables = [torch.from_numpy(guest.train) for guest in data.guests]
        self._guests = []
        for number, guest in enumerate(data.guests):
            objective = guest_objective(widths, number, guest.columns, unit=guest.unit)
            assert isinstance(objective, Reconstruction)
            first = objective.init(torch_generator(0, "guest", number))
            self._guests.append(PlainCoder(objective, first, s.guest_rule))
        objective = host_objective(widths, sum(widths.guest_latent))
        assert isinstance(objective, Reconstruction)
        first = objective.init(torch_generator(0, "host", 0))
        self._hosts = [PlainCoder(objective, first.clone(), s.host_rule) for _ in range(HOSTS)]
        inputs, classes = HOSTS * widths.host_latent, len(data.classes or ())
        head = owner_supervision(widths, HOSTS, inputs, classes, s.head).head
        self._owner = PlainOwner(head, head.init(torch_generator(0, "owner")), s.owner_rule)  # type: ignore[arg-type]
        self._joint = torch.randn(data.rows, sum(widths.guest_latent))
        self._encoded, self._labels = torch.randn(data.rows, inputs), torch.from_numpy(data.y_train)

    def guests(self, rows: Tensor) -> None:
        for guest, table in zip(self._guests, self._tables, strict=True):
            x = table[rows]
            seen = torch.rand_like(x) >= self.settings.guest_noise
            code = guest.encoder(x * seen)
            loss = nn.functional.mse_loss(guest.decoder(code), x)
            guest.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            guest.optimizer.step()
            with torch.no_grad():
                guest.encoder(x)  # what it would push

    def hosts(self, rows: Tensor) -> None:
        for host in self._hosts:
            host.step(self._joint[rows])

    def owner(self, rows: Tensor) -> None:
        self._owner.step(nn.functional.dropout(self._encoded[rows], self.settings.owner_dropout), self._labels[rows])

    def seconds(self, rounds: int) -> dict[str, float]:
        """Of the whole training, from so many rounds of each kind."""
        s = self.settings
        iterations = -(-self.data.rows // s.batch)
        epochs = {"guests": s.guest_epochs, "hosts": s.host_epochs, "owner": s.owner_epochs}
        works: dict[str, Callable[[Tensor], None]] = {"guests": self.guests, "hosts": self.hosts, "owner": self.owner}
        return {name: epochs[name] * iterations * self._a_round(work, rounds) for name, work in works.items()}

    def _a_round(self, work: Callable[[Tensor], None], rounds: int) -> float:
        """With one thread or all of them, whichever is faster: for matrices of this size more are not always better."""
        most, found = torch.get_num_threads(), []
        for threads in {1, most}:
            torch.set_num_threads(threads)
            found.append(self._timed(work, rounds))
        torch.set_num_threads(most)
        return min(found)

    def _timed(self, work: Callable[[Tensor], None], rounds: int) -> float:
        orders = [torch.randint(self.data.rows, (self.settings.batch,)) for _ in range(rounds + 20)]
        for rows in orders[:20]:
            work(rows)
        start = time.perf_counter()
        for rows in orders[20:]:
            work(rows)
        return (time.perf_counter() - start) / rounds


def federation(rows: int | None, data_dir: Path | None) -> tuple[dict[str, Any], float]:
    """The owner's result of a federation that runs here from nothing, and the seconds of its alignment."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "practice"
        dvfl = [sys.executable, "-m", "dvfl", "federation"]
        options = ["--guests", str(GUESTS), "--hosts", str(HOSTS), "--dataset", "mnist"]
        options += ["--rows", str(rows)] if rows else []
        options += ["--data-dir", str(data_dir)] if data_dir else []
        subprocess.run([*dvfl, "init", str(folder), *options], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*dvfl, "up", str(folder)], check=True, stdout=subprocess.DEVNULL)
        aligned = json.loads((folder / "owner" / "state" / "alignment.json").read_text())
        return json.loads((folder / "owner" / "result.json").read_text()), aligned["seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    plain = PlainParties(fewer_rows(load("mnist", data_dir=arguments.data_dir), arguments.rows))
    before = plain.seconds(arguments.rounds)
    result, alignment = federation(arguments.rows, arguments.data_dir)
    after = plain.seconds(arguments.rounds)
    loops = {name: (before[name] + after[name]) / 2 for name in before}
    total = sum(loops.values())
    found = {
        "plain_seconds": {**loops, "total": total},
        "alignment_seconds": alignment,
        "federation_seconds": result["seconds"],
        "ratio": result["seconds"]["total"] / total,
        "ratio_with_alignment": (result["seconds"]["total"] + alignment) / total,
        "accuracy": result["accuracy_mean"],
        "rows": plain.data.rows,
        "threads": torch.get_num_threads(),
    }
    print(json.dumps(found))
    if arguments.out is not None:
        write_json(arguments.out, found)


if __name__ == "__main__":
    main()
