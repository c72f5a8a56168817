"""The two presets: the paper's hyperparameters, and ours."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError, nearest
from dvfl.parties.networks.sizes import sizes
from dvfl.parties.numerics.learner import Adam, Rule, Sgd
from dvfl.parties.objectives.objective import ObjectiveName
from dvfl.settings.training import AnySettings, FedVSSettings, Settings, SplitSettings

# Learning rates of guest (Adam), host (Adam) and owner (SGD, momentum 0.5): the paper's table for its tabular sets.
_PAPER_RATES = {
    "handwritten": (2e-3, 1e-3, 3e-3),
    "caltech7": (5e-4, 1e-2, 3e-5),
    "parkinsons": (5e-3, 4e-3, 5e-4),
    "credit_card": (1e-3, 1e-3, 1e-3),
}
# Learning rates of SplitNN's guests and host there, both Adam: the same table.
_PAPER_SPLIT_RATES = {
    "handwritten": (1e-3, 1e-4),
    "caltech7": (1e-4, 1e-4),
    "parkinsons": (1e-4, 5e-5),
    "credit_card": (1e-3, 1e-3),
}
# What the paper leaves open of other strategies, chosen on held-out rows, 8 trials each (docs/tuning.md).
_OPEN_RULES: dict[str, Rule] = {
    "vafl": Sgd(0.1, momentum=0.5),
    "vfb2": Sgd(0.1, momentum=0.5),
    "fedvs": Adam(1e-3, weight_decay=1e-6),
}
# DVFL with one choice fixed: a row of its own in tables, with dvfl's settings otherwise.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "dvfl-hostless": {"hosts": 0},  # the owner reads the guests
    "dvfl-concatenating": {"host_model": "concatenate"},  # hosts pass on what they read
    "dvfl-in-order": {"replay": "in order"},  # hosts go through their buffers from the front
}
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
_HIDDEN = 0.3
# For parties that will be down at prediction guests are hidden as often, hosts so often, and so many passes are made.
_HIDDEN_HOSTS, _PASSES = 0.2, 4
_NOISY_DROPOUT = 0.5  # at the owner, at least: noisy encodings are sooner learned by heart
# Few labels: one for so many of a guest's rows, or fewer. Of images they are copied, and guests learn by comparing.
_FEW = 3
_COPIES, _SMOOTHING = 16, 0.1
_COMPARING_STEPS, _COPIES_STEPS, _SPLIT_COPIES_STEPS = 600, 600, 4000
_COPIES_HEAD = (512, 512)
# Learning rate, dropout and guest noise of split networks in `tuned`: few updates want large rates, wrong ones small.
_SPLIT = {
    "splitnn-skip": (4e-3, 0.1, 0.0),
    "splitnn-buffer": (3e-4, 0.0, 0.1),
    "vfb2": (2e-3, 0.0, 0.1),
    "vafl": (1e-3, 0.2, 0.1),
}
_OTHER_SPLIT = (1.5e-3, 0.1, 0.1)
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


def decoupled(strategy: str) -> bool:
    """Whether a strategy is DVFL or a variant of it."""
    return strategy == "dvfl" or strategy in VARIANTS


def paper(data: VerticalData) -> Settings:
    """The paper's hyperparameters to the letter; on data that it does not have, those of MNIST."""
    if data.sizes not in _PAPER_RATES:
        return Settings()
    guest, host, owner = _PAPER_RATES[data.sizes]
    return Settings(hosts=1, guest_rule=Adam(guest), host_rule=Adam(host), owner_rule=Sgd(owner, momentum=0.5))


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
        settings = replace(settings, host_model="concatenate", guest_dropout=_HIDDEN)
    least: dict[str, Any] = {
        name: max(getattr(settings, name), _epochs(steps, rows, settings.batch))
        for (name, steps), rows in zip(_LEAST_STEPS.items(), (data.rows, data.rows, len(data.y_train)), strict=True)
    }
    return replace(settings, **least, **least_widths(data.sizes, [guest.columns for guest in data.guests]))


