"""Shows that a refactoring moves no number: records short trainings of two versions of the code and compares them.

    python benchmarks/same_numbers.py record FILE.json            # of the code beside this file
    python benchmarks/same_numbers.py compare OLD.json NEW.json   # exit status 1 and a list of what differs
    python benchmarks/same_numbers.py against REVISION            # records REVISION and the code here, and compares

A record has scores, losses, settings and hashes of all trained weights and predictions. Seconds, paths, dates and
versions are left out. Only what users see is relied on: the command line, the files it writes and the estimators. Every
training has one thread, so two records of one machine agree to the last digit. With --data-dir (or $DVFL_DATA) the data
sets that are files take part too.
"""

import argparse
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import safetensors.numpy
from numpy.typing import NDArray

Fields = dict[str, Any]  # of one case, by dotted name
Record = dict[str, Fields]  # by the name of the case

HERE = Path(__file__).resolve().parents[1]
PROCESSES = 2
LIMIT_S = 900  # for one command
PROGRAM = [sys.executable, "-m", "dvfl"]
INTO_RUN = "--device cpu --quiet --out run"
IGNORED = {"seconds", "started", "versions", "format", "machine", "command", "data_dir", "plan_key"}
FAILED = "failed"

DVFL = "--rows 300 --seeds 2 --guest-epochs 3 --host-epochs 4 --owner-epochs 3"
SPLIT = "--rows 300 --seeds 2 --epochs 3"
TABLES = "--seeds 2 --guest-epochs 3 --host-epochs 4 --owner-epochs 3"
WHOLE = "--table ../inputs/bank.csv --table ../inputs/shop.csv --labels ../inputs/labels.csv"
PARTS = "--table ../inputs/bank-part.csv --table ../inputs/shop-part.csv --labels ../inputs/labels-few.csv"
TRAININGS = {  # options of `dvfl train`
    "dvfl, tuned": "--seeds 3 --guest-epochs 3 --host-epochs 5 --owner-epochs 4",
    "dvfl, paper, lost messages": f"{DVFL} --preset paper --faults connection:0.3:0.1",
    "hostless, guests fail": f"{DVFL} --strategy dvfl-hostless --faults guest:0.3:0.5",
    "concatenating, hosts fail": f"{DVFL} --strategy dvfl-concatenating --faults host:0.3:0.5",
    "in order, paper, all fail": f"{DVFL} --strategy dvfl-in-order --preset paper"
    " --faults connection:0.3:0.5 --faults guest:0.1:0.5 --faults host:0.1:0.5",
    "wait, asked again": f"{SPLIT} --strategy splitnn-wait --retries 60 --faults guest:0.1:0.5",
    "wait, paper, stalled half-way": f"{SPLIT} --strategy splitnn-wait --preset paper --faults guest:0.005:0.1",
    "skip, paper, lost messages": f"{SPLIT} --strategy splitnn-skip --preset paper --faults connection:0.1:0.5",
    "zeros, noisy gradients": f"{SPLIT} --strategy splitnn-zeros --gradient-noise 0.5 --gradient-defence max_norm"
    " --faults connection:0.3:0.5",
    "buffer, recorded outages": f"{SPLIT} --strategy splitnn-buffer --faults recorded:../inputs/outages.csv",
    "mean, absent, guests fail": f"{SPLIT} --strategy splitnn-mean --absent --faults guest:0.3:0.5",
    "fedonce, guests fail": f"{DVFL} --strategy fedonce --faults guest:0.3:0.5",
    "fedonce-zeros, paper, lost messages": f"{DVFL} --strategy fedonce-zeros --preset paper"
    " --faults connection:0.6:0.5",
    "vafl, regression, all fail": "--dataset diabetes --seeds 2 --epochs 3 --strategy vafl --gradient-defence sign"
    " --faults connection:0.3:0.5 --faults guest:0.1:0.5 --faults host:0.1:0.5",
    "vfb2, paper, lost messages": f"{SPLIT} --strategy vfb2 --preset paper --faults connection:0.3:0.1",
    "fedvs, eight guests": f"{SPLIT} --strategy fedvs --guests 8 --faults guest:0.05:0.9",
    "fedvs, paper": f"{SPLIT} --strategy fedvs --preset paper",
    "late and wrong for hosts": f"{DVFL} --faults delay:3 --faults corrupt:scale:hosts:rows-2-3",
    "reordered, repeated and wrong for the owner": f"{DVFL} --faults reorder:4 --faults duplicate:2"
    " --faults corrupt:noise:owner:guest-1",
    "recorded outages, shuffled by a guest": f"{DVFL} --faults recorded:../inputs/outages.csv"
    " --faults corrupt:permute:owner:guest-3",
    "row registers, all kinds of faults": f"{DVFL} --registers row --hosts 2 --faults connection:0.3:0.5"
    " --faults host:0.1:0.5 --faults reorder:4 --faults corrupt:sign:hosts:guest-2",
    "simclr": f"{DVFL} --guest-objective simclr --host-objective simclr --temperature 0.2",
    "simclr, paper, wine": f"{TABLES} --dataset wine --preset paper --guest-objective simclr",
    "adversary": f"{DVFL} --guest-objective simclr --adversary 0.5",
    "absent, breast cancer": f"{TABLES} --dataset breast_cancer --guests 5 --split-seed 1 --absent --hosts 3",
    "clip and noise, diabetes": f"{TABLES} --dataset diabetes --clip 2 --noise 0.1 --period 2 --batch 50",
    "shield": f"{DVFL} --shield 0.6 --w-g 64",
    "row registers of tables": f"{TABLES} --id id {WHOLE} --label-column paid --registers row --hosts 2",
    "tables with few labels": f"{TABLES} --id id {PARTS} --label-column paid --preset paper"
    " --guest-dropout 0.2 --host-dropout 0.2 --partial 2 --faults connection:0.3:0.5",
    "artificial entities": f"{TABLES} --id id {PARTS} --label-column paid --entity-augmentation",
    "regression of tables, zeros": f"--seeds 2 --epochs 3 --strategy splitnn-zeros --id id {PARTS}"
    " --label-column amount --task regress",
}
FROM_FILES = {  # likewise, of data sets that are files
    "parkinsons, by subject": "--dataset parkinsons --guest-epochs 2 --host-epochs 2 --owner-epochs 3",
    "handwritten, paper, buffer": "--dataset handwritten --preset paper --strategy splitnn-buffer --epochs 2"
    " --faults guest:0.3:0.5",
    "credit card": "--dataset credit_card --rows 1000 --guest-epochs 2 --host-epochs 2 --owner-epochs 3",
}
EXPERIMENT = {"misalignment": "misalignment --rows 64 --seeds 6"}  # of `dvfl reproduce`; no test rests on fewer seeds
SLOW = {"few labels": "intersection --preset tuned --rows 1100 --seeds 1"}  # alone has copies of labelled rows
FEDERATIONS = {  # of `dvfl federation init`
    "plan, digits": "--guests 2 --hosts 1 --dataset digits",
    "plan, diabetes, paper": "--guests 3 --hosts 2 --dataset diabetes --preset paper --seed 5",
}


