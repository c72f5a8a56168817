"""Docs name files and modules that exist, and link to pages that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
SOURCE = ROOT / "src" / "dvfl"
ROOMS = {folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").is_file()}
FILES = {file.name for folder in ("src", "tests", "benchmarks", "examples") for file in (ROOT / folder).rglob("*.py")}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_files_that_a_page_names_exist(page: Path) -> None:
    for name in re.findall(r"`([a-z_0-9./*-]+\.py)`", page.read_text()):
        if "/" in name:
            assert (ROOT / name).is_file() or (SOURCE / name).is_file(), name
        else:
            assert name in FILES or "*" in name, name


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"])  # which tells history
def test_modules_and_names_that_a_page_names_exist(page: Path) -> None:
    for name in re.findall(r"`(?:dvfl\.)?([a-z_]+(?:\.[A-Za-z_0-9]+)+)", page.read_text()):
        parts = name.split(".")
        if parts[0] not in ROOMS or parts[-1] in ("py", "md", "json", "toml", "csv", "parquet", "html"):
            continue
        place, rest = SOURCE, list(parts)
        while rest and ((place / rest[0]).is_dir() or (place / f"{rest[0]}.py").is_file()):
            place = place / rest.pop(0)
        module = place.with_suffix(".py")
        assert place.is_dir() or module.is_file(), name
        if rest and module.is_file():
            assert re.search(rf"\b{rest[0]}\b", module.read_text()), f"{name}: {rest[0]} is not in {module.name}"
        elif rest:
            door = (place / "__init__.py").read_text()
            assert re.search(rf"\b{rest[0]}\b", door), f"{name}: {rest[0]} is not in the room {place.name}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), target
