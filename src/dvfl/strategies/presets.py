"""Presets by name, and how settings change for absent parties, for noise and for a shield."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError, nearest
from dvfl.parties.networks.sizes import sizes
from dvfl.parties.objectives.objective import ObjectiveName
from dvfl.settings.training import AnySettings, Settings
from dvfl.strategies.paper_preset import paper_simclr
from dvfl.strategies.registry import STRATEGIES
from dvfl.strategies.tuned_preset import HIDDEN, tuned_simclr

# For parties that will be down at prediction guests are hidden as often, hosts so often, and so many passes are made.
_HIDDEN_HOSTS, _PASSES = 0.2, 4
_NOISY_DROPOUT = 0.5  # at the owner, at least: noisy encodings are sooner learned by heart


def preset(
    name: str, data: VerticalData, strategy: str = "dvfl", guest_objective: ObjectiveName = "reconstruction"
) -> AnySettings:
    """A preset of a strategy by its name, for data; the batch is no larger than they are.

    What guests learn by decides on more than itself, where the strategy leaves it open.
    """
    check_preset(name)
    strategy_of = STRATEGIES.find(strategy)
    settings = replace(strategy_of.presets[name](data), **strategy_of.fixed)
    if guest_objective == "simclr" and isinstance(settings, Settings):
        settings = _SIMCLR[name](settings)
    return replace(settings, batch=min(settings.batch, data.rows))


def settled(
    name: str,
    data: VerticalData,
    overrides: Mapping[str, Any],
    *,
    strategy: str = "dvfl",
    absent: bool = False,
    shield: float | None = None,
    latents: Sequence[int | None] | None = None,
) -> AnySettings:
    """A preset's settings, for parties that will be absent, with noise, an adversary or a shield; `overrides` win over
    all of these.

    `latents`: widths of the encodings of guests with networks of their own, None for the others.
    """
    changed = dict(overrides)
    settings = replace(preset(name, data, strategy, changed.get("guest_objective", "reconstruction")), **changed)
    if absent:
        settings = replace(for_absence(settings), **changed)
    if changed.get("noise") and isinstance(settings, Settings):
        settings = replace(for_noise(settings), **changed)
    if changed.get("adversary") and isinstance(settings, Settings):
        settings = replace(sent_once(settings), **changed)
    if shield is None:
        return settings
    assert isinstance(settings, Settings)
    columns = [guest.columns for guest in data.guests]
    widths = sizes(data.sizes, columns, settings.w_g, settings.w_h, settings.guest_hidden).guest_latent
    if latents is not None:
        widths = tuple(width if own is None else own for own, width in zip(latents, widths, strict=True))
    return replace(shielded(settings, shield, widths), **changed)


def for_absence(settings: AnySettings) -> AnySettings:
    """The settings of a training whose parties are to do without each other at prediction.

    Guests and hosts are hidden in training, and hosts that learn encode labelled rows with guests hidden. What is
    hidden more often already stays so.
    """
    if not isinstance(settings, Settings):
        return replace(settings, guest_dropout=max(settings.guest_dropout, HIDDEN))
    learning = settings.hosts > 0 and settings.host_model == "autoencoder"
    return replace(
        settings,
        guest_dropout=max(settings.guest_dropout, HIDDEN),
        host_dropout=max(settings.host_dropout, _HIDDEN_HOSTS if settings.hosts > 1 else 0.0),
        partial=max(settings.partial, _PASSES if learning else 0),
    )


def for_noise(settings: Settings) -> Settings:
    """The settings of a training whose encodings leave guests with noise."""
    return replace(settings, owner_dropout=max(settings.owner_dropout, _NOISY_DROPOUT))


def sent_once(settings: Settings) -> Settings:
    """The settings of a training whose guests push in their last epoch alone.

    Encoders that learn to hide columns have not learned it yet when they begin: what they made of a row then would tell
    nearly all of it (docs/audit.md).
    """
    return replace(settings, period=settings.guest_epochs)


def shielded(settings: Settings, strength: float, latents: Sequence[int]) -> Settings:
    """The settings of a training whose encodings are harder to invert (docs/audit.md has what that costs and brings).

    Guests learn by comparing altered copies of rows, which keeps less of what rows look like; they send once, since
    hosts pass on what they read; all directions of an encoding are equally strong, and have noise of `strength` times
    their own deviation. `latents`: widths of the guests' encodings.
    """
    if not 0 < strength < math.inf:
        raise UserError(f"shield {strength}: a number above 0 is right; 0.5 to 0.7 is usual")
    length = math.sqrt(max(latents))  # of a flat encoding, on average
    return replace(
        for_noise(settings),
        guest_objective="simclr",
        guest_noise=0.0,
        host_model="concatenate",
        host_objective="reconstruction",
        partial=0,
        flatten=True,
        clip=round(length, 4),
        noise=round(strength / length, 6),
    )


def check_preset(name: str) -> None:
    """Refuses a name that no preset has."""
    if name not in _SIMCLR:
        raise UserError(f"unknown preset '{name}'{nearest(name, _SIMCLR)}")


_SIMCLR = {"paper": paper_simclr, "tuned": tuned_simclr}
