"""What a release consists of beside its modules: the licence, the citation, the files that are not Python."""

import re
import tomllib
from pathlib import Path

from dvfl import __version__

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCE = REPOSITORY / "src"


def test_the_licence_is_the_apache_licence_2() -> None:
    lines = (line.strip() for line in (REPOSITORY / "LICENSE").read_text().splitlines())
    assert [line for line in lines if line][:3] == [
        "Apache License",
        "Version 2.0, January 2004",
        "http://www.apache.org/licenses/",
    ]


def test_type_checkers_of_users_are_told_that_the_package_has_types() -> None:
    assert (SOURCE / "dvfl" / "py.typed").is_file()


def test_the_citation_names_the_version_of_the_package() -> None:
    citation = (REPOSITORY / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [__version__]


def test_every_file_that_is_not_python_is_packaged() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    packaged = {
        path
        for package, patterns in project["tool"]["setuptools"]["package-data"].items()
        for pattern in patterns
        for path in SOURCE.joinpath(*package.split(".")).glob(pattern)
    }
    found = {
        path
        for path in (SOURCE / "dvfl").rglob("*")
        if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts
    }
    assert sorted(str(path.relative_to(SOURCE)) for path in found - packaged) == []
