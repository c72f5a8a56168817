"""Trained parties on disk and back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sklearn.decomposition import NMF, PCA, FactorAnalysis, TruncatedSVD
from torch import nn

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.settings.training import Settings, SplitSettings
from dvfl.simulation.storage import MANIFEST, load, save
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.split.split_training import EndToEnd
from dvfl.strategies.split.splitnn import SplitNN

SEEDS = (3, 4)
QUICK = Settings(hosts=2, batch=64, guest_epochs=1, host_epochs=1, owner_epochs=1, standardise=True, guest_dropout=0.2)


def trained(data: VerticalData, settings: Settings = QUICK, **options: Any) -> Dvfl:
    simulation = Dvfl(data, settings, SEEDS, **options)
    simulation.run()
    return simulation


def check_round_trip(simulation: Dvfl, folder: Path, encoders: list[Any] | None = None) -> None:
    save(simulation.stack, folder, {"note": "mine"})
    stack, extra = load(folder, encoders=encoders)
    tables = [guest.test for guest in simulation.data.guests]
    torch.testing.assert_close(stack.predict(stack.encode(tables)), simulation.outputs(), rtol=1e-4, atol=1e-4)
    assert extra == {"note": "mine"}
    assert stack.seeds == SEEDS
    assert stack.settings == simulation.settings


@pytest.mark.parametrize(
    "change", [{}, {"hosts": 0}, {"host_model": "concatenate"}, {"standardise": False}, {"w_g": 20, "w_h": 9}], ids=str
)
def test_what_was_saved_predicts_as_before(
    unequal_digits: VerticalData, tmp_path: Path, change: dict[str, Any]
) -> None:
    check_round_trip(trained(unequal_digits, replace(QUICK, **change)), tmp_path / "models")


SIMCLR: dict[str, Any] = {"guest_objective": "simclr", "host_objective": "simclr", "temperature": 0.2}


def test_parties_that_learned_by_simclr_predict_as_before(unequal_digits: VerticalData, tmp_path: Path) -> None:
    encoders = [None, nn.Sequential(nn.Linear(8, 7), nn.Tanh()), None, None]
    check_round_trip(trained(unequal_digits, replace(QUICK, **SIMCLR), encoders=encoders), tmp_path, encoders)
    tensors = load_file(tmp_path / "guest-1.safetensors")
    assert "encoder.0.weight" in tensors and "projector.0.norm.weight" in tensors


def test_parties_that_learned_against_a_decoder_predict_as_before(unequal_digits: VerticalData, tmp_path: Path) -> None:
    check_round_trip(trained(unequal_digits, replace(QUICK, **SIMCLR, adversary=0.3)), tmp_path)
    assert "adversary.0.weight" in load_file(tmp_path / "guest-1.safetensors")


def test_a_regressions_unit_is_saved_too(digits: VerticalData, tmp_path: Path) -> None:
    numbers = {part: 1e3 + 7 * getattr(digits, part).astype(np.float32) for part in ("y_train", "y_test")}
    check_round_trip(trained(replace(digits, classes=None, **numbers)), tmp_path)


@pytest.mark.parametrize("model", [PCA(5, random_state=0), TruncatedSVD(5, random_state=0)], ids=str)
def test_a_guest_that_is_a_linear_model_is_saved_without_pickle(
    digits: VerticalData, tmp_path: Path, model: Any
) -> None:
    check_round_trip(trained(digits, encoders=[None, model, None, None]), tmp_path)


@pytest.mark.parametrize(
    "model", [PCA(5, whiten=True), FactorAnalysis(5), NMF(5, init="nndsvd", max_iter=500)], ids=lambda model: str(model)
)
def test_a_model_that_is_more_than_a_projection_is_refused_rather_than_saved_wrongly(
    digits: VerticalData, tmp_path: Path, model: Any
) -> None:
    simulation = trained(digits, encoders=[None, model, None, None])
    with pytest.raises(UserError, match="guest 2"):
        save(simulation.stack, tmp_path / "models")
    assert not (tmp_path / "models").exists()


def test_a_module_of_the_users_is_given_again_when_loading(digits: VerticalData, tmp_path: Path) -> None:
    encoders = [None, nn.Sequential(nn.Linear(16, 7), nn.Tanh()), None, None]
    check_round_trip(trained(digits, encoders=encoders), tmp_path, encoders)


def test_without_the_users_module_loading_says_what_is_missing(digits: VerticalData, tmp_path: Path) -> None:
    save(trained(digits, encoders=[None, nn.Linear(16, 7), None, None]).stack, tmp_path)
    with pytest.raises(UserError, match="guest-2"):
        load(tmp_path)


def test_each_party_has_a_file_with_names_that_pytorch_knows(digits: VerticalData, tmp_path: Path) -> None:
    simulation = trained(digits)
    save(simulation.stack, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    parties = [*(f"guest-{i}" for i in (1, 2, 3, 4)), "host-1", "host-2", "owner"]
    assert names == {MANIFEST, *(f"{party}.safetensors" for party in parties)}
    stored = load_file(tmp_path / "guest-3.safetensors")
    first, second = nn.Linear(16, 13), nn.Linear(13, 12)
    first.load_state_dict({name: stored[f"encoder.0.{name}"][1] for name in ("weight", "bias")})
    second.load_state_dict({name: stored[f"encoder.1.{name}"][1] for name in ("weight", "bias")})
    x = torch.from_numpy(digits.guests[2].test)
    code = nn.functional.leaky_relu(second(nn.functional.leaky_relu(first(x))))
    joint = simulation.stack.encode_guests([torch.from_numpy(guest.test) for guest in digits.guests])
    torch.testing.assert_close(code.detach(), joint[1, :, 24:36], rtol=1e-4, atol=1e-5)


@pytest.fixture
def folder(digits: VerticalData, tmp_path: Path) -> Path:
    save(trained(digits).stack, tmp_path)
    return tmp_path


def test_a_changed_file_is_refused(folder: Path) -> None:
    path = folder / "host-1.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"host-1.safetensors: its SHA-256 is not the one"):
        load(folder)


def test_a_file_cut_short_is_refused(folder: Path) -> None:
    path = folder / "owner.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(UserError, match=r"owner.safetensors"):
        load(folder)


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "guest-1.safetensors").unlink()
    with pytest.raises(UserError, match=r"guest-1.safetensors: named in manifest.json and not there"):
        load(folder)


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no manifest\.json"):
        load(tmp_path)


def test_the_folder_of_a_split_network_is_refused(digits: VerticalData, tmp_path: Path) -> None:
    EndToEnd(digits, SplitSettings(), SEEDS, algorithm=SplitNN("zeros")).save(tmp_path, {})
    with pytest.raises(UserError, match=r"manifest\.json"):
        load(tmp_path)


def test_a_split_network_has_a_file_for_each_party_with_names_that_pytorch_knows(
    digits: VerticalData, tmp_path: Path
) -> None:
    simulation = EndToEnd(digits, SplitSettings(epochs=1), SEEDS, algorithm=SplitNN("zeros"))
    simulation.run()
    simulation.save(tmp_path, {"note": "mine"})
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        MANIFEST,
        *(f"{party}.safetensors" for party in ("guest-1", "guest-2", "guest-3", "guest-4", "host-1")),
    }
    parties = {
        name: load_file(tmp_path / f"{name}.safetensors")
        for name in ("guest-1", "guest-2", "guest-3", "guest-4", "host-1")
    }
    codes = []
    for number, guest in enumerate(digits.guests):
        code = torch.from_numpy(guest.test)
        for layer in range(2):
            weight, bias = (parties[f"guest-{number + 1}"][f"encoder.{layer}.{part}"][1] for part in ("weight", "bias"))
            code = nn.functional.leaky_relu(nn.functional.linear(code, weight, bias))
        codes.append(code)
    x = torch.cat(codes, 1)
    for layer, activate in enumerate(
        (torch.relu, torch.relu, nn.functional.leaky_relu, nn.functional.leaky_relu, None)
    ):
        weight, bias = (parties["host-1"][f"head.{layer}.{part}"][1] for part in ("weight", "bias"))
        x = nn.functional.linear(x, weight, bias)
        x = x if activate is None else activate(x)
    torch.testing.assert_close(x, simulation.outputs()[1], rtol=1e-4, atol=1e-5)


def rewritten(folder: Path, **changes: Any) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | changes))


def test_another_format_is_refused(folder: Path) -> None:
    rewritten(folder, format=99)
    with pytest.raises(UserError, match="format 99"):
        load(folder)


def test_a_manifest_that_names_files_elsewhere_is_refused(folder: Path) -> None:
    rewritten(folder, files={"../owner.safetensors": "0" * 64})
    with pytest.raises(UserError, match="not there"):
        load(folder)


def test_a_manifest_that_is_no_json_is_refused(folder: Path) -> None:
    (folder / MANIFEST).write_text('{"format": 1, ')
    with pytest.raises(UserError, match=MANIFEST):
        load(folder)
