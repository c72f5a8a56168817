"""Settings with as much noise as a promise needs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.release.accounting import DELTA, noise_for
from dvfl.settings.training import AnySettings, Settings
from dvfl.strategies.presets import settled


def settled_within(
    epsilon: float | None, name: str, data: VerticalData, overrides: Mapping[str, Any], **options: Any
) -> AnySettings:
    """As `settled`, with the least noise that keeps all releases of a row's encoding within `epsilon`, at `DELTA`.

    None: as it is said otherwise.
    """
    if epsilon is None:
        return settled(name, data, overrides, **options)
    if options.get("shield") is not None:
        raise UserError(f"epsilon {epsilon} and a shield: both say how much noise there is; one of them is right")
    if "noise" in overrides:
        raise UserError(
            f"epsilon {epsilon} and noise {overrides['noise']}: the one follows from the other; one is right"
        )
    if "clip" not in overrides:
        raise UserError(f"epsilon {epsilon} without clip: the noise for it is in units of clip, so clip is needed too")
    settings = settled(name, data, {**overrides, "noise": 1.0}, **options)  # with noise, but how much is not known yet
    assert isinstance(settings, Settings)
    return replace(settings, noise=noise_for(epsilon, settings.releases, DELTA))
