"""From an estimator's parameters to the settings of its training."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from torch import nn

from dvfl.data.split.vertical import VerticalData
from dvfl.parties.networks.modules import ModuleNet
from dvfl.settings.training import Settings
from dvfl.simulation.stack import Encoder
from dvfl.strategies.bounded_noise import settled_within

_WHOLE = ("hosts", "guest_epochs", "host_epochs", "owner_epochs", "batch", "period", "w_g", "partial")
_REAL = ("temperature", "adversary", "guest_dropout", "host_dropout", "clip", "noise")
_NAMES = ("guest_objective", "host_objective")
_HELD_OUT = 0.1


def chosen_settings(parameters: Mapping[str, Any], data: VerticalData) -> Settings:
    """The preset's for these data, and what was said otherwise; a parameter that is None says nothing."""
    given = {name: parameters[name] for name in (*_WHOLE, *_REAL, *_NAMES) if parameters[name] is not None}
    for name, value in given.items():
        if name in _WHOLE and not isinstance(value, Integral):
            raise ValueError(f"{name}={value!r}: a whole number is right")
    given |= {name: int(value) for name, value in given.items() if name in _WHOLE}
    given |= {name: float(value) for name, value in given.items() if name in _REAL}
    given["entity_augmentation"] = bool(parameters["entity_augmentation"])
    given["validation"] = _HELD_OUT if parameters["early_stopping"] else 0.0
    shield, latents = parameters["shield"], None
    if shield is not None:
        shield, latents = float(shield), _own_latents(parameters["encoders"], data)
    epsilon = None if parameters["epsilon"] is None else float(parameters["epsilon"])
    options = {"absent": bool(parameters["absent"]), "shield": shield, "latents": latents}
    settings = settled_within(epsilon, parameters["preset"], data, given, **options)
    assert isinstance(settings, Settings)
    return settings


def _own_latents(encoders: Sequence[Encoder | None] | None, data: VerticalData) -> list[int | None] | None:
    """Widths of what the user's own networks give, by which a shield measures its noise; None for the default's."""
    if encoders is None:
        return None
    latents: list[int | None] = []
    for number, (model, guest) in enumerate(zip(encoders, data.guests, strict=True), 1):
        if model is not None and not isinstance(model, nn.Module):
            raise ValueError(
                f"shield does not go with {type(model).__name__}, the encoder of guest {number}: its guests learn by"
                " comparing copies of rows; a network or None is right, or clip and noise without a shield"
            )
        latents.append(None if model is None else ModuleNet(model, guest.columns).out_width)
    return latents
