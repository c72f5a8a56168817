"""A preset as the settings of real parties, which know nothing of the simulator's."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dvfl.data.split.vertical import VerticalData
from dvfl.data.tables.reading import read_table
from dvfl.data.tables.targets import label_of, targets
from dvfl.federation.custody.admission import Widths
from dvfl.federation.party.settings import Optimiser, OwnerHead, Training
from dvfl.settings.training import Settings
from dvfl.strategies.presets import for_absence
from dvfl.strategies.presets import preset as preset_of
from dvfl.strategies.tuned_preset import least_widths

_RULE = "table"  # of sizes, for data that are not the paper's
_SOME_ROWS = 5000  # enough for a preset's own epochs, and not so many that it widens networks


_CALIBRATION = {"tuned": 0.05, "paper": 0.0}  # labelled rows kept to calibrate on; the paper has none


def settings_for(preset: str, seed: int, labels: tuple[Path, str, str | None] | None) -> tuple[Training, OwnerHead]:
    """A preset for a federation without guests yet; file, id and column of the labels say what they are and how many.

    Without them they are taken for classes of some thousand rows.
    """
    y: NDArray[Any] = np.zeros(_SOME_ROWS, np.int64)
    classes: tuple[str, ...] | None = ("no", "yes")
    if labels is not None:
        path, id_column, label_column = labels
        y, classes = targets(label_of(read_table(path, id_column), label_column), "auto", path)
    settings = preset_of(preset, VerticalData("", (), y, y[:0], classes, _RULE))
    assert isinstance(settings, Settings)
    settings = for_real_parties(settings, preset)
    return training_of(settings, seed, _RULE), head_of(settings, preset)


def widths_of(preset: str, rule: str) -> Widths:
    """How wide a preset makes the encodings of guests with so many columns."""

    def widths(columns: Sequence[int]) -> tuple[int | None, int | None]:
        wider = least_widths(rule, columns) if preset == "tuned" else {}
        return wider.get("w_g"), wider.get("w_h")

    return widths


def for_real_parties(s: Settings, preset: str) -> Settings:
    """What real parties can do of a preset, which by `tuned` can do without some of them (docs/prediction.md).

    Where labels are few, learning to do without guests costs too much. Guests do not know which rows are labelled, so
    there are no copies of those, and the owner goes through its rows as often as it would have met them with copies.
    Where labels lack guests, hosts learn.
    """
    if s.copies:
        return replace(s, copies=0, owner_epochs=s.owner_epochs * (1 + s.copies))
    s = replace(s, host_model="autoencoder")
    if preset == "paper":
        return s
    ready = for_absence(s)
    assert isinstance(ready, Settings)
    return ready


def training_of(s: Settings, seed: int, rule: str) -> Training:
    """How guests and hosts train."""
    return Training(
        seed,
        rule,
        s.batch,
        s.guest_epochs,
        s.host_epochs,
        s.period,
        Optimiser.of(s.guest_rule),
        Optimiser.of(s.host_rule),
        s.guest_schedule,
        s.host_schedule,
        s.guest_noise,
        s.guest_dropout,
        s.w_g,
        s.w_h,
        s.guest_hidden,
        s.guest_objective,
        s.host_model,
        s.host_objective,
        s.temperature,
        s.partial,
        s.adversary,
    )


def head_of(s: Settings, preset: str) -> OwnerHead:
    """How the owner trains."""
    return OwnerHead(
        Optimiser.of(s.owner_rule),
        s.owner_epochs,
        s.batch,
        s.owner_schedule,
        s.standardise,
        s.owner_dropout,
        s.host_dropout,
        s.validation,
        s.patience,
        s.head,
        s.smoothing,
        _CALIBRATION[preset],
    )
