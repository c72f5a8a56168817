"""Table 1 in words, as Markdown, as a figure and as a page."""

import re
import subprocess
import sys
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from dvfl.reproduce.outcome.results import Cell, Results
from dvfl.reproduce.pages import table1_findings as comparison
from dvfl.reproduce.pages.pages import markdown, page
from dvfl.reproduce.pages.presentation import standing_alone
from dvfl.reproduce.pages.table1_figure import table1_inline
from dvfl.reproduce.pages.table1_findings import columns, distinct, findings, judged, label, strategies
from dvfl.reproduce.pages.text_tables import number, signed
from dvfl.reproduce.paper.published import TABLE1

AHEAD, AGAINST, OPEN, UNDER, HOSTS, PAPER = (
    "Where a baseline is ahead",
    "DVFL against the baselines",
    "What is open",
    "DVFL under faults",
    "What hosts and replay bring",
    "Where ours differs from the paper's figures",
)


def near_the_paper(seeds: int = 10, **shift: float) -> Results:
    """A table with the paper's means; `shift` moves a strategy's means (`splitnn_zeros=0.5`)."""
    rng = np.random.default_rng(3)
    cells = []
    for strategy, row in TABLE1.items():
        move = shift.get(strategy.replace("-", "_"), 0.0)
        for (kind, up), figure in row.items():
            condition: dict[str, Any] = {"kind": kind, "down": None if up is None else 0.3, "up": up}
            command = f"dvfl train --strategy {strategy} --seeds {seeds}"
            if figure is None:
                accuracy: list[float | None] = [None] * seeds
                status = f"stalled at round {int(rng.integers(1, 9))}"
            else:
                spread = figure[1] / 2 * rng.permutation(np.linspace(-1, 1, seeds))
                accuracy = (figure[0] + move + spread).round(2).tolist()
                status = "ok"
            numbers = figure or (None, None)
            cells.append(Cell(strategy, "mnist", condition, list(range(seeds)), accuracy, status, *numbers, command))
    machine, versions = {"cpu": "two cores"}, {"dvfl": "0.1.0", "torch": "2.6"}
    return Results("table1", "paper", machine, versions, "dvfl reproduce table1 --out r", 4210.3, cells)


def changed(results: Results, strategy: str, column: comparison.Column, **changes: Any) -> Results:
    """The same with one cell changed."""
    found = [c.strategy == strategy and (c.condition["kind"], c.condition["up"]) == column for c in results.cells]
    assert sum(found) == 1
    cells = [replace(c, **changes) if hit else c for c, hit in zip(results.cells, found, strict=True)]
    return replace(results, cells=cells)


@pytest.fixture(scope="module")
def results() -> Results:
    return near_the_paper()


@pytest.fixture(scope="module")
def html(results: Results) -> str:
    return page([results])


def test_columns_and_rows_are_in_the_papers_order_whatever_the_order_of_cells(results: Results) -> None:
    turned = replace(results, cells=results.cells[::-1])
    kinds = [f"{kind} {up}" for kind in ("connection", "guest", "host") for up in ("1", "0.5", "0.1")]
    assert [label(column) for column in columns(turned)] == ["no faults", *kinds]
    assert strategies(turned) == list(TABLE1)


def test_numbers_have_a_real_minus_and_zero_has_no_sign() -> None:
    assert (number(-0.1), number(-0.001), signed(0.001), signed(-1.0)) == ("−0.10", "0.00", "0.00", "−1.00")  # noqa: RUF001
    assert signed(0.25) == "+0.25"


def test_every_baseline_is_judged_in_every_column_where_it_has_values(results: Results) -> None:
    tests = judged(results)
    assert len(tests) == 7 * 10 - 9
    assert {test.strategy for test in tests} == set(TABLE1) - {"dvfl"}
    adjusted = [(test.judgement.adjusted_p, test.comparison.p) for test in tests]
    assert all(raised is not None and p is not None and raised >= p for raised, p in adjusted)


