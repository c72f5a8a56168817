"""`dvfl train` on data sets by name: files that are missing or wrong, splits, and what the run folder says of them."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dvfl.cli import main
from dvfl.data.sets import sources
from dvfl.data.sets.catalogue import SOURCES
from dvfl.data.sets.checksums import File
from dvfl.data.sets.conversion import IDX_FILES

Refusal = Callable[..., str]

DATA = os.environ.get("DVFL_DATA")  # read before a fixture hides it
PREPARED = {name: source.prepared for name, source in SOURCES.items() if source.prepared is not None}
FEW = ("--quiet", "--guest-epochs", "1", "--host-epochs", "1", "--owner-epochs", "1")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Public addresses at which nobody listens."""
    monkeypatch.setenv("no_proxy", "*")
    nowhere = {}
    for name, source in SOURCES.items():
        if source.published is not None and source.published.address is not None:
            source = replace(source, published=replace(source.published, address="http://127.0.0.1:9/"))
        nowhere[name] = source
    monkeypatch.setattr(sources, "SOURCES", nowhere)


@pytest.mark.parametrize("name", SOURCES)
def test_missing_data_are_reported_with_the_places(name: str, refusal: Refusal, tmp_path: Path, offline: None) -> None:
    line = refusal("--dataset", name, "--data-dir", tmp_path)
    assert f"the data folder {tmp_path}, $DVFL_DATA (not set) or the cache {tmp_path / 'cache' / 'dvfl'}" in line
    assert "http" in line


@pytest.mark.parametrize("name", PREPARED)
def test_truncated_data_are_reported(name: str, refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / PREPARED[name].name).write_bytes(b"PK")
    line = refusal("--dataset", name, "--data-dir", tmp_path)
    assert f"{tmp_path / PREPARED[name].name} has 2 bytes, expected {PREPARED[name].size}: truncated" in line


@pytest.mark.parametrize("name", PREPARED)
def test_data_with_the_wrong_checksum_are_reported(name: str, refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / PREPARED[name].name).write_bytes(bytes(PREPARED[name].size or 0))
    line = refusal("--dataset", name, "--data-dir", tmp_path)
    assert f"{PREPARED[name].name} has sha256 " in line and f"expected {PREPARED[name].sha256}" in line


@pytest.fixture
def clothes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of four idx files with 100 and 20 images, which are taken for Fashion-MNIST."""
    folder, rng, files = tmp_path / "clothes", np.random.default_rng(0), []
    folder.mkdir()
    for name, file in IDX_FILES.items():
        rows = 100 if name.endswith("train") else 20
        shape = (rows, 28, 28) if name.startswith("x") else (rows,)
        values = rng.integers(0, 256 if name.startswith("x") else 10, shape, np.uint8)
        content = bytes((0, 0, 8, len(shape))) + np.array(shape, ">u4").tobytes() + values.tobytes()
        (folder / file).write_bytes(content)
        files.append(File(file, hashlib.sha256(content).hexdigest(), len(content)))
    source = SOURCES["fashion_mnist"]
    assert source.published is not None
    source = replace(source, published=replace(source.published, files=tuple(files)))
    monkeypatch.setattr(sources, "SOURCES", {**SOURCES, "fashion_mnist": source})
    return folder


def test_fashion_mnist_is_trained_on_from_an_idx_folder(clothes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--dataset", "fashion-mnist", "--data-dir", str(clothes), "--out", "r"]
    assert main(["train", *FEW, *given]) == 0
    config, result = (json.loads(Path("r", name).read_text()) for name in ("config.json", "result.json"))
    assert result["dataset"] == "fashion_mnist"
    assert (config["data"]["dataset"], config["data"]["split"]) == ("fashion_mnist", "official")
    assert "split           official\n" in capsys.readouterr().out
    assert "Ankle boot" in Path("r/report.html").read_text()


def test_a_truncated_idx_file_is_reported(clothes: Path, refusal: Refusal) -> None:
    path = clothes / "t10k-labels-idx1-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    assert f"{path} has 27 bytes, expected 28: truncated" in refusal(
        "--dataset", "fashion-mnist", "--data-dir", clothes
    )


@pytest.fixture
def voices() -> str:
    if DATA is None or not Path(DATA, "parkinsons.npz").is_file():
        pytest.skip(f"Parkinson's is not in $DVFL_DATA ({DATA})")
    return DATA


@pytest.mark.parametrize(
    ("options", "split", "told"),
    [
        ((), {"split": "subject", "split_seed": 0}, "by subject, split seed 0"),
        (("--split-seed", "7"), {"split": "subject", "split_seed": 7}, "by subject, split seed 7"),
        (("--split", "random"), {"split": "random", "split_seed": 0}, "random, split seed 0"),
    ],
)
def test_the_split_of_parkinsons_is_told_in_config_report_and_result(
    options: tuple[str, ...],
    split: dict[str, object],
    told: str,
    voices: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ["--dataset", "parkinsons", "--data-dir", voices, *options, "--out", "r"]
    assert main(["train", *FEW, *given]) == 0
    data = json.loads(Path("r/config.json").read_text())["data"]
    assert {name: data[name] for name in split} == split
    report = Path("r/report.html").read_text()
    assert f"Split of training and test rows: {told}." in report
    assert ("on both sides of the split" in report) == (split["split"] == "random")
    assert f"split           {told}\n" in capsys.readouterr().out


def test_another_split_seed_trains_on_other_rows() -> None:
    hashes = []
    for seed in ("0", "1"):
        assert main(["train", *FEW, "--split-seed", seed, "--out", seed]) == 0
        hashes.append(json.loads(Path(seed, "config.json").read_text())["data_sha256"])
    assert hashes[0] != hashes[1]


def test_splits_that_make_no_sense(refusal: Refusal, tables: dict[str, Path]) -> None:
    assert "digits cannot be split 'subject': random is right" in refusal("--split", "subject")
    assert "mnist cannot be split 'random': official is right" in refusal("--dataset", "mnist", "--split", "random")
    assert "mnist has one official split" in refusal("--dataset", "mnist", "--split-seed", "1")
    own = ("--table", tables["bank"], "--labels", tables["labels"], "--id", "id")
    assert "--split does not go with --table" in refusal(*own, "--split", "random")
    assert "--split-seed does not go with --table" in refusal(*own, "--split-seed", "1")


def test_a_run_resumes_with_the_split_it_was_begun_with(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *FEW, "--split-seed", "3", "--out", "r"]) == 0
    resume = ["train", "--quiet", "--resume", "--out", "r"]
    capsys.readouterr()
    assert main(resume) == 0
    assert "split           random, split seed 3\n" in capsys.readouterr().out
    assert main([*resume, "--split-seed", "4"]) == 2
    assert "split_seed is 4 here and 3 in" in capsys.readouterr().err
