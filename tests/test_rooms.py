"""The rooms of the package: their front doors, their size, and that the docs know them."""

import importlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "dvfl"
ROOMS = sorted(door.parent for door in PACKAGE.rglob("__init__.py") if door.parent != PACKAGE)
NAMES = [".".join(("dvfl", *room.relative_to(PACKAGE).parts)) for room in ROOMS]
MOST = 14  # modules of a room, its front door among them


@pytest.mark.parametrize("room", ROOMS, ids=NAMES)
def test_a_room_is_small_enough_to_look_around_in(room: Path) -> None:
    assert len(list(room.glob("*.py"))) <= MOST


@pytest.mark.parametrize("name", NAMES)
def test_a_front_door_says_what_lives_there_and_where_to_start(name: str) -> None:
    door = importlib.import_module(name)
    text = door.__doc__ or ""
    assert "Start reading at" in text and len(text.splitlines()) > 1
    assert door.__all__


@pytest.mark.parametrize("name", NAMES)
def test_what_a_front_door_names_is_there(name: str) -> None:
    door = importlib.import_module(name)
    folder = PACKAGE.joinpath(*name.split(".")[1:])
    for thing in door.__all__:
        there = (folder / f"{thing}.py").is_file() or (folder / thing / "__init__.py").is_file()
        assert there or hasattr(door, thing)


def test_the_architecture_names_every_room() -> None:
    text = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text()
    table = text[text.index("## Rooms") : text.index("`parties` is pure")]
    for name in NAMES:
        assert f"`{name.split('.')[-1]}`" in table or f"`{name.removeprefix('dvfl.')}`" in table, name
