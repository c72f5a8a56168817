"""What missing guests and hosts cost at prediction: every subset of guests, every host, trained for it and not.

    python benchmarks/missing_parties.py --out DIR --data-dir DIR --device cuda

Preset `tuned` as it is and for absence (`dvfl train --absent`), DVFL with hosts that learn and with hosts that
concatenate, and SplitNN that puts zeros in the place of a missing guest. Writes DIR/missing_parties.json (every seed's
test accuracy) and DIR/missing_parties.md.
"""

import argparse
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dvfl.data import load
from dvfl.data.split.vertical import VerticalData, fewer_rows
from dvfl.files import write_json, write_text
from dvfl.settings.training import AnySettings, Settings
from dvfl.strategies import STRATEGIES
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.presets import for_absence, preset
from dvfl.strategies.split.split_training import EndToEnd

Scores = dict[str, list[float]]  # test accuracy of each seed, by who is there
ABSENT = ", for absence"


def guest_subsets(guests: int, count: int | None = None) -> list[str]:
    """All that are not empty, largest first, as the numbers from 1 of those that are there; or those of one size."""
    sizes = range(guests, 0, -1) if count is None else (count,)
    return ["".join(map(str, one)) for size in sizes for one in combinations(range(1, guests + 1), size)]


def scores(training: Dvfl | EndToEnd) -> Scores:
    """Of a training that is finished, with every subset of guests, and without each host."""
    y = torch.from_numpy(training.data.y_test)

    def accuracy(outputs: torch.Tensor) -> list[float]:
        right: list[float] = ((outputs.argmax(-1).cpu() == y).double().mean(1) * 100).tolist()
        return right

    made = {
        f"guests {shown}": accuracy(training.outputs([int(guest) - 1 for guest in shown]))
        for shown in guest_subsets(len(training.data.guests))
    }
    if isinstance(training, Dvfl):
        hosts = range(training.host_count)
        for gone in hosts:
            made[f"without host {gone + 1}"] = accuracy(training.outputs(hosts=[h for h in hosts if h != gone]))
    return made


def variants(data: VerticalData) -> dict[str, tuple[str, AnySettings]]:
    """What is compared: a name, the strategy and its settings."""
    ours, zeros = preset("tuned", data), preset("tuned", data, "splitnn-zeros")
    assert isinstance(ours, Settings)
    passing = for_absence(replace(ours, host_model="concatenate"))
    return {
        "dvfl": ("dvfl", ours),
        f"dvfl{ABSENT}": ("dvfl", for_absence(ours)),
        f"dvfl, hosts that concatenate{ABSENT}": ("dvfl", passing),
        "splitnn-zeros": ("splitnn-zeros", zeros),
        f"splitnn-zeros{ABSENT}": ("splitnn-zeros", for_absence(zeros)),
    }


def losses(own: Scores, guests: int) -> dict[str, float]:
    """Points lost against everyone being there: means over seeds, then over subsets, and the worst subset's."""
    everyone = np.mean(own[f"guests {guest_subsets(guests)[0]}"])
    made: dict[str, float] = {}
    for gone in range(1, guests):
        lost = [everyone - np.mean(own[f"guests {shown}"]) for shown in guest_subsets(guests, guests - gone)]
        made |= {f"{gone} missing, mean": float(np.mean(lost)), f"{gone} missing, worst": float(np.max(lost))}
    hosts = [everyone - np.mean(values) for key, values in own.items() if key.startswith("without host")]
    made |= {"a host missing, worst": float(np.max(hosts))} if hosts else {}
    return {key: round(value, 3) for key, value in made.items()}


def table(cells: dict[str, Scores]) -> list[str]:
    """Mean and twice the deviation over seeds, a line for everyone who can be there."""
    lines = ["| there | " + " | ".join(cells) + " |", "| --- |" + " --- |" * len(cells)]
    for key in next(iter(cells.values())):
        shown = [
            f"{np.mean(own[key]):.2f} ± {_two_sigma(own[key]):.2f}" if key in own else "" for own in cells.values()
        ]
        lines.append(f"| {key} | " + " | ".join(shown) + " |")
    return lines


def lost(cells: dict[str, Scores], guests: int) -> list[str]:
    """The points that are lost, a line for each of those compared."""
    each = {name: losses(own, guests) for name, own in cells.items()}
    keys = list(next(iter(each.values())))
    lines = ["| points lost | " + " | ".join(keys) + " | nobody missing, against training without |"]
    lines += ["| --- |" + " --- |" * (len(keys) + 1)]
    everyone = f"guests {guest_subsets(guests)[0]}"
    for name, own in each.items():
        plain = cells.get(name.removesuffix(ABSENT).removesuffix(", hosts that concatenate"), cells[name])
        against = np.mean(plain[everyone]) - np.mean(cells[name][everyone])
        shown = [f"{own[key]:.2f}" if key in own else "" for key in keys]
        lines.append(f"| {name} | " + " | ".join(shown) + (f" | {against:.2f} |" if ABSENT in name else " | |"))
    return lines


def machine(device: str) -> dict[str, Any]:
    """Where figures were made."""
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    return {"machine": name, "torch": torch.__version__, "numpy": np.__version__}


def _two_sigma(values: list[float]) -> float:
    return 2 * float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--rows", type=int, help="training rows; all unless given")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    data = fewer_rows(load(given.dataset, data_dir=given.data_dir), given.rows)
    seeds, start = range(given.seeds), time.perf_counter()
    cells: dict[str, Scores] = {}
    for name, (method, settings) in variants(data).items():
        training = STRATEGIES.find(method)(data, settings, seeds, device=given.device)
        assert isinstance(training, Dvfl | EndToEnd)
        training.run()
        cells[name] = scores(training)
        print(f"{name}: {losses(cells[name], len(data.guests))}, {time.perf_counter() - start:.0f} s", flush=True)
        del training
    rows = f" --rows {given.rows}" if given.rows else ""
    words = f"--dataset {given.dataset}{rows} --seeds {given.seeds} --device {given.device}"
    command = f"python benchmarks/missing_parties.py {words}"
    lines = ["# Missing parties at prediction", "", f"`{command} --out DIR`", "", *lost(cells, len(data.guests))]
    lines += ["", "Test accuracy in percent, mean and 2 sigma over seeds:", "", *table(cells)]
    settings_of = {name: settings.as_dict() for name, (_, settings) in variants(data).items()}
    plain = {"command": command, **machine(given.device), "seconds": round(time.perf_counter() - start, 1)}
    points = {name: losses(own, len(data.guests)) for name, own in cells.items()}
    given.out.mkdir(parents=True, exist_ok=True)
    made = {**plain, "seeds": list(seeds), "lost": points, "accuracy": cells, "settings": settings_of}
    write_json(given.out / "missing_parties.json", made)
    write_text(given.out / "missing_parties.md", "\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
