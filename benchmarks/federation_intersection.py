"""Real parties with few labelled rows in common, beside the simulator and SplitNN: the paper's limited intersection.

    python benchmarks/federation_intersection.py --data-dir DIR [--labelled 1024] [--preset paper] [--out FILE]

MNIST, four guests, four hosts. So many training rows are labelled and known to all; each guest has an equal share of
the rest that nobody else has (14,744 rows with 1,024 labels). Every party has its rows in an order of its own, and real
parties align the ids (`dvfl federation init --labelled N` and `up`). The simulator trains on the same rows by the same
preset, SplitNN on the labelled rows alone. Prints JSON.
"""

import argparse
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from federation_accuracy import dvfl

from dvfl.data.outages import read_outages
from dvfl.files import write_json
from dvfl.orders.preset_settings import for_real_parties
from dvfl.reproduce.blocks import Training, run
from dvfl.reproduce.outcome.experiment import Change, Source
from dvfl.reproduce.sources import Sources
from dvfl.settings.training import Settings
from dvfl.strategies.presets import preset as preset_of

HOSTS = 4
OWNER_EPOCHS = {"paper": 160}  # of the owner and of SplitNN here, by the paper's appendix


def simulated(strategy: str, labelled: int, preset: str, seed: int, change: Change, data_dir: Path | None) -> float:
    """One training, scored on test rows."""
    training = Training(strategy, (), seed, change, Source(labelled=labelled))
    outcome = run([training], preset, Sources(data_dir, None), "cpu", read_outages)[0]
    assert outcome.accuracy is not None
    return outcome.accuracy


def as_real_parties(labelled: int, seed: int, data_dir: Path | None) -> Change:
    """What real parties do otherwise than the simulator by preset tuned."""
    s = preset_of("tuned", Sources(data_dir, None).data(Source(labelled=labelled), seed))
    assert isinstance(s, Settings)
    own = for_real_parties(s, "tuned")
    return tuple((name, getattr(own, name)) for name in vars(s) if getattr(own, name) != getattr(s, name))


def federated(labelled: int, preset: str, seed: int, data_dir: Path | None, folder: Path) -> dict[str, Any]:
    """Aligned and trained by real parties."""
    data = ["--data-dir", str(data_dir)] if data_dir else []
    options = ["--hosts", str(HOSTS), "--preset", preset, "--seed", str(seed), "--labelled", str(labelled)]
    dvfl("federation", "init", folder, "--dataset", "mnist", *data, *options)
    if preset in OWNER_EPOCHS:
        file = folder / "owner" / "party.toml"
        before, after = "\nepochs = 60\n", f"\nepochs = {OWNER_EPOCHS[preset]}\n"
        assert before in file.read_text()
        file.write_text(file.read_text().replace(before, after))
    began = time.monotonic()
    dvfl("federation", "up", folder)
    result = json.loads((folder / "owner" / "result.json").read_text())
    aligned = json.loads((folder / "owner" / "state" / "alignment.json").read_text())
    return {
        "accuracy": result["accuracy_mean"],
        "seconds": round(time.monotonic() - began, 1),
        "alignment_seconds": round(aligned["seconds"], 1),
        "training_slots": aligned["training"],
        "labels_known_to_all": aligned["whole"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--labelled", type=int, default=1024)
    parser.add_argument("--preset", choices=("paper", "tuned"), default="paper")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    labelled, preset, seed, data_dir = arguments.labelled, arguments.preset, arguments.seed, arguments.data_dir
    epochs = OWNER_EPOCHS.get(preset)
    changes: dict[str, Change] = {
        "dvfl": (("owner_epochs", epochs),) if epochs else as_real_parties(labelled, seed, data_dir),
        # As in the row without copies of `dvfl reproduce intersection`.
        "splitnn-wait": (("epochs", epochs),)
        if epochs
        else (("copies", 0), ("epochs", -(-3000 // -(-labelled // 64)))),
    }
    found: dict[str, Any] = {"labelled": labelled, "preset": preset, "seed": seed}
    with TemporaryDirectory() as name:
        found["federation"] = federated(labelled, preset, seed, data_dir, Path(name) / "practice")
    for strategy, change in changes.items():
        found[strategy] = simulated(strategy, labelled, preset, seed, change, data_dir)
        print(json.dumps(found), flush=True)
    if arguments.out is not None:
        write_json(arguments.out, found)


if __name__ == "__main__":
    main()
