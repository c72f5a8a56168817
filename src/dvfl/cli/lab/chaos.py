"""`dvfl chaos`: a practice federation under seeded outages of its processes, brokers and links, and the report."""

from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLE = (
    "Example: dvfl federation init practice; dvfl chaos practice --seed 0 --minutes 2"
    " --kinds guest,host,broker,owner,connection --down 0.02 --up 0.2 --out chaos.json"
)


def chaos(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A fresh folder that dvfl federation init made.")],
    seed: Annotated[int, typer.Option(min=0, help="Of the outages.")] = 0,
    minutes: Annotated[float, typer.Option(help="Of outages; they begin when all parties are at work.")] = 2.0,
    kinds: Annotated[
        str, typer.Option(metavar="KINDS", help="What fails: some of guest, host, broker, owner, connection.")
    ] = "guest,host,broker,owner,connection",
    down: Annotated[float, typer.Option(metavar="R_d", help="Chance a second that a live one fails.")] = 0.02,
    up: Annotated[float, typer.Option(metavar="R_u", help="Chance a second that a failed one returns.")] = 0.2,
    dead: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A guest or host that dies for good; repeats.")
    ] = None,
    wait: Annotated[float, typer.Option(help="Minutes to wait for the result after the last outage.")] = 60.0,
    again: Annotated[bool, typer.Option("--again", help="Remove what an earlier run left in the folder.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JSON.")] = None,
    quiet_result: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The result.json of a run without outages, to compare with.")
    ] = None,
    simulator_result: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The result.json of dvfl train with the same settings.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Kill, stop and cut off the parties of a practice federation while it trains, and see what it makes of it."""
    from dvfl.errors import RunFailed, UserError
    from dvfl.files import write_json
    from dvfl.orders.extras import needed
    from dvfl.show.chaos_table import print_report

    needed("federation", "nats", "cryptography", "nacl")
    from dvfl.lab.chaos.chaos_report import compared, read_score
    from dvfl.lab.chaos.chaos_schedule import Wish, parse_kinds

    if out is not None and not out.absolute().parent.is_dir():
        raise UserError(f"--out {out}: no such folder {out.absolute().parent}; an existing one is right")
    others = {"quiet": quiet_result, "simulator": simulator_result}
    scores = {name: read_score(path) for name, path in others.items() if path is not None}
    wish = Wish(seed, minutes, parse_kinds(kinds), down, up, tuple(dict.fromkeys(dead or ())), wait)
    report = compared(_run(folder, wish, again), scores)
    if out is not None:
        write_json(out, report)
    print_report(report)
    if report["failures"]:
        raise RunFailed(f"chaos: {'; '.join(report['failures'])}")


def _run(folder: Path, wish: Any, again: bool) -> dict[str, Any]:
    """A signal ends the run, and all that it started."""
    import asyncio
    import signal

    from dvfl.lab.chaos.chaos import run_chaos
    from dvfl.runs.interrupts import Interrupted

    taken: list[int] = []

    async def run() -> dict[str, Any]:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None

        def leave(signum: int) -> None:
            if not taken:
                task.cancel()
            taken.append(signum)

        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, leave, signum)
        return await run_chaos(folder, wish, again=again, say=typer.echo)

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        raise Interrupted("stopped; all parties have left, and their files are as they were", taken[0]) from None
