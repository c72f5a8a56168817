"""How `dvfl` starts, and how it ends when something is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

import dvfl.orders.running
from dvfl import __version__
from dvfl.cli import main
from dvfl.errors import RunFailed

SRC = Path(__file__).resolve().parents[2] / "src"


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"dvfl {__version__}\n"


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"]])
def test_every_help_ends_with_an_example(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out.rstrip().rsplit("\n\n", 1)[-1].strip().startswith("Example: dvfl ")


def test_the_command_line_does_not_wait_for_pytorch() -> None:
    code = f"import sys; sys.path.insert(0, {str(SRC)!r}); import dvfl.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["trian"],
        ["train", "--sedes", "3"],
        ["train", "--seeds", "none"],
        ["train", "--seeds", "0"],
        ["train", "--device", "tpu"],
    ],
)
def test_a_wrong_usage_is_one_line_and_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dvfl: ") and any(argument in line for argument in arguments[-2:])


def _raises(error: Exception) -> object:
    def run(*arguments: object, **options: object) -> None:
        raise error

    return run


def test_a_failed_run_is_status_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(dvfl.orders.running, "run", _raises(RunFailed("the loss is not finite")))
    assert main(["train"]) == 1
    assert capsys.readouterr().err == "dvfl: the loss is not finite\n"


def test_the_unexpected_is_one_line_that_names_debug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dvfl.orders.running, "run", _raises(ZeroDivisionError("by zero\nindeed")))
    assert main(["train"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dvfl: ZeroDivisionError: by zero indeed") and "--debug" in line


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(dvfl.orders.running, "run", _raises(ZeroDivisionError("by zero")))
    assert main(["train", "--debug"]) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err
