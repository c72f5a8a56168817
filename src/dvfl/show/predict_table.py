"""What `dvfl predict` reads, writes and says."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import typer

from dvfl.federation.party.configuration import read
from dvfl.federation.party.settings import PARTY, OwnerFile, check_owner
from dvfl.federation.prediction.predicting import predict_all
from dvfl.federation.prediction.prediction_tables import check_out, framed, read_list, write_frame
from dvfl.federation.protocol.predictions import Prediction

_SHOWN = 3  # lines of unknown ids


def run_and_show(folder: Path, ids: Path, out: Path, deadline_s: float, pad: int) -> None:
    """Predicts, writes the table, and says what the predictions rest on."""
    check_out(out, ids)
    check_owner(folder)
    asked = read_list(ids, read(OwnerFile, folder / PARTY).data.id)
    found, predictor = asyncio.run(predict_all(folder, asked.ids, deadline_s=deadline_s, pad=pad))
    write_frame(framed(found, predictor.guests, predictor.classes), out)
    for line in summary(found, asked.lines):
        typer.echo(line)
    typer.echo(f"written    {out}")


def summary(found: Sequence[Prediction], lines: Sequence[int]) -> list[str]:
    """How many, how many of them degraded, and who was missing; no id is shown."""
    known = [one for one in found if one.known]
    answered = sum(one.answered for one in known)
    said = [f"predicted  {answered:,} of {len(found):,}, {sum(one.degraded for one in known):,} degraded"]
    unknown = [line for one, line in zip(found, lines, strict=True) if not one.known]
    if unknown:
        first = ", ".join(map(str, unknown[:_SHOWN])) + (" .." if len(unknown) > _SHOWN else "")
        said.append(f"unknown    {len(unknown):,} ids have no slot (lines {first}); dvfl align gives slots to new rows")
    missing: dict[str, dict[str, list[float]]] = {}
    for one in known:
        for name, part in one.guests.items():
            if part.state != "fresh":
                way = "left out, looked corrupt," if part.suspected else part.state
                missing.setdefault(name, {}).setdefault(way, []).append(part.age_s or 0.0)
        for host, there in one.hosts.items():
            if not there:
                missing.setdefault(host, {}).setdefault("no answer", []).append(0.0)
    for name, ways in missing.items():
        told = [
            f"{way} in {len(ages):,} rows" + (f", up to {max(ages):,.0f} s old" if way == "cached" else "")
            for way, ages in ways.items()
        ]
        said.append(f"{name:<10} {'; '.join(told)}")
    return said
