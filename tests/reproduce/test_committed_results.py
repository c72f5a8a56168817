"""The committed results: every statistic again from the seeds' values by another route, and what pages say of it."""

import json
import math
import re
import statistics
from collections.abc import Hashable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

RESULTS = Path(__file__).parents[2] / "docs" / "results"
FILES = sorted(
    file
    for preset in ("paper", "tuned")
    for file in (RESULTS / preset).glob("*.json")
    if "comparisons" in file.read_text()
)
NAMES = [f"{file.parent.name}/{file.stem}" for file in FILES]
MARKS = {"ahead": " ▲", "behind": " ▼", "level": " =", "open": "", None: ""}
LEAST, MARGIN, ALPHA = 6, 0.1, 0.05


def read(file: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(file.read_text())
    return loaded


def known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def rank_p(differences: Sequence[float]) -> float:
    """Wilcoxon's two-sided p by counting the sums of ranks that all choices of signs give."""
    values = np.round([value for value in differences if abs(value) > 1e-9], 9)
    if not len(values):
        return 1.0
    doubled = (2 * stats.rankdata(np.abs(values))).astype(int)
    total, counts = int(doubled.sum()), np.ones(1)
    for half in (doubled[: len(doubled) // 2], doubled[len(doubled) // 2 :]):
        chosen = (np.arange(2 ** len(half))[:, None] >> np.arange(len(half))) & 1
        counts = np.convolve(counts, np.bincount(chosen @ half, minlength=1))
    apart = abs(2 * int(doubled[values > 0].sum()) - total)
    sums = np.arange(len(counts))
    return float(counts[np.abs(2 * sums - total) >= apart].sum() / counts.sum())


def holm(p: dict[Hashable, float]) -> dict[Hashable, float]:
    adjusted, floor = {}, 0.0
    for passed, key in enumerate(sorted(p, key=p.__getitem__)):
        floor = max(floor, min(1.0, p[key] * (len(p) - passed)))
        adjusted[key] = floor
    return adjusted


def sides(results: dict[str, Any], one: dict[str, Any]) -> list[dict[int, float]]:
    """What a comparison subtracts, by seed: one column's differences, or several to be averaged."""

    def cell(strategy: str, condition: dict[str, Any]) -> dict[int, float | None]:
        found = [
            c
            for c in results["cells"]
            if c["strategy"] == strategy
            and all(c["condition"].get(key) == value for key, value in condition.items())
            and set(c["condition"]) - {"down"} == set(condition) - {"down"}
            and one.get("dataset") in (None, c["dataset"])
        ]
        assert len(found) == 1
        return dict(zip(found[0]["seeds"], found[0]["accuracy"], strict=True))

    if "pooled" in one:
        columns = {
            "R_u 1 and 0.5": [(kind, up) for kind in ("connection", "guest", "host") for up in (1.0, 0.5)],
            "R_u 0.1": [(kind, 0.1) for kind in ("connection", "guest", "host")],
        }
        columns["all faults"] = [*columns["R_u 1 and 0.5"], *columns["R_u 0.1"]]
        pairs = [
            (cell("dvfl", {"kind": k, "up": u}), cell(one["second"], {"kind": k, "up": u}))
            for k, u in columns[one["pooled"]]
        ]
    elif isinstance(one.get("first"), dict):
        first, second = one["first"], one["second"]
        pairs = [(cell(first["strategy"], first["condition"]), cell(second["strategy"], second["condition"]))]
    elif "condition" in one:
        pairs = [(cell("dvfl", one["condition"]), cell(one["second"], one["condition"]))]
    else:  # contrasts that are pooled under a label of their own
        labels = [c for c in results["comparisons"] if c["family"] == "contrasts"]
        stem = one["label"].removesuffix(", pooled")
        return [
            by_seed
            for c in labels
            if re.match(re.escape(stem) + r", (\d+ labels|R_d)", c["label"])
            for by_seed in sides(results, c)
        ]
    return [
        {seed: mine - theirs[seed] for seed, mine in ours.items() if mine is not None and theirs.get(seed) is not None}  # type: ignore[operator]
        for ours, theirs in pairs
    ]


def mean_by_seed(columns: list[dict[int, float]]) -> list[float]:
    seeds = set.intersection(*(set(column) for column in columns))
    return [sum(column[seed] for column in columns) / len(columns) for seed in sorted(seeds)]


def test_both_presets_have_results_with_comparisons() -> None:
    assert {"paper/table1", "tuned/table1", "paper/redundancy", "paper/memory", "tuned/datasets"} <= set(NAMES)


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_means_and_spreads_are_those_of_the_seeds_inside_the_fences(file: Path) -> None:
    for cell in read(file)["cells"]:
        values = known(cell["accuracy"])
        if not values:
            assert cell["mean"] is None and cell["two_sigma"] is None
            continue
        if len(values) > 1:
            exact = [Fraction(str(value)) for value in values]  # a value on a fence is inside
            first, _, third = statistics.quantiles(exact, n=4, method="inclusive")
            reach = Fraction(3, 2) * (third - first)
            values = [float(value) for value in exact if first - reach <= value <= third + reach]
        assert cell["mean"] == pytest.approx(statistics.fmean(values), abs=1e-4)
        spread = 2 * statistics.stdev(values) if len(values) > 1 else 0.0
        assert cell["two_sigma"] == pytest.approx(spread, abs=1e-4)


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_tests_and_verdicts_are_scipys(file: Path) -> None:
    results = read(file)
    families: dict[str, list[tuple[dict[str, Any], list[float], Hashable]]] = {}
    for one in results["comparisons"]:
        columns = sides(results, one)
        values = mean_by_seed(columns)
        families.setdefault(one["family"], []).append((one, values, distinct(results, one, columns)))
    for family in families.values():
        p: dict[Hashable, float] = {}
        level: dict[Hashable, float] = {}
        for one, values, key in family:
            assert one["pairs"] == len(values)
            assert one["difference"] == pytest.approx(np.mean(values), abs=1e-9)
            if len(values) < LEAST:
                assert one["t_p"] is one["rank_p"] is one["adjusted_p"] is one["verdict"] is None
                continue
            if np.ptp(values) > 1e-9:
                test = stats.ttest_1samp(values, 0)
                bounds = test.confidence_interval(0.95)
                assert one["t_p"] == pytest.approx(test.pvalue, rel=1e-6, abs=1e-12)
                assert (one["low"], one["high"]) == pytest.approx((bounds.low, bounds.high), abs=1e-9)
                below = stats.ttest_1samp(values, MARGIN, alternative="less").pvalue
                above = stats.ttest_1samp(values, -MARGIN, alternative="greater").pvalue
                assert one["level_p"] == pytest.approx(max(below, above), rel=1e-6, abs=1e-12)
            assert one["rank_p"] == pytest.approx(rank_p(values), rel=1e-9)
            p[key] = min(1.0, 2 * min(one["t_p"], one["rank_p"]))
            level[key] = one["level_p"]
        adjusted, adjusted_level = holm(p), holm(level)
        for one, values, key in family:
            if len(values) < LEAST:
                continue
            assert one["adjusted_p"] == pytest.approx(adjusted[key], rel=1e-6, abs=1e-12)
            assert one["adjusted_level_p"] == pytest.approx(adjusted_level[key], rel=1e-6, abs=1e-12)
            if adjusted[key] < ALPHA:
                assert one["verdict"] == ("ahead" if one["difference"] > 0 else "behind")
            else:
                assert one["verdict"] == ("level" if adjusted_level[key] < ALPHA else "open")


def distinct(results: dict[str, Any], one: dict[str, Any], columns: list[dict[int, float]]) -> Hashable:
    """The same for comparisons of the same numbers: all values of both sides, or the pooled differences."""
    if "pooled" in one:
        return tuple(round(value, 9) for value in mean_by_seed(columns))
    if "label" in one and "first" not in one:
        return str(one["label"])
    names = ("first", "second")
    both = []
    for name in names:
        side = one[name] if isinstance(one[name], dict) else {"strategy": one[name], "condition": one["condition"]}
        both.append(
            next(
                tuple(cell["accuracy"])
                for cell in results["cells"]
                if cell["strategy"] == side["strategy"]
                and all(cell["condition"].get(key) == value for key, value in side["condition"].items())
                and set(cell["condition"]) - {"down"} == set(side["condition"]) - {"down"}
                and one.get("dataset") in (None, cell["dataset"])
            )
        )
    return tuple(both)


@pytest.mark.parametrize("preset", ["paper", "tuned"])
def test_table_1s_page_counts_distinct_comparisons(preset: str) -> None:
    results, text = read(RESULTS / preset / "table1.json"), (RESULTS / preset / "table1.md").read_text()
    verdicts = {}
    shown = 0
    for one in results["comparisons"]:
        if one["family"] == "baselines":
            shown += 1
            verdicts[distinct(results, one, sides(results, one))] = one["verdict"]
    counts = {word: list(verdicts.values()).count(word) for word in ("ahead", "level", "behind", "open")}
    said = re.search(
        r"Of (\d+) distinct comparisons DVFL is ahead in (\d+), level in (\d+), behind in (\d+), and (\d+) are open",
        text,
    )
    assert said is not None
    expected = (len(verdicts), counts["ahead"], counts["level"], counts["behind"], counts["open"])
    assert tuple(map(int, said.groups())) == expected
    assert len(verdicts) == shown or f"The table shows {shown}:" in text
    assert counts["behind"] == 0 or text.index("## Where a baseline is ahead") < text.index("## DVFL under faults")


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_pages_show_every_difference_with_its_verdict(file: Path) -> None:
    results, text = read(file), file.with_suffix(".md").read_text().replace("\N{MINUS SIGN}", "-")
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    for one in results["comparisons"]:
        difference = f"{one['difference']:+.2f}" if math.fabs(one["difference"]) >= 0.005 else "0.00"
        low, high = (f"{one[name]:.2f}" if math.fabs(one[name]) >= 0.005 else "0.00" for name in ("low", "high"))
        wanted = f"| {difference} ({low} to {high}){MARKS[one['verdict']]} |"
        name = one["label"] if "label" in one else one["second"]
        assert any(line.startswith(f"| {name} |") and wanted in line for line in tables), (name, wanted)


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_no_p_value_rests_on_few_seeds(file: Path) -> None:
    assert all(one["adjusted_p"] is None or one["pairs"] >= LEAST for one in read(file)["comparisons"])


def test_spreads_of_preset_paper_rest_on_twenty_seeds() -> None:
    assert all(len(cell["seeds"]) == 20 for cell in read(RESULTS / "paper" / "table1.json")["cells"])
