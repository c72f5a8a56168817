"""What `dvfl train` was told, completed: by defaults in a new run, by the folder's config.json in a resumed one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch

from dvfl.data import ColumnEncoder, VerticalData, load, load_tables
from dvfl.data.outages import read_outages
from dvfl.data.sets.datasets import chosen_split, dataset_name
from dvfl.data.split.vertical import fewer_rows
from dvfl.errors import UserError
from dvfl.parties.faults.fault_set import Faults
from dvfl.settings.training import AnySettings
from dvfl.strategies import STRATEGIES
from dvfl.strategies.bounded_noise import settled_within
from dvfl.strategies.presets import check_preset, for_absence

_TABLES_ONLY = ("labels", "id", "label_column", "task", "missing")


@dataclass(frozen=True)
class Given:
    """The options as they stood on the command line; None where one was left out."""

    data: Mapping[str, Any]
    strategy: str | None
    preset: str | None
    seeds: int | None
    faults: list[str] | None
    device: str
    overrides: Mapping[str, int | float | str | None]  # fields of Settings
    absent: bool = False  # parties are to do without each other
    shield: float | None = None  # strength of the noise on encodings that are to be harder to invert
    epsilon: float | None = None  # that all releases of a row's encoding are to keep within


@dataclass(frozen=True)
class Plan:
    """A training with nothing left open but the data themselves."""

    data: dict[str, Any]  # where they come from: plain values, paths absolute
    strategy: str
    preset: str
    seeds: int
    faults: list[str]
    device: str
    settings: AnySettings | None  # None before the data are known: presets depend on them
    overrides: dict[str, int | float | str]
    absent: bool = False
    shield: float | None = None
    epsilon: float | None = None

    @property
    def name(self) -> str:
        """A word for the data, before they are loaded."""
        return str(self.data.get("dataset") or Path(self.data["labels"]).name.split(".")[0])


def fresh(given: Given) -> Plan:
    """The plan of a new run. What can be refused without data is refused here."""
    data = _plain(given.data)
    _check_data(data)
    if "tables" not in data:
        data["dataset"] = dataset_name(data.get("dataset", "digits"))
        split = chosen_split(data["dataset"], data.get("split"), data.get("split_seed", 0))
        data |= {"split": split.rule, "split_seed": split.seed}
    faults = parse_faults(given.faults or ()).texts
    plan = Plan(
        data,
        strategy=given.strategy or "dvfl",
        preset=given.preset or "tuned",
        seeds=given.seeds or 1,
        faults=faults,
        device=chosen_device(given.device),
        settings=None,
        overrides={name: value for name, value in given.overrides.items() if value is not None},
        absent=given.absent,
        shield=given.shield,
        epsilon=given.epsilon,
    )
    check_preset(plan.preset)
    chosen = STRATEGIES.find(plan.strategy)
    several_hosts = chosen.sends == "encodings"
    can_set = chosen.settings.names() | {"hosts"}  # a fixed number of hosts is noted, not refused
    for name in plan.overrides:
        if name not in can_set:
            raise UserError(f"{_option(name)} does not go with --strategy {plan.strategy}")
    if plan.epsilon is not None and "noise" not in can_set:
        raise UserError(f"--epsilon does not go with --strategy {plan.strategy}")
    for name, value in chosen.fixed.items():
        if name in plan.overrides:
            raise UserError(f"{_option(name)} is {value} in --strategy {plan.strategy}; --strategy dvfl takes others")
    if plan.shield is not None and not several_hosts:
        raise UserError("--shield goes with --strategy dvfl alone")
    if "retries" in plan.overrides and not chosen.waits:
        raise UserError(f"{_option('retries')} goes with --strategy splitnn-wait alone")
    for name in ("registers", "host_objective", "entity_augmentation", "host_dropout", "partial"):
        if name in plan.overrides and not several_hosts:
            raise UserError(f"{_option(name)} goes with --strategy dvfl alone")
    return plan


def resumed(given: Given, config: Mapping[str, Any], source: Path) -> Plan:
    """The plan that a run folder was begun with; an option that says otherwise is refused."""
    settings = STRATEGIES.find(config["strategy"]).settings.from_dict(config["settings"])
    data = dict(config["data"])
    asked = _plain(given.data)
    if "dataset" in asked:
        asked["dataset"] = dataset_name(asked["dataset"])
    if "data_dir" in asked:  # only where to look: config.json knows what the data must be
        data["data_dir"] = asked.pop("data_dir")
    faults = None if given.faults is None else parse_faults(given.faults).texts
    for name, value in (
        *((name, (value, data.get(name))) for name, value in asked.items()),
        ("strategy", (given.strategy, config["strategy"])),
        ("preset", (given.preset, config["preset"])),
        ("seeds", (given.seeds, len(config["seeds"]))),
        ("faults", (faults, config["faults"])),
        ("device", (None if given.device == "auto" else given.device, config["device"])),
        *(
            (name, (value, getattr(settings, name, None)))
            for name, value in given.overrides.items()
            if name != "hosts"
            or STRATEGIES[config["strategy"]].sends == "encodings"  # all others have one, whatever is said
        ),
    ):
        if value[0] is not None and value[0] != value[1]:
            raise UserError(
                f"{name} is {_shown(value[0])} here and {_shown(value[1])} in {source};"
                " leave it out to resume that run, or start anew with another --out"
            )
    overrides = cast(dict[str, Any], {name: value for name, value in given.overrides.items() if value is not None})
    for option in ("shield", "epsilon"):
        if getattr(given, option) is not None:
            raise UserError(
                f"--{option} cannot be changed; {source} has what it was begun with: leave it out to resume that run"
            )
    if given.absent and replace(for_absence(settings), **overrides) != settings:
        raise UserError(
            f"--absent is given here, and {source} has other settings; leave it out to resume that run, or start anew"
            " with another --out"
        )
    return Plan(
        data,
        strategy=config["strategy"],
        preset=config["preset"],
        seeds=len(config["seeds"]),
        faults=list(config["faults"]),
        device=chosen_device(config["device"]),
        settings=settings,
        overrides={},
    )


def read_data(plan: Plan) -> tuple[VerticalData, tuple[ColumnEncoder, ...]]:
    """The data, and the column encoders of the users' own tables."""
    d = plan.data
    if "tables" not in d:
        data_dir = Path(d["data_dir"]) if "data_dir" in d else None
        named = {name: d[name] for name in ("guests", "split", "split_seed") if name in d}
        return fewer_rows(load(d["dataset"], data_dir=data_dir, **named), d.get("rows")), ()
    options = {name: d[name] for name in ("missing", "label_column", "task") if name in d}
    loaded = load_tables([Path(path) for path in d["tables"]], Path(d["labels"]), d["id"], **options)
    return loaded.data, loaded.encoders