def preset(
    name: str, data: VerticalData, strategy: str = "dvfl", guest_objective: ObjectiveName = "reconstruction"
) -> AnySettings:
    """A preset of a strategy by its name, for data; the batch is no larger than they are.

    What guests learn by decides on more than itself, where the strategy leaves it open.
    """
    check_preset(name)
    fixed = VARIANTS.get(strategy, {})
    settings = replace(_PRESETS[name](data, "dvfl" if fixed else strategy), **fixed)
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
        return replace(settings, guest_dropout=max(settings.guest_dropout, _HIDDEN))
    learning = settings.hosts > 0 and settings.host_model == "autoencoder"
    return replace(
        settings,
        guest_dropout=max(settings.guest_dropout, _HIDDEN),
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


def check_preset(name: str) -> None:
    """Refuses a name that no preset has."""
    if name not in _PRESETS:
        raise UserError(f"unknown preset '{name}'{nearest(name, _PRESETS)}")


def _paper(data: VerticalData, strategy: str) -> AnySettings:
    """What the paper prints, then its source's disabled text, then our trials on held-out rows (docs/tuning.md)."""
    if strategy == "dvfl":
        return paper(data)
    if strategy.startswith("fedonce"):  # guests as DVFL's guests, the host as its owner
        return replace(paper(data), hosts=0)
    rule = _OPEN_RULES.get(strategy)
    if strategy == "fedvs":
        assert rule is not None
        return FedVSSettings(guest_rule=rule, host_rule=rule)
    if data.sizes in _PAPER_SPLIT_RATES:
        guest, host = _PAPER_SPLIT_RATES[data.sizes]
        return SplitSettings(guest_rule=Adam(guest), host_rule=Adam(host))
    return SplitSettings() if rule is None else SplitSettings(guest_rule=rule, host_rule=rule)


def _tuned(data: VerticalData, strategy: str) -> AnySettings:
    if strategy == "dvfl":
        table = {"hosts": 1, **_TABLES[_table(data)]} if data.sizes in _TABLES else {}
        return replace(tuned(data), **table)
    if strategy.startswith("fedonce"):
        if _few_images(data):
            return replace(tuned(data), hosts=0)
        if _many(data):
            return replace(tuned(data), hosts=0, guest_noise=0.1, head=_WIDER)
        return replace(tuned(data), hosts=0, owner_dropout=0.35)
    labels = max(1, int(data.complete.sum()))  # split networks learn from labelled rows alone that all guests have
    if strategy == "fedvs":
        coded = Adam(3e-3 if data.classes is not None else 3e-4, weight_decay=1e-5)
        epochs = min(max(_epochs(_CODED_STEPS, labels, 64), _CODED_EPOCHS[0]), _CODED_EPOCHS[1])
        return FedVSSettings(
            epochs=epochs, guest_rule=coded, host_rule=coded, schedule="cosine", dropout=0.2, validation=0.0
        )
    rate, dropout, noise = _SPLIT.get(strategy, _OTHER_SPLIT)
    rule, epochs = Adam(rate, weight_decay=1e-5), max(100, _epochs(_LEAST_SPLIT_STEPS, labels, 64))
    settings = SplitSettings(
        epochs=epochs, guest_rule=rule, host_rule=rule, schedule="cosine", dropout=dropout, validation=0.0
    )
    if _few_images(data):
        epochs = _epochs(_SPLIT_COPIES_STEPS, labels * (1 + _COPIES), settings.batch)
        return replace(settings, epochs=epochs, copies=_COPIES, smoothing=_SMOOTHING, dropout=0.3, head=_WIDE)
    if _many(data):
        settings = replace(settings, guest_noise=noise, head=_WIDE)
    if strategy in _SPLIT or data.sizes not in _SPLIT_TABLES:
        return settings
    rate, decay, change = _SPLIT_TABLES[_table(data)]
    rule = Adam(rate, weight_decay=decay)
    return replace(settings, guest_rule=rule, host_rule=rule, **change)


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
        guest_dropout=_HIDDEN if data.gaps else 0.0,
        guest_hidden=512,
        w_g=256 * len(data.guests),
        head=_COPIES_HEAD,
    )
    return replace(
        settings,
        guest_epochs=_epochs(_COMPARING_STEPS, data.rows, settings.batch),
        owner_epochs=_epochs(_COPIES_STEPS, len(data.y_train) * (1 + _COPIES), settings.batch),
    )


def _paper_simclr(settings: Settings) -> Settings:
    """The appendix on time complexity: MNIST, and no host."""
    return replace(
        settings,
        hosts=0,
        guest_objective="simclr",
        batch=600,
        guest_epochs=5,
        owner_epochs=60,
        guest_rule=Adam(4e-3, weight_decay=1e-5),
        owner_rule=Sgd(0.1, momentum=0.9),
    )


def _tuned_simclr(settings: Settings) -> Settings:
    """As ever but for the guests, who see altered copies in place of hidden values."""
    return replace(settings, guest_objective="simclr", guest_noise=0.0)


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


_PRESETS = {"paper": _paper, "tuned": _tuned}
_SIMCLR = {"paper": _paper_simclr, "tuned": _tuned_simclr}
