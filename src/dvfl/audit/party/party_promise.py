"""What a real guest's noise promises, before it has sent anything."""

from pathlib import Path

from dvfl.audit.recordings.releases import releases
from dvfl.errors import UserError
from dvfl.federation.party.settings import read_federation, read_guest, role_of
from dvfl.release.accounting import promise


def party_promise(folder: Path) -> str | None:
    """By the settings in a guest's folder, which next run; None for other roles, without noise, or unreadable files."""
    try:
        if role_of(folder) != "guest":
            return None
        federation = read_federation(folder)
        noise, training = read_guest(folder, federation).noise, federation.training
    except UserError:  # which the doctor has told of
        return None
    return promise(noise, releases(training.guest_epochs, training.period)) if noise else None
