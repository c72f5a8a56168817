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

from dvfl.data.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.files import replacing, writing
from dvfl.parties.randomness import bits
from dvfl.privacy.attacks import backdoor
from dvfl.privacy.cases import Case, recording_of
from dvfl.privacy.dpsgd import DpAutoencoder, Layers, encodings_of
from dvfl.privacy.measured import Measured
from dvfl.privacy.recording import GuestRecording, Recording
from dvfl.strategies.dvfl import Dvfl
from dvfl.strategies.settings import Settings


@dataclass(frozen=True)
class DpRecorded:
    """What was found of all seeds."""

    scores: tuple[float, ...]  # test accuracy of each
    recording: Recording
    backdoor: list[Measured]


def dp_recorded(case: Case, epsilon: float, kept: Path) -> DpRecorded:
    """Trains and records. The encoders, which need opacus and a CPU's time, are kept in a file: where that is there,
    all others can be trained without opacus, and on a GPU."""
    keep_encoders(case, epsilon, kept)
    poisoned, guest = backdoor.poisoned(case.data), backdoor.guest_of(case.data)
    scores, recordings, outputs, turned = [], [], [], []
    for seed, (encoders, of_poisoned) in zip(case.seeds, _load(kept, case), strict=True):
        simulation = _trained(case, case.data, seed, encoders)
        scores += simulation.scores().tolist()
        recordings.append(recording_of(simulation, case.strategy))
        outputs.append(backdoor.shown(simulation, case.data))
        encoders[guest] = of_poisoned
        turned.append(backdoor.shown(_trained(case, poisoned, seed, encoders), case.data))
    figures = backdoor.figures(case.data, torch.cat(outputs), torch.cat(turned))
    return DpRecorded(tuple(scores), _together(recordings), figures)


def keep_encoders(case: Case, epsilon: float, kept: Path) -> None:
    """Trains the encoders of all seeds' guests, and one more of the guest that poisons its rows, unless they are there.

    That guest, too, trains by DP-SGD: its encoder is like the others', only its rows are not.
    """
    if kept.is_file():
        return
    widths = case.simulation().stack.latents  # type: ignore[attr-defined]
    guest = backdoor.guest_of(case.data)
    tables = [(str(number), number, one) for number, one in enumerate(case.data.guests)]
    tables.append((_POISONED, guest, backdoor.poisoned(case.data).guests[guest]))
    tensors, layers = {}, {}
    for place, seed in enumerate(case.seeds):
        for name, number, table in tables:
            drawn = bits(seed, "dp encoder", number)
            model = DpAutoencoder(latent=widths[number], epsilon=epsilon, unit=table.unit, seed=drawn).fit(table.train)
            tensors[f"{place}.{name}"], layers[name] = model.parameters_, model.layers_
    with writing(kept), replacing(kept) as temporary:
        save_file(tensors, temporary, {"layers": json.dumps(layers)})


_POISONED = "poisoned"


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


def _trained(case: Case, data: VerticalData, seed: int, encoders: Sequence[KeptEncoder]) -> Dvfl:
    assert isinstance(case.settings, Settings)
    simulation = Dvfl(data, case.settings, [seed], device=case.device, encoders=encoders)
    simulation.run()
    return simulation


def _load(kept: Path, case: Case) -> list[tuple[list[KeptEncoder], KeptEncoder]]:
    """Of each seed, all guests' encoders and that of poisoned rows."""
    try:
        with safe_open(kept, "np") as file:
            known = json.loads(file.metadata()["layers"])
            layers = {name: (tuple(widths), tuple(steps)) for name, (widths, steps) in known.items()}

            def encoder(place: int, name: str) -> KeptEncoder:
                return KeptEncoder(layers[name], file.get_tensor(f"{place}.{name}"))

            guests = range(len(case.data.guests))
            return [
                ([encoder(place, str(number)) for number in guests], encoder(place, _POISONED))
                for place in range(len(case.seeds))
            ]
    except (SafetensorError, AttributeError, KeyError, ValueError, TypeError) as error:
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
