"""A practice federation's folder for a chaos run: fresh, nobody at work in it, files that are other for a while."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dvfl.errors import RunFailed, UserError
from dvfl.federation.local.entrypoints import RESULT
from dvfl.federation.party.configuration import written
from dvfl.federation.party.lifecycle import STATUS, held
from dvfl.federation.party.settings import (
    FEDERATION,
    PARTY,
    Deadlines,
    Federation,
    GuestFile,
    OwnerFile,
    read_guest,
    read_owner,
)
from dvfl.files import write_bytes, write_text
from dvfl.lab.chaos.chaos_schedule import link

_KEPT = ".before-chaos"  # ends the name under which a changed file's content is kept
_STATE, _BROKER = "state", "broker"
_MADE = (_STATE, _BROKER, STATUS, RESULT, "log.txt")  # what parties write


def make_fresh(folder: Path, parties: list[str], *, again: bool) -> None:
    """Refuses a folder that is in use or was used; with `again`, what a run left there is removed."""
    for party in parties:
        try:
            with held(folder / party, party):
                pass
        except RunFailed as error:
            raise UserError(f"{error}; end it, and let dvfl chaos start all of them") from error
    put_back(folder)
    used = [party for party in parties if any((folder / party / name).exists() for name in (_STATE, _BROKER, RESULT))]
    if used and not again:
        raise UserError(
            f"{folder / used[0]} has been used; a folder fresh from dvfl federation init is right,"
            " or --again to remove what the last run left in this one"
        )
    for party in used:
        for name in _MADE:
            path = folder / party / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


@contextmanager
def changed(texts: Mapping[Path, str]) -> Iterator[None]:
    """Gives files another content for a while. What they were stays beside them, so that even a kill loses nothing."""
    try:
        for path, text in texts.items():
            write_bytes(path.with_name(path.name + _KEPT), path.read_bytes())
            write_text(path, text)
        yield
    finally:
        for path in texts:
            _restore(path.with_name(path.name + _KEPT))


def put_back(folder: Path) -> None:
    """Undoes the changes of a run that was killed."""
    for kept in [*folder.glob(f"*{_KEPT}"), *folder.glob(f"*/*{_KEPT}")]:
        _restore(kept)


def addresses(folder: Path, federation: Federation) -> dict[str, str]:
    """Where guests and owner reach hosts, by the link between them."""
    files = _callers(folder, federation)
    return {link(party, host): at for party, file in files.items() for host, at in file.hosts.items()}


def redirected(
    folder: Path, federation: Federation, to: Mapping[str, str], collect_s: float | None = None
) -> dict[Path, str]:
    """The files of guests and owner with other addresses, given by link, and with the owner's deadline if one is."""
    texts = {}
    for party, file in _callers(folder, federation).items():
        other = replace(file, hosts={host: to[link(party, host)] for host in file.hosts})
        if isinstance(other, OwnerFile) and collect_s is not None:
            other = replace(other, collect_s=min(collect_s, other.collect_s))
        texts[folder / party / PARTY] = written(other)
    return texts


def hurried(folder: Path, federation: Federation, deadlines: Deadlines) -> dict[Path, str]:
    """The files of all parties with other deadlines."""
    text = written(replace(federation, deadlines=deadlines))
    return dict.fromkeys([folder / FEDERATION, *folder.glob(f"*/{FEDERATION}")], text)


def _callers(folder: Path, federation: Federation) -> dict[str, GuestFile | OwnerFile]:
    guests = {guest: read_guest(folder / guest, federation) for guest in federation.guests}
    return {**guests, federation.owner: read_owner(folder / federation.owner, federation)}


def _restore(kept: Path) -> None:
    if kept.exists():
        os.replace(kept, kept.with_name(kept.name.removesuffix(_KEPT)))
