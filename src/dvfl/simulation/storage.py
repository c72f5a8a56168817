"""Trained parties on disk: one safetensors file a party and a manifest that names them all with their SHA-256.

Tensors carry the replicas' axis first and otherwise PyTorch's names, so `replica = 0` of `encoder.0.weight` loads into
an `nn.Linear`. Nothing is pickled.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from dvfl.errors import UserError
from dvfl.files import replacing, sha256, write_json, writing
from dvfl.parties.guest import FittedGuest, FitTransform
from dvfl.parties.host import Host
from dvfl.parties.networks.modules import Net
from dvfl.parties.objectives.objective import Objective
from dvfl.settings.training import Settings
from dvfl.simulation.stack import Encoder, Shape, Stack
from dvfl.version import __version__

MANIFEST = "manifest.json"
FORMAT = 1


class LinearProjection:
    """A fitted linear model (PCA, truncated SVD) brought back from its file."""

    def __init__(self, components: NDArray[np.float32], mean: NDArray[np.float32]) -> None:
        self.components_, self.mean_ = components, mean

    def fit(self, x: NDArray[np.float32]) -> "LinearProjection":
        return self

    def transform(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        return ((x - self.mean_) @ self.components_.T).astype(np.float32)


def save(stack: Stack, folder: Path, extra: dict[str, Any] | None = None) -> None:
    """Writes all parties of DVFL into a folder, from which `load` makes them again."""
    manifest = {
        "shape": asdict(stack.shape),
        "settings": stack.settings.as_dict(),
        "seeds": list(stack.seeds),
        "target": [stack.target_centre, stack.target_spread],
        "fitted": [group.members[0] for group in stack.groups if isinstance(group.guest, FittedGuest)],
        "extra": extra or {},
    }
    write(stack_parties(stack), folder, manifest)


def write(parties: Sequence[tuple[str, dict[str, Tensor]]], folder: Path, manifest: dict[str, Any]) -> None:
    """One file a party; the manifest last, so a folder with a manifest is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, tensors in parties:
        path = folder / f"{name}.safetensors"
        with writing(path), replacing(path) as temporary:
            save_file({key: value.contiguous() for key, value in tensors.items()}, temporary)
        files[path.name] = sha256(path)
    write_json(folder / MANIFEST, {"format": FORMAT, "version": __version__, **manifest, "files": files})


def load(
    folder: Path, device: torch.device | str = "cpu", encoders: Sequence[Encoder | None] | None = None
) -> tuple[Stack, dict[str, Any]]:
    """Reads what `save` wrote and checks it. Guests with a module of the user's own need it again in `encoders`."""
    manifest = _manifest(folder)
    shape = manifest["shape"]
    known = Shape(tuple(shape["columns"]), tuple(shape["unit"]), shape["rule"], shape["classes"])
    tensors = {name.removesuffix(".safetensors"): load_file(folder / name) for name in manifest["files"]}
    given: list[Encoder | None] = list(encoders) if encoders is not None else [None] * len(known.columns)
    for guest in manifest["fitted"]:
        stored = tensors[f"guest-{guest + 1}"]
        given[guest] = LinearProjection(stored["components"].numpy(), stored["mean"].numpy())
    settings = Settings.from_dict(manifest["settings"])
    stack = Stack(known, settings, manifest["seeds"], torch.device(device), given)
    stack.target_centre, stack.target_spread = manifest["target"]
    for name, views in stack_parties(stack):
        stored = tensors.get(name, {})
        for key, view in views.items():
            if key not in stored or stored[key].shape != view.shape:
                raise UserError(f"{folder / name}.safetensors: {key} of shape {tuple(view.shape)} is not there")
            view.copy_(stored[key])
    return stack, manifest["extra"]


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise UserError(f"{folder}: no {MANIFEST}; a folder that was saved by dvfl is right")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
    except ValueError as error:
        raise UserError(f"{path}: no JSON ({error}); the file was changed or cut short") from None
    if manifest.get("format") != FORMAT:
        raise UserError(f"{path}: format {manifest.get('format')}; this version reads {FORMAT}")
    if "shape" not in manifest:
        raise UserError(f"{path}: parties of another strategy; a folder that dvfl's own parties were saved in is right")
    for name, digest in manifest["files"].items():
        file = folder / name
        if Path(name).name != name or not file.is_file():
            raise UserError(f"{file}: named in {MANIFEST} and not there")
        if sha256(file) != digest:
            raise UserError(f"{file}: its SHA-256 is not the one in {MANIFEST}; the file was changed or cut short")
    return manifest


def stack_parties(stack: Stack) -> list[tuple[str, dict[str, Tensor]]]:
    """Each party's name and views of its tensors, (replicas, ..)."""
    parties = []
    for place, group in enumerate(stack.groups):
        for number, guest in enumerate(group.members):
            if isinstance(group.guest, FittedGuest):
                tensors = _linear(group.guest.model, guest)
            else:
                flat = group.guest.learner.parameters.unflatten(0, (stack.replicas, -1))[:, number]
                tensors = _coder(group.guest.objective, flat)
            if stack.flattenings:
                own = stack.flattenings[place]
                tensors |= {"flattening.centre": own.centre[:, number], "flattening.weights": own.weights[:, number]}
            parties.append((f"guest-{guest + 1}", tensors))
    if isinstance(stack.host, Host):
        cut = stack.host.absence.size
        for number in range(stack.settings.hosts):
            flat = stack.host.learner.parameters.unflatten(0, (stack.replicas, -1))[:, number]
            tensors = {"absent": flat[:, :cut], **_coder(stack.host.objective, flat[:, cut:])}
            parties.append((f"host-{number + 1}", tensors))
    flat, cut = stack.owner.learner.parameters, stack.owner.absence.size
    head = _prefixed("head", stack.owner.supervision.head, flat[:, cut:])
    owner = {"absent": flat[:, :cut], "centre": stack.centre, "spread": stack.spread, **head}
    return [*parties, ("owner", owner)]


def _coder(objective: Objective, flat: Tensor) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    start = 0
    for name, net in objective.nets.items():
        tensors |= _prefixed(name, net, flat[:, start : start + net.size])
        start += net.size
    return tensors


def _prefixed(prefix: str, net: Net, flat: Tensor) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": view for name, view in net.named(flat).items()}


def _linear(model: FitTransform, guest: int) -> dict[str, Tensor]:
    """The arrays of a fitted projection. Many models have components and do more with them, so it is tried out."""
    components = getattr(model, "components_", None)
    mean = getattr(model, "mean_", None)
    if components is not None:
        arrays = np.asarray(components, np.float32), np.zeros(components.shape[1]) if mean is None else mean
        projection = LinearProjection(arrays[0], np.asarray(arrays[1], np.float32))
        x = np.random.default_rng(0).random((16, components.shape[1]), np.float32)
        if np.allclose(np.asarray(model.transform(x)), projection.transform(x), rtol=1e-3, atol=1e-4):
            pairs = {"components": projection.components_, "mean": projection.mean_}
            return {name: torch.from_numpy(array) for name, array in pairs.items()}
    name = type(model).__name__
    raise UserError(f"guest {guest + 1}: {name} cannot be saved without pickle; a linear model such as PCA can")
