"""A federation whose guests' encoders were trained by DP-SGD, one seed after the other."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from dvfl.errors import UserError
from dvfl.files import replacing, writing
from dvfl.parties.randomness import bits
from dvfl.privacy.cases import Case, recording_of
from dvfl.privacy.dpsgd import DpAutoencoder, Layers, encodings_of
from dvfl.privacy.recording import GuestRecording, Recording
from dvfl.strategies.dvfl import Dvfl
from dvfl.strategies.settings import Settings


def dp_recorded(case: Case, epsilon: float, kept: Path) -> tuple[tuple[float, ...], Recording]:
    """Test accuracy of each seed, and what was sent.

    The encoders, which need opacus and a CPU's time, are kept in a file. Where that is there, all others can be trained
    without opacus, and on a GPU.
    """
    every = _load(kept, case) if kept.is_file() else _learned(case, epsilon, kept)
    scores, recordings = [], []
    for seed, encoders in zip(case.seeds, every, strict=True):
        assert isinstance(case.settings, Settings)
        simulation = Dvfl(case.data, case.settings, [seed], device=case.device, encoders=encoders)
        simulation.run()
        scores += simulation.scores().tolist()
        recordings.append(recording_of(simulation, case.strategy))
    return tuple(scores), _together(recordings)


@dataclass(frozen=True)
class KeptEncoder:
    """A guest's encoder that has learned what it will."""

    layers: Layers
    parameters: NDArray[np.float32]

    def fit(self, x: NDArray[np.float32]) -> Self:
        """Nothing more to learn."""
        return self

    def transform(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Encodings (rows, latent)."""
        return encodings_of(self.layers, self.parameters, x)


def _learned(case: Case, epsilon: float, kept: Path) -> list[list[KeptEncoder]]:
    """Encoders of each seed's guests, which are written to `kept` as well."""
    widths = case.simulation().stack.latents  # type: ignore[attr-defined]
    made = []
    for seed in case.seeds:
        own = []
        for number, (width, guest) in enumerate(zip(widths, case.data.guests, strict=True)):
            drawn = bits(seed, "dp encoder", number)
            model = DpAutoencoder(latent=width, epsilon=epsilon, unit=guest.unit, seed=drawn).fit(guest.train)
            own.append(KeptEncoder(model.layers_, model.parameters_))
        made.append(own)
    tensors = {f"{seed}.{n}": one.parameters for seed, own in enumerate(made) for n, one in enumerate(own)}
    about = {"layers": json.dumps([one.layers for one in made[0]])}
    with writing(kept), replacing(kept) as temporary:
        save_file(tensors, temporary, about)
    return made


def _load(kept: Path, case: Case) -> list[list[KeptEncoder]]:
    """Takes back what `_learned` wrote."""
    try:
        with safe_open(kept, "np") as file:
            layers = [(tuple(widths), tuple(steps)) for widths, steps in json.loads(file.metadata()["layers"])]
            return [
                [KeptEncoder(own, file.get_tensor(f"{seed}.{number}")) for number, own in enumerate(layers)]
                for seed in range(len(case.seeds))
            ]
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise UserError(f"{kept}: cannot be read ({error}); without the file its encoders are trained anew") from error


def _together(recordings: Sequence[Recording]) -> Recording:
    """Recordings of the same rows, replica after replica."""
    first = recordings[0]
    guests = tuple(
        GuestRecording(own[0].name, own[0].x, torch.cat([one.z for one in own]))
        for own in zip(*(one.guests for one in recordings), strict=True)
    )
    seeds = tuple(seed for one in recordings for seed in one.seeds)
    return replace(first, seeds=seeds, guests=guests, outputs=torch.cat([one.outputs for one in recordings]))
