"""What docs/threat-model.md says of the wire is what the code says."""

import re
from pathlib import Path
from typing import get_args

from dvfl.federation.protocol.messages import TO, Message
from dvfl.federation.protocol.wire_types import schema

PAGE = Path(__file__).parents[2] / "docs" / "threat-model.md"


def rows() -> dict[str, list[str]]:
    """The table of messages: to whom, arrays and other fields by kind."""
    table = PAGE.read_text().partition("## Every message")[2].partition("## ")[0]
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:3] == "| `"]
    return {name.strip("`"): rest for name, *rest in found}


def test_every_message_is_in_the_table_with_all_that_it_carries() -> None:
    told = rows()
    assert list(told) == [kind.__name__ for kind in get_args(Message)]
    for kind in get_args(Message):
        arrays = ", ".join(f"`{name}` {rule.dtype}" for name, rule in schema(kind).arrays.items()) or "none"
        assert told[kind.__name__][1:] == [TO.get(kind, "any"), arrays, ", ".join(schema(kind).plain)]


def test_the_table_shows_no_floating_point_array_to_a_guest() -> None:
    to_guests = [arrays for _, to, arrays, _ in rows().values() if to in ("guest", "any")]
    assert len(to_guests) == 5 and not any("float" in arrays for arrays in to_guests)


def test_the_page_never_calls_anything_private() -> None:
    assert not re.search(r"\bprivate\b", PAGE.read_text())
