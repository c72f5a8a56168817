"""Things by name: those of this package, and those that other packages bring by an entry point."""

import logging
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from dvfl.errors import UserError, nearest

Thing = TypeVar("Thing")
_LOG = logging.getLogger(__name__)


class Registry(Mapping[str, Thing], Generic[Thing]):
    """A mapping of names to things of one kind.

    Another package adds one by an entry point of `group`. It is imported when it is asked for, not before: a plug-in
    that cannot be imported is refused by its name, and everything else works. Names of this package win.
    """

    def __init__(self, kind: str, group: str, known: Mapping[str, Thing], wanted: type | tuple[type, ...]) -> None:
        """`kind`: what a message calls such a thing; `wanted`: what a plug-in's object must be."""
        self.kind, self.group = kind, group
        self._known, self._wanted = dict(known), wanted

    def find(self, name: str) -> Thing:
        """The thing of that name; refused with the nearest name where there is none."""
        if name not in self:
            raise UserError(f"no {self.kind} is called '{name}'{nearest(name, self)}")
        return self[name]

    def __getitem__(self, name: str) -> Thing:
        if name in self._known:
            return self._known[name]
        brought: Thing = _load(self.group, name, self.kind, self._wanted)
        return brought

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in _brought(self.group)

    def __iter__(self) -> Iterator[str]:
        yield from self._known
        yield from (name for name in _brought(self.group) if name not in self._known)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def working(self) -> dict[str, Thing]:
        """All that can be imported; each of the others is said in one line of the log."""
        made = {}
        for name in self:
            try:
                made[name] = self[name]
            except UserError as error:
                _LOG.warning("%s; it is left out", error)
        return made


@cache
def _brought(group: str) -> dict[str, EntryPoint]:
    """What other packages bring, by name; nothing is imported for it."""
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


@cache
def _load(group: str, name: str, kind: str, wanted: type | tuple[type, ...]) -> Any:
    point = _brought(group).get(name)
    if point is None:
        raise KeyError(name)
    package = point.dist.name if point.dist is not None else point.value
    try:
        thing = point.load()
    except Exception as error:
        raise UserError(
            f"{kind} '{name}': the package {package} cannot be imported ({type(error).__name__}: {error})"
        ) from error
    if not isinstance(thing, wanted):
        names = " or ".join(one.__name__ for one in (wanted if isinstance(wanted, tuple) else (wanted,)))
        raise UserError(f"{kind} '{name}': the package {package} brings a {type(thing).__name__}; it must be a {names}")
    return thing