def test_the_verdict_follows_the_adjusted_p_and_the_sign(results: Results) -> None:
    theirs = results.cell("dvfl", {"kind": "guest", "down": 0.3, "up": 1.0})
    assert theirs is not None
    for shift, verdict in ((0.5, "behind"), (-0.5, "ahead"), (0.0, "level")):  # and open where the noise is larger
        noise = [0.01, -0.01] * 5
        moved = [float(v or 0) + shift + e for v, e in zip(theirs.accuracy, noise, strict=True)]
        table = changed(results, "vafl", ("guest", 1.0), accuracy=moved)
        (found,) = (t for t in judged(table) if (t.strategy, t.column) == ("vafl", ("guest", 1.0)))
        assert found.verdict == verdict


def test_findings_give_dvfls_lowest_column_and_its_cost(results: Results) -> None:
    found = findings(changed(results, "dvfl", ("host", 0.5), accuracy=[97.0 + 0.01 * n for n in range(10)]))
    assert "the lowest is host 0.5 with 97.0" in found[UNDER][0]
    assert found[UNDER][1].startswith("The faults of host 0.5 cost 0.7")


def test_findings_say_when_faults_cost_nothing(results: Results) -> None:
    best = changed(results, "dvfl", ("none", None), accuracy=[97.0 + 0.01 * n for n in range(10)])
    assert "no fault column is below it" in findings(best)[UNDER][0]


def test_a_collapse_is_named_with_its_column(results: Results) -> None:
    against = " ".join(findings(results)[AGAINST])
    assert re.search(r"Collapsed.*splitnn-skip in connection 0\.1 \(77\.21\) and guest 0\.1 \(80\.22\)", against)
    assert "collapses nowhere" in " ".join(findings(results)[UNDER])
    fallen = changed(results, "dvfl", ("host", 0.1), accuracy=[50.0 + n for n in range(10)])
    assert "It collapses" in " ".join(findings(fallen)[UNDER])


def test_a_strategy_that_stalls_is_named(results: Results) -> None:
    assert "splitnn-wait stalls in all 9 fault columns" in " ".join(findings(results)[AGAINST])


def test_every_baseline_that_is_ahead_or_open_is_named_under_its_column() -> None:
    table = near_the_paper(splitnn_zeros=0.6)
    said = findings(table)
    assert next(iter(said)) == AHEAD  # where a baseline is ahead comes first
    for test in judged(table):
        assert not isinstance(test.column, str)
        for heading, verdict in ((AHEAD, "behind"), (OPEN, "open")):
            starts = label(test.column) + ":"
            line = next((line for line in said[heading] if line.lower().startswith(starts)), "")
            assert (f"{test.strategy} " in line) == (test.verdict == verdict)
    assert any("splitnn-zeros" in line for line in said[AHEAD])
    assert any(line.startswith("Pooled over R_u 1 and 0.5: splitnn-zeros ") for line in said[AHEAD])


def test_it_is_said_when_no_baseline_is_ahead() -> None:
    alone = near_the_paper(**{name.replace("-", "_"): -3.0 for name in TABLE1 if name != "dvfl"})
    assert findings(alone)[AHEAD] == ["In no column, and in no pool of columns."] and OPEN not in findings(alone)


def test_strategies_with_the_same_numbers_are_counted_once(results: Results) -> None:
    zeros = results.cell("splitnn-zeros", {"kind": "host", "down": 0.3, "up": 1.0})
    assert zeros is not None
    same = changed(results, "splitnn-buffer", ("host", 1.0), accuracy=zeros.accuracy)
    assert len(distinct(same, judged(same))) == len(judged(same)) - 1
    assert "Of 60 distinct comparisons" in findings(same)[AGAINST][0] and "shows 61" in findings(same)[AGAINST][1]
    assert all(line.count("distinct") == 0 for line in findings(results)[AGAINST][1:])