def settle(plan: Plan, data: VerticalData) -> AnySettings:
    """The settings: the preset's for these data, and what was said otherwise."""
    if plan.settings is not None:
        return plan.settings
    overrides = dict(plan.overrides)
    if STRATEGIES[plan.strategy].sends != "encodings":
        overrides.pop("hosts", None)  # all others have one
    options = {"strategy": plan.strategy, "absent": plan.absent, "shield": plan.shield}
    return settled_within(plan.epsilon, plan.preset, data, overrides, **options)


def parse_faults(texts: Sequence[str]) -> Faults:
    """The faults of one training; files of recorded outages are read, and their paths absolute from here on."""
    return Faults.parse(texts, lambda path: replace(read_outages(path), source=str(Path(path).resolve())))


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, as JSON keeps it; paths absolute, so that a run resumes from another folder too."""
    plain: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, Path):
            plain[name] = str(value.resolve())
        elif isinstance(value, list):
            plain[name] = [str(path.resolve()) for path in value]
        elif value is not None:
            plain[name] = value
    return plain


def _check_data(data: Mapping[str, Any]) -> None:
    """Either a data set by name or one's own tables."""
    if "tables" not in data:
        for name in _TABLES_ONLY:
            if name in data:
                raise UserError(f"{_option(name)} goes with --table FILE, one for each guest; none is given")
        return
    for name in ("labels", "id"):
        if name not in data:
            raise UserError(f"--table needs {_option(name)} {'FILE' if name == 'labels' else 'COLUMN'} too")
    for name in ("dataset", "guests", "data_dir"):
        if name in data:
            raise UserError(f"{_option(name)} does not go with --table: each table given is one guest")
    if "rows" in data:
        raise UserError("--rows does not go with --table: all rows with a label are trained on")
    for name in ("split", "split_seed"):
        if name in data:
            raise UserError(f"{_option(name)} does not go with --table: a random fifth of the rows is held out")


def chosen_device(name: str) -> str:
    """`auto` settled: a GPU where PyTorch finds one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: PyTorch finds no CUDA GPU on this machine; --device cpu or auto is right")
    return name


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "not set" if value is None else str(value)
