"""`dvfl guest`, `dvfl host`, `dvfl owner`: one real party, in the foreground, until it is asked to leave."""

from pathlib import Path
from typing import Annotated

import typer

_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The party's own folder.")]
_Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]


def guest(folder: _Folder, debug: _Debug = False) -> None:
    """Run a guest: it trains on its own table and pushes encodings to the hosts. SIGTERM: save and leave."""
    from dvfl.federation.local.entrypoints import run_guest

    run_guest(checked(folder))


def host(folder: _Folder, debug: _Debug = False) -> None:
    """Run a host and its broker: it aggregates what guests push. SIGTERM: save and leave."""
    from dvfl.federation.local.entrypoints import run_host

    run_host(checked(folder))


def owner(folder: _Folder, debug: _Debug = False) -> None:
    """Run the owner: it tells the plan, collects encodings, trains on its labels. SIGTERM: save and leave."""
    from dvfl.federation.local.entrypoints import run_owner

    run_owner(checked(folder))


def checked(folder: Path) -> Path:
    """The folder, where it is there and what real parties need is installed."""
    from dvfl.errors import UserError
    from dvfl.orders.extras import needed

    needed("federation", "nats", "cryptography", "nacl")
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; that of a party is right")
    return folder