@dataclass(frozen=True)
class Place:
    """Where a case works: a folder of its own, and the environment with the code that is recorded."""

    folder: Path
    environment: Mapping[str, str]

    def dvfl(self, command: str) -> None:
        """Runs a command of `dvfl` to its end."""
        self.run([*PROGRAM, *shlex.split(command)])

    def run(self, command: list[str]) -> str:
        """What a command printed; raises with its last line if it failed."""
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=LIMIT_S
        )
        if done.returncode != 0:
            raise CaseError(f"exit status {done.returncode}: {(done.stderr.splitlines() or [''])[-1]}")
        return done.stdout

    def read(self, name: str) -> Any:
        """A file of JSON, with paths as they are seen from all cases' folder."""
        return json.loads((self.folder / name).read_text().replace(f"{self.folder.parent}{os.sep}", ""))


class CaseError(Exception):
    """Why a case has no numbers."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="record|compare|against")
    recording, comparing, against = (commands.add_parser(name) for name in ("record", "compare", "against"))
    recording.add_argument("file", type=Path)
    recording.add_argument("--source", type=Path, default=HERE / "src", help="the folder with the package dvfl")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    against.add_argument("revision")
    for command in (recording, against):
        command.add_argument("--data-dir", type=Path, default=os.environ.get("DVFL_DATA"))
        command.add_argument("--slow", action="store_true", help="also few labels of images, which takes minutes")
    commands.add_parser("estimators")  # this program as a process of its own
    given = parser.parse_args()
    if given.command == "estimators":
        print(json.dumps(estimators()))
        return
    if given.command == "compare":
        sys.exit(0 if compare(read_record(given.old), read_record(given.new)) else 1)
    if given.command == "record":
        made = record(given.source, given.data_dir, slow=given.slow)
        given.file.write_text(json.dumps(made, indent=1) + "\n")
        sys.exit(1 if any(FAILED in fields for fields in made.values()) else 0)
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, given.revision], cwd=HERE, check=True)
        try:
            old = record(tree / "src", given.data_dir, slow=given.slow)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=HERE, check=True)
    sys.exit(0 if compare(old, record(HERE / "src", given.data_dir, slow=given.slow)) else 1)


def read_record(file: Path) -> Record:
    """What `record` wrote."""
    read: Record = json.loads(file.read_text())
    return read


# Comparing


def compare(old: Record, new: Record) -> bool:
    """Prints what differs, and whether all that both records have is the same and no case is missing or failed."""
    same = 0
    for case in sorted(old.keys() | new.keys()):
        if case not in new or case not in old:
            print(f"{case}: only in the {'old record' if case in old else 'new record, not counted'}")
            continue
        differences = [line for line in map(partial(difference, old[case], new[case]), sorted(old[case])) if line]
        for record, name in ((old, "old"), (new, "new")):
            if FAILED in record[case]:
                differences.append(f"failed in the {name} record: {record[case][FAILED]}")
        for line in differences:
            print(f"{case}: {line}")
        for field in sorted((old[case].keys() ^ new[case].keys()) - {FAILED}):
            print(f"{case}: {field}: only in the {'old' if field in old[case] else 'new'} record, not counted")
        same += not differences
    print(f"{same} of {len(old)} cases are the same")
    return same == len(old)


def difference(old: Fields, new: Fields, field: str) -> str | None:
    """One line on a field that both cases have with different values."""
    if field not in new or field == FAILED or json.dumps(old[field]) == json.dumps(new[field]):
        return None
    before, after = old[field], new[field]
    if field == "models":
        changed = (Counter(before) - Counter(after)).total()
        return f"models: {changed} of {len(before)} tensors differ; there are {len(after)} now"
    try:
        by = np.abs(np.array(before, dtype=float) - np.array(after, dtype=float)).max()
        return f"{field}: {shown(before)} -> {shown(after)}, by {by:.3g} at most"
    except (TypeError, ValueError):
        return f"{field}: {shown(before)} -> {shown(after)}"


def shown(value: Any) -> str:
    """A value in few characters."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


