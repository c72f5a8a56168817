"""The algorithms of the comparison, by name, with what they can do; other packages add theirs by an entry point."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import torch

from dvfl.data.split.vertical import VerticalData
from dvfl.parties.faults.fault_set import NO_FAULTS
from dvfl.parties.numerics.learner import Sgd
from dvfl.plugins import Registry
from dvfl.settings.training import AnySettings, FedVSSettings, Settings, SplitSettings
from dvfl.simulation.replica_data import GivenData
from dvfl.simulation.simulation import Simulation
from dvfl.simulation.stack_faults import PerReplica
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.fedonce import FedOnce
from dvfl.strategies.fedvs.fedvs import FedVS
from dvfl.strategies.paper_preset import paper, paper_coded, paper_once, paper_split
from dvfl.strategies.split.split_training import EndToEnd
from dvfl.strategies.split.splitnn import SplitNN
from dvfl.strategies.split.vafl import Vafl
from dvfl.strategies.split.vfb2 import Vfb2
from dvfl.strategies.tuned_preset import tuned_coded, tuned_dvfl, tuned_once, tuned_split

Preset = Callable[[VerticalData], AnySettings]
Sends = Literal["encodings", "encodings once", "gradients"]


@dataclass(frozen=True)
class Strategy:
    """One algorithm: how its simulation is made, what it can be told, what it does.

    Attributes:
        make: gives a simulation of data, settings, seeds, faults and a device.
        settings: the class of its settings.
        presets: settings for data, by the preset's name.
        sends: what goes between parties in training: encodings in many epochs or once, or gradients back as well.
        fixed: settings that make it what it is, and that nobody can change.
        waits: whether it stops for good at the first lost message, unless it asks again.
        sums: whether its host sees guests' encodings in a sum alone.
    """

    make: Callable[..., Simulation]
    settings: type[Settings] | type[SplitSettings]
    presets: Mapping[str, Preset]
    sends: Sends
    fixed: Mapping[str, Any] = field(default_factory=dict)
    waits: bool = False
    sums: bool = False

    def __call__(
        self,
        data: GivenData,
        settings: AnySettings | Sequence[AnySettings],
        seeds: Sequence[int],
        *,
        faults: PerReplica = NO_FAULTS,
        device: torch.device | str = "cpu",
    ) -> Simulation:
        """A simulation of `len(seeds)` replicas."""
        return self.make(data, settings, seeds, faults=faults, device=device)


def dvfl(**fixed: Any) -> Strategy:
    """DVFL, or a variant of it with some settings fixed."""
    return Strategy(Dvfl, Settings, {"paper": paper, "tuned": tuned_dvfl}, "encodings", fixed)


def fedonce(insists: bool) -> Strategy:
    """FedOnce, which asks again until it is heard, or puts zeros in the place of what was lost."""
    presets: dict[str, Preset] = {"paper": paper_once, "tuned": tuned_once}
    return Strategy(partial(FedOnce, insists=insists), Settings, presets, "encodings once")


def split(
    algorithm: Callable[[], Any],
    paper: Preset = paper_split,
    tuned: Preset = tuned_split,
    *,
    waits: bool = False,
    sums: bool = False,
) -> Strategy:
    """A split network: `algorithm` says what a round does."""

    def make(*arguments: Any, **options: Any) -> EndToEnd:
        return EndToEnd(*arguments, algorithm=algorithm(), **options)

    return Strategy(make, SplitSettings, {"paper": paper, "tuned": tuned}, "gradients", waits=waits, sums=sums)


_OPEN = partial(paper_split, rule=Sgd(0.1, momentum=0.5))  # of VAFL and VFB2, by trials on held-out rows

STRATEGIES: Registry[Strategy] = Registry(
    "strategy",
    "dvfl.strategies",
    {
        "dvfl": dvfl(),
        "dvfl-hostless": dvfl(hosts=0),  # the owner reads the guests
        "dvfl-concatenating": dvfl(host_model="concatenate"),  # hosts pass on what they read
        "dvfl-in-order": dvfl(replay="in order"),  # hosts go through their buffers from the front
        "splitnn-wait": split(partial(SplitNN, "wait"), waits=True),
        "splitnn-skip": split(partial(SplitNN, "skip"), tuned=partial(tuned_split, choice=(4e-3, 0.1, 0.0))),
        "splitnn-zeros": split(partial(SplitNN, "zeros")),
        "splitnn-buffer": split(partial(SplitNN, "buffer"), tuned=partial(tuned_split, choice=(3e-4, 0.0, 0.1))),
        "splitnn-mean": split(partial(SplitNN, "mean")),
        "fedonce": fedonce(insists=True),
        "fedonce-zeros": fedonce(insists=False),
        "vafl": split(Vafl, _OPEN, partial(tuned_split, choice=(1e-3, 0.2, 0.1))),
        "vfb2": split(Vfb2, _OPEN, partial(tuned_split, choice=(2e-3, 0.0, 0.1)), sums=True),
        "fedvs": Strategy(FedVS, FedVSSettings, {"paper": paper_coded, "tuned": tuned_coded}, "gradients", sums=True),
    },
    Strategy,
)
