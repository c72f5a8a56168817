"""Preset `tuned`: our best by rules for any data, chosen on held-out training rows (docs/tuning.md)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dvfl.data.split.vertical import VerticalData
from dvfl.parties.networks.sizes import sizes
from dvfl.parties.numerics.learner import Adam, Sgd
from dvfl.settings.training import FedVSSettings, Settings, SplitSettings

# What `tuned` makes at least: fewer rows need more epochs, and with many more steps they overfit.
_LEAST_STEPS = {"guest_epochs": 150, "host_epochs": 150, "owner_epochs": 300}
_LEAST_HOST_WIDTH = 64
_LEAST_SPLIT_STEPS = 3000
# FedVS, whose rounds cost more and which overfits few rows sooner: about so many steps, within bounds on epochs.
_CODED_STEPS, _CODED_EPOCHS = 1500, (20, 80)
# Rows from which `tuned` hides input values from guests and gives the labels' holder a wide network.
_MANY_ROWS = 20_000
_WIDE, _WIDER = (320, 320, 320), (512, 512, 512)
# Where rows lack guests, `tuned` hides one so often in training, and the owner, not hosts, learns to do without it.
HIDDEN = 0.3
# Few labels: one for so many of a guest's rows, or fewer. Of images they are copied, and guests learn by comparing.
_FEW = 3
_COPIES, _SMOOTHING = 16, 0.1
_COMPARING_STEPS, _COPIES_STEPS, _SPLIT_COPIES_STEPS = 600, 600, 4000
_COPIES_HEAD = (512, 512)
# Learning rate, dropout and guest noise of split networks, unless a strategy has its own.
_SPLIT_CHOICE = (1.5e-3, 0.1, 0.1)
_BY_SUBJECT = ", by subject"
# What `tuned` does otherwise on the paper's tabular sets (docs/tuning.md): DVFL, which has one host there ..
_SLOW = {"guest_rule": Adam(5e-4, weight_decay=1e-5), "host_rule": Adam(5e-4, weight_decay=1e-5)}
_WIDE_CODES = {"w_g": 800, "w_h": 320}
_FEW_EPOCHS = {"guest_epochs": 10, "host_epochs": 20, "owner_epochs": 25}
_TABLES: dict[str, dict[str, Any]] = {
    "handwritten": {"guest_noise": 0.2, "owner_rule": Sgd(0.3), "owner_dropout": 0.6},
    "caltech7": {**_SLOW, "owner_rule": Sgd(0.04), "owner_dropout": 0.6},
    "parkinsons": {**_SLOW, **_WIDE_CODES, "owner_rule": Sgd(0.5), "owner_dropout": 0.4},
    # An owner that learns for long learns the people, and nobody is on both sides of such a split.
    f"parkinsons{_BY_SUBJECT}": {
        **_SLOW,
        **_WIDE_CODES,
        "owner_epochs": 30,
        "owner_rule": Sgd(0.04, weight_decay=1e-2),
        "owner_dropout": 0.5,
    },
    "credit_card": {**_FEW_EPOCHS, "guest_noise": 0.0, "owner_rule": Sgd(0.12), "owner_dropout": 0.2},
}
# .. and SplitNN that skips and buffers nothing: learning rate, weight decay and the rest.
_SPLIT_TABLES: dict[str, tuple[float, float, dict[str, Any]]] = {
    "handwritten": (4e-3, 1e-5, {"epochs": 20, "dropout": 0.5, "head": _WIDE}),
    "caltech7": (1.5e-3, 1e-5, {"epochs": 20, "dropout": 0.5, "head": _WIDE}),
    "parkinsons": (4e-3, 1e-3, {"epochs": 60, "dropout": 0.5, "guest_noise": 0.2}),
    f"parkinsons{_BY_SUBJECT}": (7e-4, 1e-2, {"epochs": 30, "dropout": 0.5, "guest_noise": 0.2}),
    "credit_card": (1.5e-3, 1e-5, {"epochs": 20, "dropout": 0.2, "guest_noise": 0.0}),
}


def tuned(data: VerticalData) -> Settings:
    """Our best by rules for any data, chosen on held-out training rows (docs/tuning.md)."""
    if _few_images(data):
        return _tuned_few(data)
    settings = Settings(
        owner_epochs=100,
        owner_rule=Sgd(0.16 if data.classes is not None else 0.04),
        owner_schedule="cosine",
        standardise=True,
        owner_dropout=0.5,
        validation=0.0,
        replay="in order",
    )
    if _many(data):
        settings = replace(settings, guest_noise=0.2, head=_WIDE)
    if data.gaps:
        settings = replace(settings, host_model="concatenate", guest_dropout=HIDDEN)
    least: dict[str, Any] = {
        name: max(getattr(settings, name), _epochs(steps, rows, settings.batch))
        for (name, steps), rows in zip(_LEAST_STEPS.items(), (data.rows, data.rows, len(data.y_train)), strict=True)
    }
    return replace(settings, **least, **least_widths(data.sizes, [guest.columns for guest in data.guests]))


def tuned_dvfl(data: VerticalData) -> Settings:
    """DVFL, with the paper's one host on its tabular sets."""
    table = {"hosts": 1, **_TABLES[_table(data)]} if data.sizes in _TABLES else {}
    return replace(tuned(data), **table)


