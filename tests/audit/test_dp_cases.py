"""Federations with encoders that were trained by DP-SGD, and the file that keeps those."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from dvfl.audit.dp_cases import dp_recorded
from dvfl.audit.recordings.cases import Case
from dvfl.data import load
from dvfl.data.split.vertical import fewer_rows
from dvfl.errors import UserError
from dvfl.parties.networks.sizes import encoder
from dvfl.settings.training import Settings

DATA = fewer_rows(load("digits"), 200)
SHORT = Settings(hosts=0, owner_epochs=2, validation=0.0)
CASE = Case("dvfl", DATA, SHORT, (3, 8), torch.device("cpu"))


def kept(folder: Path) -> Path:
    """Encoders of both seeds as an audit would have kept them, with numbers that nobody learned."""
    nets = {str(n): encoder(one.columns, 12, 6, ("leaky_relu", "leaky_relu")) for n, one in enumerate(DATA.guests)}
    nets["poisoned"] = nets["0"]
    draw = np.random.default_rng(0)
    tensors = {f"{seed}.{n}": draw.normal(size=net.size).astype("f4") for seed in (0, 1) for n, net in nets.items()}
    path = folder / "dp-sgd.encoders.safetensors"
    save_file(tensors, path, {"layers": json.dumps({n: (net.widths, net.activations) for n, net in nets.items()})})
    return path


def test_encoders_that_were_kept_need_no_opacus_and_are_not_trained_again(tmp_path: Path) -> None:
    path = kept(tmp_path)
    before = path.read_bytes()
    found = dp_recorded(CASE, 8.0, path)
    seen = found.recording
    assert len(found.scores) == 2 and seen.seeds == (3, 8)
    assert [guest.z.shape[2] for guest in seen.guests] == [6] * len(DATA.guests)
    assert not torch.equal(seen.guests[0].z[0], seen.guests[0].z[1])  # each seed has encoders of its own
    assert path.read_bytes() == before
    again = dp_recorded(CASE, 8.0, path).recording
    torch.testing.assert_close(seen.guests[1].z, again.guests[1].z)


@pytest.mark.parametrize("content", [b"", b"not a file of tensors"])
def test_a_file_that_was_cut_short_is_named(tmp_path: Path, content: bytes) -> None:
    path = kept(tmp_path)
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"dp-sgd\.encoders\.safetensors: cannot be read"):
        dp_recorded(CASE, 8.0, path)


def test_fewer_encoders_than_seeds_are_no_file_of_this_case(tmp_path: Path) -> None:
    path = kept(tmp_path)
    tensors = {name: value for name, value in load_file(path).items() if name.startswith("0.")}
    layers = {name.removeprefix("0."): ((16, 12, 6), ("leaky_relu", "leaky_relu")) for name in tensors}
    save_file(tensors, path, {"layers": json.dumps(layers)})
    with pytest.raises(UserError, match="cannot be read"):
        dp_recorded(CASE, 8.0, path)


def test_a_backdoor_is_tried_with_encoders_of_poisoned_rows(tmp_path: Path) -> None:
    turned, alone = dp_recorded(CASE, 8.0, kept(tmp_path)).backdoor
    assert (turned.attack, turned.known, len(turned.values)) == ("backdoor", 2, 2)
    assert (alone.control, alone.known) == ("nothing seen", 0)
    assert turned.values != alone.values  # another encoder, and rows that it was poisoned with


def test_what_is_trained_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("opacus", reason="the extra dvfl[privacy] is not installed")
    path = tmp_path / "dp-sgd.encoders.safetensors"
    first = dp_recorded(CASE, 8.0, path).recording
    names = sorted(f"{seed}.{name}" for seed in (0, 1) for name in (0, 1, 2, 3, "poisoned"))
    kept = load_file(path)
    assert sorted(kept) == names
    assert not np.array_equal(kept["0.0"], kept["0.poisoned"])
    torch.testing.assert_close(dp_recorded(CASE, 8.0, path).recording.guests[0].z, first.guests[0].z)
