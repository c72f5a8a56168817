"""Packages that a command needs beyond the base installation."""

from importlib.util import find_spec

from dvfl.errors import UserError


def needed(extra: str, *packages: str) -> None:
    """Refuses, in one line, where an extra is not installed."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise UserError(f"{', '.join(missing)} not installed; pip install 'dvfl[{extra}]' is right")
