"""Why more hosts are not always better in preset paper: one to four hosts, with four treatments of their encodings.

    python benchmarks/redundant_hosts.py --out DIR --data-dir DIR --device cuda

Guests and four hosts are trained once a seed under each condition: connections that fail with R_d 0 or 0.6 and rejoin
with R_u 1, 0.5 or 0.1, and guests whose rows belong to different entities. The owner is then trained on the encodings
of the first hosts alone, with the preset's settings, on encodings as they are, centred, standardised, or as they are at
its learning rate over the number of hosts. Scores are of the test rows, so that "as they are" with four hosts repeats
the pages of `dvfl reproduce`; nothing is chosen by them.

Writes DIR/redundant_hosts.json (every seed) and DIR/redundant_hosts.md: means, four hosts against one, and the
interaction, which is what a treatment changes in that difference, paired by seed and adjusted by Holm's rule. Where
DIR has the figures already, the tests and the page alone are made again.
"""

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dvfl.data.outages import read_outages
from dvfl.files import write_json, write_text
from dvfl.parties.faults.fault_set import Faults
from dvfl.reproduce.outcome.experiment import Source
from dvfl.reproduce.outcome.statistics import compare_differences, differences, judge, pooled
from dvfl.reproduce.pages.text_tables import judgement_fields, p_value
from dvfl.reproduce.sources import Sources
from dvfl.reproduce.workers import machine
from dvfl.runs.run_folder import versions
from dvfl.settings.training import Settings
from dvfl.simulation.stack import Stack
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.decoupled.owner_phase import OwnerPhase
from dvfl.strategies.paper_preset import paper

HOSTS = 4
CONDITIONS = ("no faults", "connection:0.6:1", "connection:0.6:0.5", "connection:0.6:0.1", "misaligned")
AS_THEY_ARE = "as they are"
TREATMENTS = (AS_THEY_ARE, "centred", "standardised", "rate / hosts")
Accuracy = dict[tuple[str, str, int], dict[int, float | None]]  # by condition, treatment and hosts; by seed


@torch.no_grad()
def measure(sources: Sources, dataset: str, seeds: int, device: str) -> tuple[Accuracy, dict[str, float]]:
    """Test accuracy, and the length of the hosts' mean encoding over the deviation of encodings from it."""
    aligned = Source(dataset)
    data, names, faults, luck = [], [], [], []
    for condition in CONDITIONS:
        apart = condition == "misaligned"
        texts = () if apart or condition == CONDITIONS[0] else (condition,)
        for seed in range(seeds):
            data.append(sources.data(replace(aligned, misaligned=apart), seed))
            faults.append(Faults.parse(texts, read_outages))
            names.append(condition)
            luck.append(seed)
    settings = replace(paper(data[0]), hosts=HOSTS)
    simulation = Dvfl(data, settings, luck, faults=faults, device=device)
    while simulation.phase != "owner":
        simulation.advance()
    simulation.hosts.release()
    train, test = simulation.collect(), simulation.stack.encode(simulation.tables.test())
    truth = torch.from_numpy(simulation.tables.test_labels()).to(train.device)
    centre = train.mean(1, keepdim=True)
    spread = (train - centre).square().sum(2).mean(1).sqrt()
    shares = centre[:, 0].norm(dim=1) / spread
    offsets = {
        name: round(shares[[other == name for other in names]].mean().item(), 2) for name in dict.fromkeys(names)
    }
    accuracy: Accuracy = {}
    for treatment in TREATMENTS:
        for hosts in range(1, HOSTS + 1):
            right = owners(simulation, settings, treatment, hosts, (train, test, centre), truth)
            for name, seed, value in zip(names, luck, right, strict=True):
                accuracy.setdefault((name, treatment, hosts), {})[seed] = round(value, 2)
    return accuracy, offsets