# Recording


def record(source: Path, data_dir: Path | None, *, slow: bool) -> Record:
    """All cases with the package that lies in `source`."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        environment = os.environ | {"PYTHONPATH": str(source.resolve()), "XDG_CACHE_HOME": str(root / "cache")}
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        environment.pop("DVFL_DATA", None)
        if data_dir is not None:
            environment["DVFL_DATA"] = str(data_dir.resolve())
        found = Place(root, environment).run([sys.executable, "-c", "import dvfl; print(dvfl.__file__)"])
        if not Path(found.strip()).resolve().is_relative_to(source.resolve()):
            sys.exit(f"{source} has no package dvfl; {found.strip()} would be recorded")
        write_inputs(root / "inputs")
        made = all_cases(with_files=data_dir is not None, slow=slow)
        places = [Place(root / name, environment) for name in made]
        with ThreadPoolExecutor(PROCESSES) as pool:
            fields = list(pool.map(run_case, made, made.values(), places))
    return dict(sorted(zip(made, fields, strict=True)))


def all_cases(*, with_files: bool, slow: bool) -> dict[str, Callable[[Place], Fields]]:
    """How each case is run, the longest first."""
    if not with_files:
        print("without --data-dir, experiments and data sets that are files are left out", file=sys.stderr)
    experiments = (SLOW if slow else {}) | EXPERIMENT if with_files else {}
    trainings = TRAININGS | (FROM_FILES if with_files else {})
    cases: dict[str, Callable[[Place], Fields]] = {"estimators": estimate, "resumed": resume, "split": split}
    cases = {name: partial(reproduce, words) for name, words in experiments.items()} | cases
    cases |= {name: partial(train, words) for name, words in trainings.items()}
    return cases | {name: partial(found_federation, words) for name, words in FEDERATIONS.items()}


def run_case(name: str, run: Callable[[Place], Fields], place: Place) -> Fields:
    """The numbers of a case, or why there are none."""
    place.folder.mkdir()
    start = time.perf_counter()
    try:
        fields = run(place)
    except (CaseError, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        fields = {FAILED: f"{type(error).__name__}: {error}"}
    print(f"{name}: {fields.get(FAILED) or f'{time.perf_counter() - start:.1f} s'}", file=sys.stderr, flush=True)
    return fields


def train(options: str, place: Place) -> Fields:
    """A training from beginning to end."""
    place.dvfl(f"train {options} {INTO_RUN}")
    return run_folder(place)


def resume(place: Place) -> Fields:
    """A training that is interrupted at its beginning and goes on."""
    options = "--seeds 2 --guest-epochs 40 --host-epochs 50 --owner-epochs 10 --faults guest:0.2:0.5"
    command, pipe = [*PROGRAM, *shlex.split(f"train {options} {INTO_RUN}")], subprocess.PIPE
    with subprocess.Popen(command, cwd=place.folder, env=place.environment, stdout=pipe, stderr=pipe) as process:
        while not (place.folder / "run" / "config.json").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
    if process.returncode != 128 + signal.SIGINT:
        raise CaseError(f"an interrupted training ended with exit status {process.returncode}")
    place.dvfl("train --resume --quiet --out run")
    return run_folder(place)


def split(place: Place) -> Fields:
    """A training on the files that `dvfl split` makes."""
    place.dvfl("split --dataset digits --guests 3 --overlap 0.4 --labelled 250 --out data")
    tables = " ".join(f"--table data/guest-{number}.parquet" for number in (1, 2, 3))
    place.dvfl(f"train {TABLES} --id id {tables} --labels data/labels.parquet {INTO_RUN}")
    return run_folder(place)


def run_folder(place: Place) -> Fields:
    """What `dvfl train` wrote: configuration, losses, scores, and each trained tensor's hash whatever its name."""
    fields: Fields = {}
    for name in ("config", "history", "result"):
        fields |= flat(name, place.read(f"run/{name}.json"))
    files = sorted((place.folder / "run" / "models").rglob("*.safetensors"))
    models = [digest(tensor) for file in files for tensor in safetensors.numpy.load_file(file).values()]
    if not models:
        raise CaseError("no trained tensor was found in run/models")
    return {**fields, "models": sorted(models)}


