"""A party of a real federation audits itself, from its own folder alone.

What passed its lines is for every role. A guest can attack what it sends besides, the owner what it was given. A host
has nothing to compare encodings with.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from dvfl.audit.party.guest_audit import trained_guest
from dvfl.audit.party.owner_audit import audited_owner
from dvfl.audit.party.party_recordings import wire_summary
from dvfl.audit.readers.readers import Effort
from dvfl.audit.recordings.cases import check_known
from dvfl.audit.recordings.measured import Measured
from dvfl.errors import UserError
from dvfl.federation.party.settings import role_of
from dvfl.simulation.cpu_threads import suited


def audited_party(folder: Path, effort: Effort, known: Sequence[int] = ()) -> tuple[list[Measured], dict[str, Any]]:
    """What attackers find, with controls; every role's lines as plain data, and what figures rest on.

    `known`: how many rows attackers are to know, where somebody said so; of the effort's own, as many as there are.
    """
    about: dict[str, Any] = {"wire": wire_summary(folder)}
    role = role_of(folder)
    if known and role != "guest":
        raise UserError(f"--known: columns are a guest's, and {folder} is no guest's folder; without --known is right")
    with suited(torch.device("cpu"), 0):  # many small products: more threads would wait for each other
        if role == "guest":
            guest = trained_guest(folder)
            check_known(known, guest.rows)
            return guest.attacked(effort), {**about, "guest": guest.about()}
        if role == "owner":
            try:
                return audited_owner(folder, effort), about
            except UserError as error:  # its lines can be told of anyway
                about["unmeasured"] = str(error)
    return [], about
