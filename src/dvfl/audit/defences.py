"""Defences that a federation can be trained with, by name: what each changes, and what it is in plain words."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from dvfl.audit.recordings.recording import Recording
from dvfl.errors import UserError, nearest
from dvfl.plugins import Registry
from dvfl.settings.training import AnySettings, Settings, SplitSettings
from dvfl.strategies import STRATEGIES
from dvfl.strategies.presets import for_noise, sent_once, shielded

NONE, ALL = "none", "all"
_NOISES = (0.4, 0.7)  # in parts of an encoding's own size, as `shielded` counts it too
_OFTEN = 0.4
_SHIELDS = (0.5, 0.7)
_NARROW = 5  # times
_ADVERSARY = 0.5  # the largest weight tried that costs less than a point of held-out accuracy (benchmarks/adversary.py)


@dataclass(frozen=True)
class Defence:
    """One way to leak less."""

    words: str
    change: Callable[[AnySettings, Recording], AnySettings]  # settings, and what was sent without it
    epsilon: float | None = None  # of the encoders' training, where it has one
    pushes: bool = False  # it is about how often hosts are sent encodings, and nothing else
    of: Literal["encodings", "gradients"] = "encodings"  # what it hides


def defences(strategy: str) -> dict[str, Defence]:
    """All that a strategy can be trained with."""
    sends = STRATEGIES[strategy].sends
    return {
        name: defence
        for name, defence in DEFENCES.working().items()
        if (defence.of == "gradients") == (sends == "gradients")
        and not (defence.pushes and sends == "encodings once")  # which always sends once
    }


def chosen(names: Sequence[str], strategy: str) -> dict[str, Defence]:
    """Those of a list that a strategy has, `all` for every one; a name that no strategy has is refused."""
    for name in names:
        if name not in DEFENCES and name not in (NONE, ALL):
            raise UserError(f"no defence is called '{name}'{nearest(name, [*DEFENCES, ALL, NONE])}")
    own = defences(strategy)
    return {name: defence for name, defence in own.items() if ALL in names or name in names}


def usual_length(sent: Recording) -> float:
    """The median length of an encoding of a trained row, of the guest that has the longest."""
    trained = slice(0, sent.rows.trained)
    return max(float(guest.z[:, trained].norm(dim=2).median()) for guest in sent.guests)


def _noise(strength: float, settings: AnySettings, sent: Recording) -> AnySettings:
    """Sent once, as by a shield: hosts pass on what they read."""
    often = _noise_often(strength, settings, sent)
    return replace(often, host_model="concatenate", host_objective="reconstruction", partial=0)


def _noise_often(strength: float, settings: AnySettings, sent: Recording) -> Settings:
    assert isinstance(settings, Settings)
    width = max(guest.z.shape[2] for guest in sent.guests)
    clip, noise = round(usual_length(sent), 3), round(strength / math.sqrt(width), 4)
    return replace(for_noise(settings), clip=clip, noise=noise)


def _shield(strength: float, settings: AnySettings, sent: Recording) -> AnySettings:
    assert isinstance(settings, Settings)
    return shielded(settings, strength, [guest.z.shape[2] for guest in sent.guests])


def _once(settings: AnySettings, sent: Recording) -> Settings:
    assert isinstance(settings, Settings)
    return sent_once(settings)


def _narrow(settings: AnySettings, sent: Recording) -> AnySettings:
    assert isinstance(settings, Settings)
    widths = [guest.z.shape[2] for guest in sent.guests]
    return replace(settings, w_g=max(1, max(widths) // _NARROW) * len(widths))


def _compare(settings: AnySettings, sent: Recording) -> AnySettings:
    assert isinstance(settings, Settings)
    return replace(settings, guest_objective="simclr", guest_noise=0.0)


def _against(settings: AnySettings, sent: Recording) -> AnySettings:
    return replace(_once(_compare(settings, sent), sent), adversary=_ADVERSARY)


def _gradients(change: Mapping[str, float | str], settings: AnySettings, sent: Recording) -> AnySettings:
    assert isinstance(settings, SplitSettings)
    return replace(settings, **change)  # type: ignore[arg-type]


def _same(settings: AnySettings, sent: Recording) -> AnySettings:
    return settings


_OF_ENCODINGS = {
    **{
        f"noise-{strength}": Defence(
            f"encodings clipped to their usual length, sent once, with noise of {strength:.0%} of their own size",
            partial(_noise, strength),
        )
        for strength in _NOISES
    },
    f"noise-{_OFTEN}-often": Defence(
        f"encodings clipped to their usual length, pushed in every epoch, with {_OFTEN:.0%} of noise drawn anew",
        partial(_noise_often, _OFTEN),
        pushes=True,
    ),
    "narrow": Defence(f"encodings a {['', '', 'half', 'third', 'quarter', 'fifth'][_NARROW]} as wide", _narrow),
    "once": Defence("encodings pushed in the guests' last epoch alone", _once, pushes=True),
    "simclr": Defence("guests learn by comparing altered copies of rows, not by reconstruction", _compare),
    "adversary": Defence(
        "guests compare altered copies, and learn against a decoder of their encodings; pushed in the last epoch alone",
        _against,
    ),
    **{
        f"shield-{strength}": Defence(
            "guests compare altered copies, send once, all directions of an encoding made equally strong, with noise of"
            f" {strength:.0%} of its own size",
            partial(_shield, strength),
        )
        for strength in _SHIELDS
    },
    "dp-sgd": Defence(
        "guests' encoders trained by DP-SGD; protects the rows they are trained on, not what is sent",
        _same,
        epsilon=8.0,
    ),
}
_OF_GRADIENTS = {
    "gradient-noise": Defence(
        "Gaussian noise on gradients, as large as they are",
        partial(_gradients, {"gradient_noise": 1.0}),
        of="gradients",
    ),
    "gradient-max-norm": Defence(
        "gradients stretched at random to the length of the longest",
        partial(_gradients, {"gradient_defence": "max_norm"}),
        of="gradients",
    ),
    "gradient-sign": Defence(
        "signs of gradients alone", partial(_gradients, {"gradient_defence": "sign"}), of="gradients"
    ),
}

DEFENCES: Registry[Defence] = Registry("defence", "dvfl.defences", {**_OF_ENCODINGS, **_OF_GRADIENTS}, Defence)