def reproduce(words: str, place: Place) -> Fields:
    """Cells and tests of an experiment."""
    experiment = words.split()[0]
    place.dvfl(f"reproduce {words} --device cpu --quiet --out results")
    return flat("", place.read(f"results/{experiment}.json"))


def found_federation(words: str, place: Place) -> Fields:
    """What the parties of a practice federation agree on, and how its owner trains."""
    place.dvfl(f"federation init practice {words}")
    plan = tomllib.loads((place.folder / "practice" / "federation.toml").read_text())
    owner = tomllib.loads((place.folder / "practice" / "owner" / "party.toml").read_text())
    return flat("plan", plan) | flat("head", owner["head"])


def estimate(place: Place) -> Fields:
    """All estimators, in one process."""
    printed = place.run([sys.executable, __file__, "estimators"])
    return flat("", json.loads(printed.splitlines()[-1]))


def flat(prefix: str, value: Any) -> Fields:
    """Nested values by dotted names, without those that no two runs share."""
    if isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        value = {str(number): inner for number, inner in enumerate(value)}
    if not isinstance(value, dict):
        return {prefix: value}
    fields: Fields = {}
    for name, inner in value.items():
        if name not in IGNORED:
            fields |= flat(f"{prefix}.{name}" if prefix else name, inner)
    return fields


def digest(array: Any) -> str:
    """SHA-256 of an array's type, shape and values, shortened."""
    values = np.ascontiguousarray(array)
    if values.dtype.kind == "O":
        values = values.astype(str)
    return hashlib.sha256(f"{values.dtype.str} {values.shape} ".encode() + values.tobytes()).hexdigest()[:20]


# Inputs


def write_inputs(folder: Path) -> None:
    """Two guests' tables with numbers, text, truth values, times and gaps; their labels; recorded outages."""
    folder.mkdir()
    (folder / "outages.csv").write_text("party,down,up\nrows-2-3,2,7\nguest-1>host-1,3,9\nhost-1,5,6\n")
    bank, shop, labels = people()
    frames = {"bank": bank, "shop": shop.iloc[::-1], "labels": labels}
    frames |= {"bank-part": bank.iloc[:150], "shop-part": shop.iloc[60:].iloc[::-1], "labels-few": labels.iloc[::4]}
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index_label="id")


