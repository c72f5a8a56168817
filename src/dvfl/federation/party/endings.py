"""How a training party ends badly."""

from dvfl.errors import RunFailed


class Fenced(RunFailed):
    """Another process of this party is newer; this one must end."""


def diverged(name: str, role: str) -> str:
    """What a party says whose loss is no number any more."""
    return f"{name}: its training diverged; a lower rate in [training.{role}] of federation.toml is right, in a new run"
