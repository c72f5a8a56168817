"""`dvfl audit` of a party's own folder: what passed its lines, and what others could make of what it sends or has."""

from collections.abc import Sequence
from pathlib import Path

from dvfl.audit.party.party_audit import audited_party
from dvfl.audit.party.party_pages import PartyAudit, markdown, page
from dvfl.audit.party.party_recordings import feedback
from dvfl.audit.readers.readers import Effort
from dvfl.errors import UserError
from dvfl.files import write_json, write_text
from dvfl.orders.auditing import JSON, MARKDOWN, PAGE


def audit_party(folder: Path, out: Path, effort: Effort, known: Sequence[int]) -> Path:
    """Writes audit.json, audit.md and audit.html; gives the page for people.

    `known`: how many rows attackers are to know, where somebody said so.
    """
    figures, about = audited_party(folder, effort, known)
    sent = [f"{entry.kind} from {entry.other}" for entry in feedback(folder)]
    name, unmeasured = folder.resolve().name, about.get("unmeasured", "")
    audit = PartyAudit(name, about["wire"], about.get("guest"), figures, sent, unmeasured)
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / JSON, audit.as_dict())
        write_text(out / MARKDOWN, markdown(audit))
        write_text(out / PAGE, page(audit))
    except OSError as error:
        raise UserError(f"--out {out} cannot be written ({error.strerror}); another place is right") from error
    return out / PAGE