def people(rows: int = 200) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Both guests' tables and the labels, by one index."""
    random = np.random.default_rng(0)
    index = pd.Index([f"P{number:03d}" for number in random.permutation(rows)])
    bank = pd.DataFrame(random.normal(size=(rows, 3)), index, ["x", "y", "z"])
    bank["age"] = np.where(random.random(rows) < 0.2, np.nan, random.normal(40, 10, rows))
    bank["town"] = random.choice(["Bonn", "Kiel", "Ulm"], rows)
    bank.loc[bank.index[::7], "town"] = None
    shop = pd.DataFrame(random.normal(size=(rows, 2)), index, ["u", "v"])
    shop["member"] = random.random(rows) < 0.5
    shop["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, rows), unit="D")
    amount = bank["x"] + shop["u"] + shop["member"]
    return bank, shop, pd.DataFrame({"paid": np.where(amount > 0.5, "yes", "no"), "amount": amount})


# Estimators


def estimators() -> dict[str, Fields]:
    """Numbers of estimators by what is special about them."""
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
    from sklearn.decomposition import PCA
    from torch import nn

    from dvfl import DVFLClassifier, DVFLRegressor

    classifier = partial(DVFLClassifier, hosts=2, guest_epochs=3, host_epochs=4, owner_epochs=5)
    regressor = partial(DVFLRegressor, hosts=2, guest_epochs=3, host_epochs=4, owner_epochs=5)
    cancer, malignant = load_breast_cancer(return_X_y=True)
    cancers = [cancer[:, :10], cancer[:, 10:20], cancer[:, 20:]]
    wine, kind = load_wine(return_X_y=True)
    wines = [wine[:, :6], wine[:, 6:]]
    bank, shop, labels = people()
    paid, table = labels["paid"], bank.join(shop)
    parts, few = [bank.iloc[:150], shop.iloc[60:].iloc[::-1]], paid.iloc[::4]
    network = nn.Sequential(nn.Linear(wines[1].shape[1], 8), nn.Tanh())
    for number, weights in enumerate(network.parameters(), 1):
        nn.init.constant_(weights, 0.1 * number)  # whether or not its own are drawn anew
    held = [list(bank.columns), list(shop.columns)]
    fitted = {
        "tables": (classifier(), cancers, malignant),
        "one table, paper": (regressor(guests=3, preset="paper"), *load_diabetes(return_X_y=True)),
        "regression of frames": (regressor(random_state=3, period=2), parts, labels["amount"]),
        "indices that differ": (classifier(), parts, few),
        "entity augmentation": (classifier(entity_augmentation=True), parts, few),
        "columns by name, early stopping": (classifier(guests=held, early_stopping=True), table, paid.to_numpy()),
        "absent": (classifier(absent=True), [bank, shop], paid),
        "hostless, noise": (classifier(hosts=0, clip=2.0, noise=0.1), wines, kind),
        "shield": (classifier(shield=0.5, w_g=32), cancers, malignant),
        "adversary": (classifier(guest_objective="simclr", adversary=0.3), cancers, malignant),
        "projection": (classifier(encoders=[None, PCA(4)]), wines, kind),
        "network": (classifier(encoders=[network, None], batch=32), wines[::-1], kind),
    }
    found = {name: predictions(model.fit(x, y), x, paid if y is few else y) for name, (model, x, y) in fitted.items()}
    absent = fitted["absent"][0]
    found["without a guest"] = predictions(absent, [bank, shop.iloc[:0]], paid)
    with tempfile.TemporaryDirectory() as folder:
        absent.save(Path(folder) / "model")
        found["loaded"] = predictions(DVFLClassifier.load(Path(folder) / "model"), [bank, shop], paid)
    return found


def predictions(model: Any, x: Any, y: Any) -> Fields:
    """All that a fitted model says of rows."""
    made: dict[str, NDArray[Any]] = {"predict": model.predict(x), "transform": model.transform(x)}
    if hasattr(model, "predict_proba"):
        made["predict_proba"] = model.predict_proba(x)
    return {"score": float(model.score(x, y)), **{name: digest(values) for name, values in made.items()}}


if __name__ == "__main__":
    main()
