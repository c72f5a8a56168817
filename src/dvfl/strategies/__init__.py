"""The algorithms of the comparison, by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from dvfl.errors import UserError, nearest
from dvfl.parties.faults.fault_set import NO_FAULTS
from dvfl.settings.training import AnySettings, FedVSSettings, Settings, SplitSettings
from dvfl.simulation.replica_data import GivenData
from dvfl.simulation.simulation import Simulation
from dvfl.simulation.stack_faults import PerReplica
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.fedonce import FedOnce
from dvfl.strategies.fedvs.fedvs import FedVS
from dvfl.strategies.presets import VARIANTS
from dvfl.strategies.split.split_training import EndToEnd
from dvfl.strategies.split.splitnn import SplitNN
from dvfl.strategies.split.vafl import Vafl
from dvfl.strategies.split.vfb2 import Vfb2


@dataclass(frozen=True)
class Strategy:
    """One algorithm: how its simulation is made, and what it can be told."""

    make: Callable[..., Simulation]
    settings: type[Settings] | type[SplitSettings]

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


def _split(algorithm: Callable[[], Any]) -> Strategy:
    def make(*arguments: Any, **options: Any) -> EndToEnd:
        return EndToEnd(*arguments, algorithm=algorithm(), **options)

    return Strategy(make, SplitSettings)


STRATEGIES: Mapping[str, Strategy] = {
    **{name: Strategy(Dvfl, Settings) for name in ("dvfl", *VARIANTS)},
    "splitnn-wait": _split(partial(SplitNN, "wait")),
    "splitnn-skip": _split(partial(SplitNN, "skip")),
    "splitnn-zeros": _split(partial(SplitNN, "zeros")),
    "splitnn-buffer": _split(partial(SplitNN, "buffer")),
    "splitnn-mean": _split(partial(SplitNN, "mean")),
    "fedonce": Strategy(partial(FedOnce, insists=True), Settings),
    "fedonce-zeros": Strategy(partial(FedOnce, insists=False), Settings),
    "vafl": _split(Vafl),
    "vfb2": _split(Vfb2),
    "fedvs": Strategy(FedVS, FedVSSettings),
}


def strategy(name: str) -> Strategy:
    """The algorithm that a name stands for."""
    if name not in STRATEGIES:
        raise UserError(f"no strategy is called '{name}'{nearest(name, STRATEGIES)}")
    return STRATEGIES[name]
