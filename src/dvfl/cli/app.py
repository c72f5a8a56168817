"""All commands under one name, and how a command that went wrong ends: one line, an exit status, no traceback.

Commands import what they need when they run, so that `dvfl --help` does not wait for PyTorch.
"""

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from dvfl.cli import custody, federation, party
from dvfl.cli.align import EXAMPLE as ALIGN_EXAMPLE
from dvfl.cli.align import align
from dvfl.cli.audit import EXAMPLE as AUDIT_EXAMPLE
from dvfl.cli.audit import audit
from dvfl.cli.doctor import EXAMPLE as DOCTOR_EXAMPLE
from dvfl.cli.doctor import doctor
from dvfl.cli.lab import bench, chaos
from dvfl.cli.predict import EXAMPLE as PREDICT_EXAMPLE
from dvfl.cli.predict import predict
from dvfl.cli.reproduce import EXAMPLE as REPRODUCE_EXAMPLE
from dvfl.cli.reproduce import reproduce
from dvfl.cli.serve import EXAMPLE as SERVE_EXAMPLE
from dvfl.cli.serve import serve
from dvfl.cli.split import EXAMPLE as SPLIT_EXAMPLE
from dvfl.cli.split import split
from dvfl.cli.train import EXAMPLE, train
from dvfl.errors import RunFailed, UserError
from dvfl.runs.interrupts import Interrupted
from dvfl.version import __version__

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 100},
)
app.command(epilog=EXAMPLE)(train)
app.command(epilog=SPLIT_EXAMPLE)(split)
app.command(epilog=REPRODUCE_EXAMPLE)(reproduce)
app.add_typer(bench.app, name="bench")
app.add_typer(federation.app, name="federation")
app.command(epilog=custody.JOIN)(custody.join)
app.command(epilog=custody.ADMIT)(custody.admit)
app.command(epilog=ALIGN_EXAMPLE)(align)
app.command(epilog=PREDICT_EXAMPLE)(predict)
app.command(epilog=SERVE_EXAMPLE)(serve)
app.command(epilog=AUDIT_EXAMPLE)(audit)
app.command(epilog=DOCTOR_EXAMPLE)(doctor)
for role, folder in ((party.guest, "guest-1"), (party.host, "host-1"), (party.owner, "owner")):
    app.command(epilog=f"Example: dvfl {role.__name__} practice/{folder}")(role)
app.command(epilog=chaos.EXAMPLE)(chaos.chaos)


@app.callback(invoke_without_command=True, epilog="Example: dvfl train --dataset digits")
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    """Decoupled vertical federated learning: learn from columns that cannot be pooled."""
    if version:
        typer.echo(f"dvfl {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = typer.main.get_command(app).main(given, prog_name="dvfl", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except (Exception, Interrupted) as error:
        if "--debug" in given:
            traceback.print_exception(error)
        line, status = _explained(error)
        print(f"dvfl: {' '.join(line.split())}", file=sys.stderr)
        return status


def _explained(error: BaseException) -> tuple[str, int]:
    """What the user is told, and the exit status: 2 for what the user can mend, 1 for a failed run."""
    if isinstance(error, UserError):
        return str(error), 2
    if isinstance(error, RunFailed):
        return str(error), 1
    if isinstance(error, Interrupted):
        return str(error), error.status
    if isinstance(error, typer.Abort):
        return "interrupted", 130
    usage = getattr(error, "format_message", None)  # of typer's own errors: an unknown option, a wrong type
    if usage is not None:
        return f"{usage().rstrip('.')}; dvfl --help and dvfl COMMAND --help say what is right", 2
    return f"{type(error).__name__}: {error} (unexpected; --debug shows where)", 1
