"""Reads recorded outages from CSV, with every row checked."""

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path

from dvfl.errors import UserError, nearest
from dvfl.parties.faults.outages import Outage, Outages

COLUMNS = ("party", "down", "up")
LATEST = 10**12  # more rounds than any training has


def read_outages(path: str | Path) -> Outages:
    """The outages in a CSV file with the columns `party`, `down` and `up`; raises, in one line, for what is wrong."""
    reader = csv.reader(io.StringIO(_text(Path(path)), newline=""), strict=True)
    header: list[str] = []
    rows: list[Outage] = []
    try:
        for fields in reader:
            values = [field.strip() for field in fields]
            if not any(values):  # a blank line
                continue
            if not header:
                header = _header(values, path)
                continue
            if len(values) != len(header):
                raise UserError(f"{path}, line {reader.line_num}: {len(values)} fields; {len(header)} is right")
            rows.append(_row(dict(zip(header, values, strict=True)), f"{path}, line {reader.line_num}"))
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: not CSV ({error})") from error
    if not rows:
        raise UserError(f"{path} has a header but no rows" if header else f"{path} is empty")
    return Outages(str(path), tuple(rows))


def _text(path: Path) -> str:
    if not path.is_file():
        raise UserError(f"{path} is {'a folder' if path.is_dir() else 'not there'}; a CSV file is right")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text in UTF-8; a CSV file is right") from error
    if "\0" in text:
        raise UserError(f"{path} holds zero bytes, so it is not text; a CSV file is right")
    return text


def _header(names: list[str], path: str | Path) -> list[str]:
    for name in names:
        if name not in COLUMNS:  # a misspelt `up` must not make every outage last for good
            raise UserError(f"{path}: unknown column '{name}'{nearest(name, COLUMNS)}")
        if names.count(name) > 1:
            raise UserError(f"{path} has the column '{name}' twice")
    for name in COLUMNS:
        if name not in names:
            raise UserError(f"{path} has no column '{name}'; it has {', '.join(names)}")
    return names


def _row(values: Mapping[str, str], where: str) -> Outage:
    if not values["party"]:
        raise UserError(f"{where}: no party; a guest, a host or a link such as guest-1>host-2 is right")
    down = _round("down", values["down"], where)
    up = _round("up", values["up"], where) if values["up"] else None
    if up is not None and up <= down:
        raise UserError(f"{where}: up {up} is not after down {down}")
    return Outage(values["party"], down, up)


def _round(column: str, text: str, where: str) -> int:
    if not re.fullmatch(r"[0-9]{1,13}", text) or int(text) > LATEST:
        raise UserError(f"{where}: {column} '{text}' is not a round; a whole number from 0 to {LATEST} is right")
    return int(text)
