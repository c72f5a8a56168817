"""Results as people read them: NAME.md for one experiment, report.html for all of a folder."""

from collections.abc import Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from dvfl.reproduce.outcome.results import Results
from dvfl.reproduce.pages.presentation import Presentation, presentation
from dvfl.reproduce.pages.text_tables import NOTHING, as_markdown


def markdown(results: Results) -> str:
    """One experiment as text; its figure is the file beside it."""
    shown = presentation(results)
    lines = [f"# {shown.title}", ""]
    lines += [f"- {name}: {f'`{value}`' if name == 'command' else value}" for name, value in _facts(results)]
    lines += ["", *([results.note, ""] if results.note else [])]
    first, *others = shown.tables
    lines += as_markdown(first) + _paragraph(_gaps(shown))
    lines += [f"![Ours beside the paper's]({results.experiment}.svg)", ""]
    for heading, sentences in shown.findings.items():
        lines += [f"## {heading}", "", *(f"- {sentence}" for sentence in sentences), ""]
    for other in others:
        lines += as_markdown(other)
    lines += ["## Statistics", "", shown.statistics, ""]
    return "\n".join(lines).rstrip() + "\n"


def page(all_results: Sequence[Results]) -> str:
    """All experiments of a folder on one page that needs nothing but itself."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dvfl.runs"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("comparison.html").render(sections=[_section(results) for results in all_results])


def _section(results: Results) -> dict[str, Any]:
    shown = presentation(results)
    return {
        "name": results.experiment,
        "facts": dict(_facts(results)),
        "note": results.note,
        "shown": shown,
        "figure": Markup(shown.figure),
        "gaps": _gaps(shown),
    }


def _facts(results: Results) -> list[tuple[str, str]]:
    """How, where and how long."""
    seeds = sorted({seed for cell in results.cells for seed in cell.seeds}) or [0]
    return [
        ("command", results.command),
        ("preset", results.preset),
        ("data", ", ".join(dict.fromkeys(cell.dataset for cell in results.cells))),
        ("training rows", "all" if results.rows is None else f"{results.rows:,}"),
        ("seeds", f"{len(seeds)} ({seeds[0]} to {seeds[-1]})" if len(seeds) > 1 else str(len(seeds))),
        ("time", _duration(results.seconds)),
        ("machine", ", ".join(f"{name} {value}" for name, value in results.machine.items())),
        ("versions", ", ".join(f"{name} {value}" for name, value in results.versions.items())),
    ]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{int(seconds) // 60} min {int(seconds) % 60} s"
    return f"{int(seconds) // 3600} h {int(seconds) % 3600 // 60} min"


def _gaps(shown: Presentation) -> list[str]:
    """Where seeds have no value, and how many requests were repeated to get one."""
    stalled: dict[str, list[str]] = {}
    repeated: dict[str, list[str]] = {}
    for cell, where in shown.cells:
        missing = cell.accuracy.count(None)
        if missing:
            part = "" if missing == len(cell.accuracy) else f", {missing} of {len(cell.accuracy)} seeds"
            when = cell.status.removeprefix("stalled at ")
            stalled.setdefault(cell.strategy, []).append(f"{where} ({when}{part})")
        if cell.requests_repeated:
            repeated.setdefault(cell.strategy, []).append(f"{where} ({cell.requests_repeated:,})")
    sentences = [f"{NOTHING}: {strategy} stalled in {', '.join(where)}." for strategy, where in stalled.items()]
    sentences += [f"Requests that {strategy} repeated: {', '.join(where)}." for strategy, where in repeated.items()]
    return sentences


def _paragraph(sentences: list[str]) -> list[str]:
    return [" ".join(sentences), ""] if sentences else []