def owners(
    simulation: Dvfl,
    settings: Settings,
    treatment: str,
    hosts: int,
    encodings: tuple[Tensor, Tensor, Tensor],  # of labelled rows, of test rows, the former's mean
    truth: Tensor,
) -> list[float]:
    """Every replica's test accuracy in percent, of owners that read the first hosts alone."""
    own = replace(settings, hosts=hosts, standardise=treatment == "standardised")
    if treatment == "rate / hosts":
        own = replace(own, owner_rule=replace(own.owner_rule, rate=own.owner_rule.rate / hosts))
    read = slice(hosts * encodings[0].shape[2] // HOSTS)
    train, test, centre = (part[:, :, read] for part in encodings)
    if treatment == "centred":
        train, test = train - centre, test - centre
    stack = Stack(simulation.stack.shape, own, simulation.seeds, simulation.device)
    owner = OwnerPhase(stack, train.clone(), simulation.tables.labels(), [own] * len(simulation.seeds))
    with stack.suited(own.batch):
        while not owner.finished:
            owner.advance()
    owner.finish()
    right: list[float] = ((stack.predict(test).argmax(2) == truth).double().mean(1) * 100).tolist()
    return right


def hosts_gain(accuracy: Accuracy, condition: str, treatment: str) -> dict[int, float]:
    """Four hosts minus one, by seed."""
    return differences(accuracy[condition, treatment, HOSTS], accuracy[condition, treatment, 1])


def tested(values: Mapping[str, Mapping[int, float]]) -> dict[str, Any]:
    """The tests of differences by seed, adjusted for their number."""
    found = {name: compare_differences([*by_seed.values()]) for name, by_seed in values.items()}
    known = {name: one for name, one in found.items() if one is not None}
    return {name: judgement_fields(one) for name, one in judge(known, {name: name for name in known}).items()}


def comparisons(accuracy: Accuracy) -> dict[str, Any]:
    """Four hosts against one under every treatment, and what a treatment changes in that."""
    gains = {(c, t): hosts_gain(accuracy, c, t) for c in CONDITIONS for t in TREATMENTS}
    changes = {(c, t): differences(gain, gains[c, AS_THEY_ARE]) for (c, t), gain in gains.items() if t != AS_THEY_ARE}
    for pool in (gains, changes):
        for treatment in dict.fromkeys(t for _, t in pool):
            pool["all five conditions", treatment] = pooled([pool[c, treatment] for c in CONDITIONS])
    return {
        name: tested({f"{c}, {t}": values for (c, t), values in each.items()})
        for name, each in (("four_against_one", gains), ("interaction", changes))
    }


def page(results: dict[str, Any]) -> str:
    """The results as text."""
    means = {
        (c["condition"], c["treatment"], c["hosts"]): sum(c["accuracy"]) / len(c["accuracy"]) for c in results["cells"]
    }
    lines = ["# Redundant hosts in preset paper: what the owner makes of their common offset", ""]
    where = ", ".join(f"{name} {value}" for name, value in results["machine"].items())
    lines += [f"`{results['command']} --out DIR`, {where}", ""]
    lines += ["Mean test accuracy in percent of owners that read one to four hosts.", ""]
    lines += [
        "| condition | encodings | 1 host | 2 hosts | 3 hosts | 4 hosts |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for condition in CONDITIONS:
        for treatment in TREATMENTS:
            row = " | ".join(f"{means[condition, treatment, hosts]:.2f}" for hosts in range(1, HOSTS + 1))
            lines.append(f"| {condition} | {treatment} | {row} |")
    for heading, note, name in (
        ("Four hosts against one", "Difference in points, paired by seed.", "four_against_one"),
        (
            "Interaction",
            "What a treatment changes in the difference between four hosts and one, against encodings as they are.",
            "interaction",
        ),
    ):
        lines += ["", f"## {heading}", "", note, "", "| case | difference | 95 % interval | adjusted p | verdict |"]
        lines.append("| --- | --- | --- | --- | --- |")
        for case, one in results[name].items():
            interval = f"{one['low']:+.2f} to {one['high']:+.2f}"
            p = p_value(one["adjusted_p"])
            lines.append(f"| {case} | {one['difference']:+.2f} | {interval} | {p} | {one['verdict'] or ''} |")
    lines += ["", "## The offset", "", "Length of the mean encoding of four hosts over the deviation from it.", ""]
    lines += ["| condition | ratio |", "| --- | --- |"]
    lines += [f"| {condition} | {ratio:.2f} |" for condition, ratio in results["offsets"].items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--dataset", default="mnist")
    given = parser.parse_args()
    file = given.out / "redundant_hosts.json"
    if file.is_file():
        results = json.loads(file.read_text())
    else:
        start = time.perf_counter()
        accuracy, offsets = measure(Sources(given.data_dir, None), given.dataset, given.seeds, given.device)
        words = f"--dataset {given.dataset} --seeds {given.seeds} --device {given.device}"
        results = {
            "command": f"python benchmarks/redundant_hosts.py {words}",
            "machine": machine(given.device),
            "versions": versions(),
            "seconds": round(time.perf_counter() - start, 1),
            "cells": [
                {"condition": c, "treatment": t, "hosts": hosts, "accuracy": [*by_seed.values()]}
                for (c, t, hosts), by_seed in accuracy.items()
            ],
            "offsets": offsets,
        }
    known: Accuracy = {
        (cell["condition"], cell["treatment"], cell["hosts"]): dict(enumerate(cell["accuracy"]))
        for cell in results["cells"]
    }
    results |= comparisons(known)
    given.out.mkdir(parents=True, exist_ok=True)
    write_json(file, results)
    write_text(given.out / "redundant_hosts.md", page(results))
    print(page(results))


if __name__ == "__main__":
    main()
