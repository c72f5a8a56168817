"""What other packages add: the example package, one that cannot be imported, one that brings the wrong thing."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugin"


def installed(site: Path, name: str, groups: dict[str, dict[str, str]]) -> None:
    """A package's metadata as an installer leaves them in a folder of packages."""
    info = site / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in points.items())
        for group, points in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package, one whose module fails, and one whose object is none."""
    site = tmp_path_factory.mktemp("site")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    installed(site, project["name"], project["entry-points"])
    (site / "dvfl_example").symlink_to(EXAMPLE / "src" / "dvfl_example")
    (site / "broken_plugin.py").write_text("import a_package_that_is_not_there\n")
    (site / "wrong_plugin.py").write_text("THING = 3\n")
    groups = ("dvfl.strategies", "dvfl.datasets", "dvfl.attacks", "dvfl.defences")
    installed(site, "broken", {group: {"broken": "broken_plugin:THING"} for group in groups})
    installed(site, "wrong", {"dvfl.strategies": {"wrong": "wrong_plugin:THING"}})
    return site


def dvfl(site: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command where these packages are installed."""
    path = f"import sys; sys.path.append({str(site)!r}); from dvfl.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", path, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def test_a_strategy_and_a_data_set_of_another_package_train(site: Path, tmp_path: Path) -> None:
    words = ["--dataset", "iris", "--strategy", "splitnn-fading", "--faults", "guest:0.3:0.5", "--seeds", "2"]
    made = dvfl(site, tmp_path, "train", "--quiet", *words, "--out", "r")
    assert made.returncode == 0, made.stderr
    result = json.loads((tmp_path / "r/result.json").read_text())
    assert (result["dataset"], result["strategy"]) == ("iris", "splitnn-fading") and min(result["accuracy"]) > 50


def test_an_attack_and_a_defence_of_another_package_are_audited(site: Path, tmp_path: Path) -> None:
    few = ["--guest-epochs", "1", "--host-epochs", "1", "--owner-epochs", "2", "--hosts", "1"]
    made = dvfl(site, tmp_path, "train", "--quiet", "--record", "--dataset", "digits", *few, "--out", "r")
    assert made.returncode == 0, made.stderr
    made = dvfl(site, tmp_path, "audit", "r", "--small", "--defence", "half-clip", "--out", "a")
    assert made.returncode == 0, made.stderr
    audit = json.loads((tmp_path / "a/audit.json").read_text())
    found = {(one["strategy"], one["defence"]) for one in audit["findings"]}
    assert ("dvfl", "half-clip") in found
    figures = [figure["attack"] for one in audit["findings"] for figure in one["figures"]]
    assert "own_norm" in figures
    assert "attack 'broken': the package broken cannot be imported (ModuleNotFoundError" in made.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--strategy broken",
            "strategy 'broken': the package broken cannot be imported (ModuleNotFoundError: ",
        ),
        ("--strategy wrong", "strategy 'wrong': the package wrong brings a int; it must be a Strategy"),
        ("--dataset broken", "data set 'broken': the package broken cannot be imported"),
        ("--strategy splitnn-fadin", "no strategy is called 'splitnn-fadin'; did you mean 'splitnn-fading'"),
        ("--dataset iriss", "no data set is called 'iriss'; did you mean 'iris'"),
    ],
)
def test_what_cannot_be_had_is_one_line(site: Path, tmp_path: Path, words: str, message: str) -> None:
    made = dvfl(site, tmp_path, "train", "--quiet", *words.split(), "--out", "r")
    assert made.returncode == 2 and made.stderr.startswith(f"dvfl: {message}") and made.stderr.count("\n") == 1
    assert not (tmp_path / "r").exists()


def test_a_package_that_cannot_be_imported_leaves_everything_else_working(site: Path, tmp_path: Path) -> None:
    made = dvfl(site, tmp_path, "train", "--quiet", "--guest-epochs", "1", "--out", "r")
    assert made.returncode == 0 and made.stderr == ""