def tuned_once(data: VerticalData) -> Settings:
    """FedOnce: guests as DVFL's guests, the host as an owner without hosts."""
    if _few_images(data):
        return replace(tuned(data), hosts=0)
    if _many(data):
        return replace(tuned(data), hosts=0, guest_noise=0.1, head=_WIDER)
    return replace(tuned(data), hosts=0, owner_dropout=0.35)


def tuned_split(data: VerticalData, choice: tuple[float, float, float] | None = None) -> SplitSettings:
    """A split network; `choice`: learning rate, dropout and guest noise of a strategy that has its own.

    Few updates want large rates, wrong ones small. SplitNN that skips and buffers nothing has settings for the paper's
    tabular sets.
    """
    labels = _common_labels(data)
    rate, dropout, noise = choice or _SPLIT_CHOICE
    rule, epochs = Adam(rate, weight_decay=1e-5), max(100, _epochs(_LEAST_SPLIT_STEPS, labels, 64))
    settings = SplitSettings(
        epochs=epochs, guest_rule=rule, host_rule=rule, schedule="cosine", dropout=dropout, validation=0.0
    )
    if _few_images(data):
        epochs = _epochs(_SPLIT_COPIES_STEPS, labels * (1 + _COPIES), settings.batch)
        return replace(settings, epochs=epochs, copies=_COPIES, smoothing=_SMOOTHING, dropout=0.3, head=_WIDE)
    if _many(data):
        settings = replace(settings, guest_noise=noise, head=_WIDE)
    if choice is not None or data.sizes not in _SPLIT_TABLES:
        return settings
    rate, decay, change = _SPLIT_TABLES[_table(data)]
    rule = Adam(rate, weight_decay=decay)
    return replace(settings, guest_rule=rule, host_rule=rule, **change)


def tuned_coded(data: VerticalData) -> FedVSSettings:
    """FedVS: about as many rounds on any data, since they cost much."""
    coded = Adam(3e-3 if data.classes is not None else 3e-4, weight_decay=1e-5)
    epochs = min(max(_epochs(_CODED_STEPS, _common_labels(data), 64), _CODED_EPOCHS[0]), _CODED_EPOCHS[1])
    return FedVSSettings(
        epochs=epochs, guest_rule=coded, host_rule=coded, schedule="cosine", dropout=0.2, validation=0.0
    )


def tuned_simclr(settings: Settings) -> Settings:
    """As ever but for the guests, who see altered copies in place of hidden values."""
    return replace(settings, guest_objective="simclr", guest_noise=0.0)


def least_widths(rule: str, columns: Sequence[int]) -> dict[str, Any]:
    """`tuned`: guests with few columns still need encodings of some width, and owners a head of some."""
    if not columns:
        return {}
    least = min(32, max(4, 128 // len(columns)))
    widths = {}
    if max(sizes(rule, columns).guest_latent) < least:
        widths["w_g"] = least * len(columns)
    if sizes(rule, columns, widths.get("w_g")).host_latent < _LEAST_HOST_WIDTH:
        widths["w_h"] = _LEAST_HOST_WIDTH
    return widths


def _tuned_few(data: VerticalData) -> Settings:
    """Few labels of images: guests that compare warped copies, an owner that learns from warped copies.

    Hosts pass on what they read: an autoencoder keeps what varies most, and few labels cannot make up for what it
    leaves out.
    """
    settings = Settings(
        host_model="concatenate",
        guest_objective="simclr",
        temperature=0.2,
        batch=min(512, data.rows),
        guest_rule=Adam(4e-3, weight_decay=1e-5),
        owner_rule=Adam(2e-3),
        guest_schedule="cosine",
        owner_schedule="cosine",
        standardise=True,
        owner_dropout=0.5,
        copies=_COPIES,
        smoothing=_SMOOTHING,
        validation=0.0,
        guest_dropout=HIDDEN if data.gaps else 0.0,
        guest_hidden=512,
        w_g=256 * len(data.guests),
        head=_COPIES_HEAD,
    )
    return replace(
        settings,
        guest_epochs=_epochs(_COMPARING_STEPS, data.rows, settings.batch),
        owner_epochs=_epochs(_COPIES_STEPS, len(data.y_train) * (1 + _COPIES), settings.batch),
    )


def _common_labels(data: VerticalData) -> int:
    """Rows that split networks learn from: the labelled ones that all guests have."""
    return max(1, int(data.complete.sum()))


def _many(data: VerticalData) -> bool:
    return data.rows >= _MANY_ROWS


def _table(data: VerticalData) -> str:
    """Which of the paper's tabular sets it is; where people were held out, the choice made for that if there is one."""
    people = data.split is not None and data.split.rule == "subject"
    name = f"{data.sizes}{_BY_SUBJECT}"
    return name if people and name in _TABLES else data.sizes


def _few_images(data: VerticalData) -> bool:
    """Whether guests have strips of images and labels for few of them."""
    few = data.labelled is not None and data.classes is not None and _FEW * len(data.y_train) <= data.rows
    return few and all(guest.image is not None for guest in data.guests)


def _epochs(steps: int, rows: int, batch: int) -> int:
    """As many as so many steps take."""
    return -(-steps // -(-rows // batch))
