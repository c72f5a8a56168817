"""The benchmarks measure what they say; their figures are not judged here."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from dvfl.cli.app import app
from dvfl.errors import RunFailed
from dvfl.lab import bench_scaling, bench_training

ROLES = ("guests", "hosts", "owner", "overall")


def test_training_is_timed_beside_plain_loops_with_the_same_losses() -> None:
    options = ["--device", "cpu", "--rounds", "10", "--repeats", "1", "--json"]
    outcome = CliRunner().invoke(app, ["bench", "training", *options])
    assert outcome.exit_code == 0, outcome.output
    result = json.loads(outcome.stdout)
    for role in ROLES:
        row = result[role]
        assert row["ratio"] == pytest.approx(row["plain_seconds"] / row["ours_seconds"])
        assert row["matmul_floor_seconds"] > 0
    total = sum(result[role]["ours_seconds"] for role in ROLES[:3])
    assert result["overall"]["ours_seconds"] == pytest.approx(total)


def test_a_plain_loop_with_another_loss_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(self: object, epoch: int) -> torch.Tensor:
        return torch.tensor(0.5)

    monkeypatch.setattr(bench_training._PlainLoops, "guest_epoch", half)
    with pytest.raises(RunFailed, match="guests: our loss"):
        bench_training.bench_training("cpu", rounds=10, repeats=1)


def test_scaling_gives_a_slope_for_each_dimension_and_a_plot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    few = {"guests": (2, 4), "hosts": (1, 2), "rows": (128, 256), "replicas": (1, 2)}
    monkeypatch.setattr(bench_scaling, "_VALUES", few)
    monkeypatch.setattr(bench_scaling, "_ROWS", 128)
    plot = tmp_path / "scaling.svg"
    outcome = CliRunner().invoke(app, ["bench", "scaling", "--device", "cpu", "--plot", str(plot), "--json"])
    assert outcome.exit_code == 0, outcome.output
    result = json.loads(outcome.stdout)
    for name, values in few.items():
        assert result[name]["values"] == list(values)
        assert all(seconds > 0 for seconds in result[name]["seconds"])
        assert isinstance(result[name]["slope"], float)
    assert plot.read_text().lstrip().startswith("<?xml")
