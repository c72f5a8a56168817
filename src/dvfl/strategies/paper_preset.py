"""Preset `paper`: what the paper prints, its source's disabled text, then trials on held-out rows (docs/tuning.md)."""

from dataclasses import replace

from dvfl.data.split.vertical import VerticalData
from dvfl.parties.numerics.learner import Adam, Rule, Sgd
from dvfl.settings.training import FedVSSettings, Settings, SplitSettings

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


def paper(data: VerticalData) -> Settings:
    """The paper's hyperparameters to the letter; on data that it does not have, those of MNIST."""
    if data.sizes not in _PAPER_RATES:
        return Settings()
    guest, host, owner = _PAPER_RATES[data.sizes]
    return Settings(hosts=1, guest_rule=Adam(guest), host_rule=Adam(host), owner_rule=Sgd(owner, momentum=0.5))


def paper_once(data: VerticalData) -> Settings:
    """FedOnce: guests as DVFL's guests, the host as its owner."""
    return replace(paper(data), hosts=0)


def paper_split(data: VerticalData, rule: Rule | None = None) -> SplitSettings:
    """A split network; `rule`: of guests and host on images, where the paper leaves both open."""
    if data.sizes in _PAPER_SPLIT_RATES:
        guest, host = _PAPER_SPLIT_RATES[data.sizes]
        return SplitSettings(guest_rule=Adam(guest), host_rule=Adam(host))
    return SplitSettings() if rule is None else SplitSettings(guest_rule=rule, host_rule=rule)


def paper_coded(data: VerticalData) -> FedVSSettings:
    """FedVS, which the paper cites and does not train."""
    rule = Adam(1e-3, weight_decay=1e-6)
    return FedVSSettings(guest_rule=rule, host_rule=rule)


def paper_simclr(settings: Settings) -> Settings:
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