def test_variants_of_dvfl_are_no_baselines_and_have_tables_of_their_own(results: Results) -> None:
    ours = [cell for cell in results.cells if cell.strategy == "dvfl"]
    hostless = [
        replace(cell, strategy="dvfl-hostless", paper_mean=None, untouched=i > 4) for i, cell in enumerate(ours)
    ]
    both = replace(results, cells=[*results.cells, *hostless])
    assert judged(both) == judged(results) and len(judged(both, "variants")) == 10
    assert findings(both)[HOSTS][0].startswith("dvfl minus dvfl-hostless: no faults 0.00")
    text = markdown(both)
    assert "| = | = | = | = | = |" in rows_line(text, "Ours", "dvfl-hostless")
    assert "## DVFL minus its variants" in text and "dvfl-hostless" not in findings(both)[PAPER][0]


def rows_line(text: str, title: str, name: str) -> str:
    """A table's line."""
    part = text.split(f"## {title}\n")[1].split("\n## ")[0]
    return next(line for line in part.splitlines() if line.startswith(f"| {name} |"))


def test_differences_from_the_paper_are_listed_with_their_reason(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(comparison.REASONS, "vafl", "Because of this.")
    monkeypatch.setitem(comparison.REASONS, "vfb2", "Never shown.")
    said = " ".join(findings(near_the_paper(vafl=2.0))[PAPER])
    assert re.search(r"vafl: no faults \+\d\.\d\d, .*\. Because of this\.", said) and "Never shown" not in said
    assert findings(results)[PAPER][-1].startswith("The means of all 71 cells")


@pytest.mark.parametrize("change", [{"preset": "tuned"}, {"rows": 10_000}], ids=str)
def test_reasons_are_those_of_the_papers_settings_on_all_rows(change: dict[str, Any]) -> None:
    assert "chosen by eight trials" in " ".join(findings(near_the_paper(vafl=2.0))[PAPER])
    assert "chosen by eight trials" not in " ".join(findings(replace(near_the_paper(vafl=2.0), **change))[PAPER])


def test_a_difference_within_the_spreads_says_so(results: Results) -> None:
    wide = changed(results, "vafl", ("none", None), accuracy=[96.5, 99.5] * 5)
    assert re.search(r"vafl: no faults \+0\.\d\d \(the 2 sigma ranges overlap\)", " ".join(findings(wide)[PAPER]))


def test_a_model_where_the_paper_has_none_is_a_difference(results: Results) -> None:
    heard = changed(results, "splitnn-wait", ("guest", 1.0), accuracy=[97.5] * 10, requests_repeated=1234)
    assert "splitnn-wait: guest 1 97.50 where the paper has N/A" in " ".join(findings(heard)[PAPER])
    assert "Requests that splitnn-wait repeated: guest 1 (1,234)." in markdown(heard)


def test_fewer_rows_and_another_preset_are_said_beside_the_papers_figures(results: Results) -> None:
    said = " ".join(findings(replace(results, rows=2000, preset="tuned"))[PAPER])
    assert "2,000 training rows" in said and "preset tuned" in said


def test_one_seed_makes_a_page_that_says_nothing_could_be_tested() -> None:
    text = markdown(near_the_paper(seeds=1))
    assert "nothing can be tested" in text and "▲" not in text.split("## DVFL minus each baseline")[0]


def rows(text: str, title: str) -> dict[str, list[str]]:
    """A Markdown table's cells by strategy."""
    part = text.split(f"## {title}\n")[1].split("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("|")]
    return {line[0]: line[1:] for line in lines[2:]}


def test_markdown_tables_hold_every_cell_and_mark_the_best(results: Results) -> None:
    text = markdown(results)
    ours, papers, tests = (
        rows(text, title) for title in ("Ours", "Ours minus the paper's", "DVFL minus each baseline")
    )
    assert list(ours) == list(papers) == list(TABLE1) and list(tests) == list(TABLE1)[1:]
    assert all(len(cells) == 10 for cells in (*ours.values(), *papers.values(), *tests.values()))
    for column in range(10):
        means = {
            name: float(cells[column].split()[0].strip("*")) for name, cells in ours.items() if "±" in cells[column]
        }
        bold = {name for name, cells in ours.items() if "**" in cells[column]}
        assert bold == {name for name, mean in means.items() if mean == max(means.values())}
    assert ours["splitnn-wait"][1:] == ["N/A"] * 9
    assert re.search(r"N/A: splitnn-wait stalled in connection 1 \(round \d\)", text)


def test_marks_are_those_of_the_tests(results: Results) -> None:
    shown = rows(markdown(results), "DVFL minus each baseline")
    marks = {"ahead": "▲", "behind": "▼"}
    for test in judged(results):
        cell = shown[test.strategy][columns(results).index(test.column)]
        assert cell.startswith(signed(test.comparison.difference))
        assert ("▲" in cell or "▼" in cell) == (test.verdict in marks) and marks.get(test.verdict, "") in cell


def test_markdown_says_how_where_and_how_long(results: Results) -> None:
    text = markdown(replace(results, rows=2000, note="A note on the data."))
    for part in ("`dvfl reproduce table1 --out r`", "cpu two cores", "70 min", "seeds: 10 (0 to 9)", "2,000", "A note"):
        assert part in text


def test_page_and_markdown_say_the_same(results: Results, html: str) -> None:
    plain = re.sub(r"\s+", " ", html.replace("&#39;", "'").replace("&lt;", "<"))
    for heading, sentences in findings(results).items():
        assert heading in plain and all(sentence in plain for sentence in sentences)


def test_the_page_fetches_nothing_and_serves_dark_and_phones(html: str) -> None:
    addresses = re.findall(r"""(?:src|href)\s*=\s*["']([^"']*)""", html) + re.findall(r"url\(([^)]*)", html)
    assert addresses and all(address.startswith(("data:", "#")) for address in addresses)
    assert not re.search(r"<(script|link|iframe)\b|@import", html)
    assert "prefers-color-scheme: dark" in html and 'name="viewport"' in html


def test_every_seeds_value_and_every_cells_command_are_on_the_page(results: Results, html: str) -> None:
    folded = html[html.index("<details>") :]
    for cell in results.cells:
        assert cell.command in folded
        assert all(f"{value:.2f}" in folded for value in cell.accuracy if value is not None)


def test_text_from_a_file_is_escaped(results: Results) -> None:
    evil = "<script>alert(1)</script>"
    odd = replace(results, command=evil, note=evil, machine={evil: evil}, preset=evil)
    odd = replace(odd, cells=[replace(cell, command=evil, status=evil) for cell in odd.cells])
    assert "<script" not in page([odd])


def marks_of(svg: str) -> int:
    """How many markers a figure shows, the legend's among them."""
    return len(re.findall(r"<use\b", svg))


def test_the_figure_shows_every_mean_once(results: Results) -> None:
    one = marks_of(table1_inline(results))
    less = replace(results, cells=[c for c in results.cells if c.strategy != "vafl" or c.condition["kind"] == "none"])
    assert one - marks_of(table1_inline(less)) == 2 * 9


def test_the_scale_is_broken_only_where_something_collapsed(results: Results) -> None:
    assert "the scale changes here" in table1_inline(results)
    calm = replace(results, cells=[c for c in results.cells if c.strategy in ("dvfl", "splitnn-zeros")])
    assert "the scale changes here" not in table1_inline(calm)


def test_the_figures_file_stands_alone_on_white_and_the_pages_takes_its_ink(results: Results) -> None:
    inline = table1_inline(results)
    alone = standing_alone(inline)
    ElementTree.fromstring(alone)
    assert 'fill="#ffffff"' in alone and 'color="#1b1f24"' in alone
    assert inline.startswith("<svg ") and "currentColor" in inline and "#ffffff" not in inline


def test_a_table_without_a_single_model_is_still_drawn(results: Results) -> None:
    cells = [replace(c, accuracy=[None] * 10, status="stalled at round 1") for c in results.cells]
    empty = replace(results, cells=cells)
    assert "<svg" in page([empty]) and "not both here" in markdown(empty)


def test_pages_are_made_without_pytorch() -> None:
    code = "import dvfl.reproduce.pages.pages, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
