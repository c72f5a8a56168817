"""A federation whose guests' encoders were trained by DP-SGD."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from dvfl.audit.attacks import backdoor
from dvfl.audit.dpsgd import DpAutoencoder, Layers, encodings_of
from dvfl.audit.recordings.cases import Case, recording_of
from dvfl.audit.recordings.measured import Measured
from dvfl.audit.recordings.recording import Recording
from dvfl.errors import UserError
from dvfl.files import replacing, writing
from dvfl.parties.numerics.randomness import bits
from dvfl.settings.training import Settings
from dvfl.strategies.decoupled.dvfl import Dvfl


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
    assert isinstance(case.settings, Settings)
    plain, of_poisoned = _load(kept, case)
    poisoned, guest, count = backdoor.poisoned(case.data), backdoor.guest_of(case.data), len(case.seeds)
    attacked = [own if number != guest else of_poisoned for number, own in enumerate(plain)]
    simulation = Dvfl(  # with the same replicas, but for what the guest does to its rows, beside those of the case
        [case.data] * count + [poisoned] * count,
        case.settings,
        case.seeds * 2,
        device=case.device,
        encoders=[own + other for own, other in zip(plain, attacked, strict=True)],
    )
    simulation.run()
    outputs, turned = backdoor.shown(simulation, case.data).split(count)
    return DpRecorded(
        tuple(simulation.scores()[:count].tolist()),
        recording_of(simulation, case.strategy, slice(0, count)),
        backdoor.figures(case.data, outputs, turned),
    )


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


def _load(kept: Path, case: Case) -> tuple[list[tuple[KeptEncoder, ...]], tuple[KeptEncoder, ...]]:
    """Of each guest the encoders of all seeds, and those of poisoned rows."""
    try:
        with safe_open(kept, "np") as file:
            known = json.loads(file.metadata()["layers"])
            layers = {name: (tuple(widths), tuple(steps)) for name, (widths, steps) in known.items()}

            def encoders(name: str) -> tuple[KeptEncoder, ...]:
                places = range(len(case.seeds))
                return tuple(KeptEncoder(layers[name], file.get_tensor(f"{place}.{name}")) for place in places)

            return [encoders(str(number)) for number in range(len(case.data.guests))], encoders(_POISONED)
    except (SafetensorError, AttributeError, KeyError, ValueError, TypeError) as error:
        raise UserError(f"{kept}: cannot be read ({error}); without the file its encoders are trained anew") from error
