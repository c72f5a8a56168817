"""`dvfl federation create` and `remove`, `dvfl join`, `dvfl admit`: every key is made where it is used."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dvfl.errors import UserError

if TYPE_CHECKING:
    from dvfl.federation.custody.admission import Changed, Widths

Align = Annotated[Literal["union", "star", "given"], typer.Option(help="How ids become slots (docs/alignment.md).")]
IdCase = Annotated[Literal["keep", "fold"], typer.Option(help="fold: ids that differ in case alone are the same.")]
_Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
_Owner = Annotated[Path, typer.Argument(metavar="DIR", help="The owner's folder.")]

CREATE = "Example: dvfl federation create owner --name clinics --labels labels.parquet"
REMOVE = "Example: dvfl federation remove owner guest-2"
JOIN = "Example: dvfl join guest-1 --as guest --name guest-1 --invitation invitation.toml --table table.parquet"
ADMIT = "Example: dvfl admit owner request.toml"


def create(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The owner's new folder.")],
    name: Annotated[str, typer.Option(help="Of the federation: lower-case letters, digits and '-'.")],
    preset: Annotated[str, typer.Option(help="paper: its hyperparameters to the letter; tuned: our best.")] = "tuned",
    seed: Annotated[int, typer.Option(min=0, help="Of the run.")] = 0,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The labels; the preset depends on what they are.")
    ] = None,
    id: Annotated[str, typer.Option(metavar="COLUMN", help="The id column of the labels.")] = "id",
    label_column: Annotated[str | None, typer.Option(metavar="COLUMN", help="Which column of --labels.")] = None,
    align: Align = "union",
    id_case: IdCase = "keep",
    debug: _Debug = False,
) -> None:
    """Make a real federation, run by its owner: the owner's keys, and an invitation for all others."""
    _check_extra()
    from dvfl.federation.custody.admission import create
    from dvfl.federation.custody.enrolment import shown
    from dvfl.federation.custody.founding import placed
    from dvfl.federation.party.settings import INVITATION, Alignment, OwnerData
    from dvfl.orders.preset_settings import settings_for

    training, head = settings_for(preset, seed, None if labels is None else (labels, id, label_column))
    data = OwnerData(id=id, label=label_column)
    if labels is not None:
        data = OwnerData(placed(folder, labels), id=id, label=label_column)
    alignment = Alignment(align, id_case)
    invitation = create(folder, name, training, head, data, {"preset": preset}, alignment, now=datetime.now(UTC))
    typer.echo(f"{folder}: the owner's folder. Whoever has {folder / 'keys'} is the owner: keep it, and back it up.")
    typer.echo(f"Send {folder / INVITATION} to every guest and host; it holds no secret. Its fingerprint, which they")
    typer.echo("should hear from you by telephone:")
    typer.echo(f"  {shown(invitation.fingerprint)}")
    typer.echo(f"They answer with a request.toml each: dvfl admit {folder} request.toml")


def join(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The party's own folder.")],
    role: Annotated[Literal["guest", "host"] | None, typer.Option("--as", help="What to be.")] = None,
    name: Annotated[str | None, typer.Option(help="The party's name, such as guest-1.")] = None,
    invitation: Annotated[Path | None, typer.Option(metavar="FILE", help="From the owner.")] = None,
    table: Annotated[Path | None, typer.Option(metavar="FILE", help="A guest's table, CSV or Parquet.")] = None,
    id: Annotated[str, typer.Option(metavar="COLUMN", help="Its id column.")] = "id",
    slots: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its slots, where they are not drawn by alignment.")
    ] = None,
    values: Annotated[
        Literal["standardise", "unit"], typer.Option(help="unit: numbers from 0 to 1, taken as they are.")
    ] = "standardise",
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS:PORT", help="Where a host's broker listens.")
    ] = "0.0.0.0:4222",
    address: Annotated[str | None, typer.Option(metavar="ADDRESS:PORT", help="Where the others reach a host.")] = None,
    admission: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The owner's answer, for a folder that joined before.")
    ] = None,
    debug: _Debug = False,
) -> None:
    """Join a real federation as a guest or host: keys are made here and stay here; a request goes to the owner."""
    _check_extra()
    if admission is not None:
        _take(folder, admission)
        return
    from dvfl.federation.custody.enrolment import read_invitation, shown
    from dvfl.federation.custody.founding import placed
    from dvfl.federation.custody.joining import join_as_guest, join_as_host
    from dvfl.federation.party.settings import REQUEST, BrokerEntry, GuestData

    for option, value in (("--as", role), ("--name", name), ("--invitation", invitation)):
        if value is None:
            raise UserError(f"{option} is not given; a new party needs it (or --admission, the owner's answer)")
    assert name is not None and invitation is not None
    if role == "guest":
        if table is None:
            raise UserError("--table is not given; a guest brings a table")
        if slots is not None and not slots.exists():
            raise UserError(f"--slots {slots}: not there")
        data = GuestData(placed(folder, table), "slots.parquet" if slots is None else placed(folder, slots), id)
        request = join_as_guest(folder, invitation, name, data, values)
        typer.echo(f"{folder}: {name}, a guest whose table gives {request.columns} columns of numbers.")
    else:
        if address is None:
            raise UserError("--address is not given; say where guests and owner reach this host, as ADDRESS:PORT")
        request = join_as_host(folder, invitation, name, BrokerEntry(listen), address)
        typer.echo(f"{folder}: {name}, a host that listens on {listen} and is reached at {address}.")
    typer.echo("The invitation's fingerprint, which the owner should read to you by telephone:")
    typer.echo(f"  {shown(read_invitation(invitation).fingerprint)}")
    typer.echo(f"Send {folder / REQUEST} to the owner; it holds no secret. Its fingerprint, for the owner to compare:")
    typer.echo(f"  {shown(request.fingerprint)}")
    typer.echo(f"Take the owner's answer with: dvfl join {folder} --admission admission-{name}.toml")


