"""The algorithms of the comparison, by name."""

from collections.abc import Mapping

from dvfl.errors import UserError, nearest
from dvfl.strategies.dvfl import Dvfl

STRATEGIES: Mapping[str, type[Dvfl]] = {"dvfl": Dvfl}


def strategy(name: str) -> type[Dvfl]:
    """The simulation that a strategy's name stands for."""
    if name not in STRATEGIES:
        raise UserError(f"no strategy is called '{name}'{nearest(name, STRATEGIES)}")
    return STRATEGIES[name]
