"""TOML files as typed values, and what is said where they are wrong."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from dvfl.errors import UserError
from dvfl.federation.party.configuration import read, written


@dataclass(frozen=True)
class Inner:
    rate: float
    kind: Literal["adam", "sgd"] = "adam"


@dataclass(frozen=True)
class Outer:
    name: str
    epochs: int
    inner: Inner
    quiet: bool = False
    widths: tuple[int, ...] | None = None
    addresses: dict[str, str] = field(default_factory=dict)
    parties: dict[str, Inner] = field(default_factory=dict)


FULL = Outer('x "y" \\ z', 3, Inner(1e-05, "sgd"), True, (1, 2), {"host-1": "a:1"}, {"guest-1": Inner(2.0)})


def file(folder: Path, text: str) -> Path:
    path = folder / "a.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("value", [FULL, Outer("plain", 0, Inner(0.5))], ids=["full", "plain"])
def test_what_is_written_is_read_back(tmp_path: Path, value: Outer) -> None:
    text = written(value, {"name": "What it is called.", "inner": "Inside."})
    assert read(Outer, file(tmp_path, text)) == value
    assert "# What it is called.\nname = " in text
    assert "# Inside.\n[inner]" in text


RIGHT = 'name = "a"\nepochs = 3\n'
INNER = "[inner]\nrate = 0.1\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (RIGHT + "epoch = 3\n" + INNER, r"unknown field 'epoch'; did you mean 'epochs'\?"),
        ('name = "a"\n' + INNER, "the field 'epochs' is not there"),
        ('name = "a"\nepochs = "3"\n' + INNER, "epochs is '3'; a whole number is right"),
        ('name = "a"\nepochs = true\n' + INNER, "epochs is True; a whole number is right"),
        ('name = "a"\nepochs = 1.5\n' + INNER, "epochs is 1.5; a whole number is right"),
        (RIGHT + "inner = 3\n", "inner is 3; a table of fields is right"),
        (RIGHT + '[inner]\nrate = "fast"\n', "inner: rate is 'fast'; a number is right"),
        (RIGHT + '[inner]\nrate = 1\nkind = "adm"\n', "inner: kind is 'adm'; 'adam' or 'sgd' is right"),
        (RIGHT + "widths = 3\n" + INNER, "widths is 3; a list is right"),
        (RIGHT + "quiet = 1\n" + INNER, "quiet is 1; true or false is right"),
        (RIGHT + INNER + "[addresses]\nhost-1 = 5\n", "addresses.host-1 is 5; text is right"),
        (
            RIGHT + INNER + "[parties.guest-1]\nrat = 5\n",
            r"parties.guest-1: unknown field 'rat'; did you mean 'rate'\?",
        ),
        ("name = ", "is no TOML"),
    ],
)
def test_a_wrong_field_is_named_with_what_is_right(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        read(Outer, file(tmp_path, text))


def test_a_whole_number_will_do_for_a_number(tmp_path: Path) -> None:
    assert read(Outer, file(tmp_path, RIGHT + "[inner]\nrate = 1\n")).inner.rate == 1.0


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"b.toml cannot be read \(No such file or directory\)"):
        read(Outer, tmp_path / "b.toml")