def admit(
    folder: _Owner,
    path: Annotated[Path, typer.Argument(metavar="REQUEST", help="A party's request.toml.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Give the name to a new key: the party lost its old one.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask: the fingerprint was compared.")] = False,
    debug: _Debug = False,
) -> None:
    """Admit a guest or host, run by the owner: checks its request, issues its certificates, writes the answer."""
    _check_extra()
    from dvfl.federation.custody.admission import admit, check_request
    from dvfl.federation.custody.enrolment import read_request, shown

    request = read_request(path)
    check_request(folder, request, replacing=replace)
    brings = f"{request.columns} columns" if request.role == "guest" else f"reached at {request.address}"
    typer.echo(f"{request.party} asks to be a {request.role} ({brings}). The fingerprint of its request:")
    typer.echo(f"  {shown(request.fingerprint)}")
    if not yes:
        if not sys.stdin.isatty():
            raise UserError("nobody is there to compare the fingerprint; on a terminal, or with --yes, is right")
        if not typer.confirm("Has this party read the same to you by telephone?"):
            raise UserError(f"{request.party} was not admitted; ask it to send {path.name} again")
    changed = admit(folder, request, _widths(folder), now=datetime.now(UTC))
    typer.echo(f"{request.party} is admitted. Send it {changed.file}; it holds no secret.")
    _tell_others(changed)
    if changed.begun:
        typer.echo("A run is under way and goes on as it was planned: whoever is new takes part from the next one on.")


def remove(
    folder: _Owner,
    party: Annotated[str, typer.Argument(metavar="NAME", help="A guest or host.")],
    debug: _Debug = False,
) -> None:
    """Take a party out of a real federation, run by the owner: hosts that take the new file cut it off."""
    _check_extra()
    from dvfl.federation.custody.admission import remove

    changed = remove(folder, party, _widths(folder))
    typer.echo(f"{party} is taken out. It is cut off at each host that takes {changed.file}.")
    _tell_others(changed)
    if changed.begun:
        typer.echo("A run is under way: it goes on without this party, at the deadlines at the latest.")


def _take(folder: Path, path: Path) -> None:
    from dvfl.federation.custody.joining import take
    from dvfl.federation.party.settings import role_of

    federation = take(folder, path, now=datetime.now(UTC)).federation
    typer.echo(f"{folder}: version {federation.version} of the federation {federation.name}, {federation.hash[:16]}.")
    typer.echo(f"Guests: {', '.join(federation.guests) or 'none'}. Hosts: {', '.join(federation.hosts) or 'none'}.")
    if role_of(folder) == "host":
        typer.echo(f"If it runs, SIGHUP makes it take this. Otherwise: dvfl host {folder}")
    else:
        typer.echo(f"If it runs, restart it to take this. Otherwise: dvfl guest {folder}")


def _tell_others(changed: "Changed") -> None:
    if changed.others:
        typer.echo(f"These have an older federation.toml than version {changed.version}: {', '.join(changed.others)}.")
        typer.echo(f"Send them {changed.file} too, for: dvfl join DIR --admission {changed.file.name}")


def _widths(folder: Path) -> "Widths":
    from dvfl.federation.custody.admission import owned
    from dvfl.orders.preset_settings import widths_of

    federation, owner = owned(folder)
    return widths_of(owner.about.get("preset", ""), federation.training.rule)


def _check_extra() -> None:
    from dvfl.orders.extras import needed

    needed("federation", "nats", "cryptography", "nacl")
