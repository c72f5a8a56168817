"""An attack: does the length of a guest's encoding tell rows that were trained on from rows that were not?"""

from dvfl.audit.attacks.registry import Attack
from dvfl.audit.readers.readers import Effort
from dvfl.audit.recordings.measured import Measured, auc
from dvfl.audit.recordings.recording import Recording


def measure(seen: Recording, effort: Effort) -> list[Measured]:
    """AUC of telling them apart by length alone, knowing nothing; of the guest that tells most."""
    members = (seen.guests[0].z.new_zeros(seen.rows.count) < 1).expand(len(seen.seeds), -1).clone()
    members[:, seen.rows.trained :] = False
    found = [auc(members, guest.z.norm(dim=2)) for guest in seen.guests]
    best = max(found, key=lambda values: float(values.mean()))
    figures = tuple(best.tolist())
    what = "whether a row was trained on"
    return [Measured("own_norm", "length", "a host", "encodings of one guest", 0, "nothing", what, "AUC", figures)]


OWN_NORM = Attack(measure)
