"""How far alignment is, and what it came to."""

import sys
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from dvfl.align.tasks import Progress
from dvfl.federation.local.entrypoints import run_align
from dvfl.federation.owner.owner_alignment import Aligned


def run_and_show(folder: Path) -> None:
    """Aligns, with a bar where there is a terminal, and prints the counts."""
    if not sys.stdout.isatty():
        show(run_align(folder, lambda progress: None))
        return
    with Live(transient=True, refresh_per_second=4) as live:

        def shown(progress: Progress) -> None:
            line = Table.grid(padding=(0, 1))
            text = f"{progress.done:,} of {progress.total:,}" if progress.total else "waiting for guests"
            line.add_row("aligning", ProgressBar(max(1, progress.total), progress.done, width=40), text)
            live.update(line)

        aligned = run_align(folder, shown)
    show(aligned)


def show(aligned: Aligned) -> None:
    """One line for each count."""
    rows = {
        "way": aligned.way,
        **{f"rows of {guest}": f"{count:,}" for guest, count in aligned.guests.items()},
        "slots": f"{aligned.training:,} for training, {aligned.encode_only:,} only ever encoded",
        "reserve": f"{aligned.reserve:,} for rows that come later",
        "labels": f"{aligned.labels:,}, of which {aligned.whole:,} are known to all guests",
    }
    if aligned.unmatched:
        rows["left out"] = f"{aligned.unmatched:,} labels that no guest has a row for"
    if aligned.without:
        rows["without"] = f"{', '.join(aligned.without)}: no answer; in the next run"
    rows["seconds"] = f"{aligned.seconds:.1f}"
    table = Table.grid(padding=(0, 2))
    for name, value in rows.items():
        table.add_row(name, value)
    Console().print(table)
