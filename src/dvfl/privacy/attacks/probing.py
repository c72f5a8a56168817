"""A host that was given no labels learns them from the guests' encodings and a few labels that it came to know.

Fu et al. (2022) complete a party's own part of a vertical model with a few labels and so infer all others. The host of
a split network is told the labels: there is nothing to find out, and no figure. In DVFL hosts have none; in FedOnce
nobody but the owner gets encodings, and the figure is that of an onlooker without labels.
"""

from dvfl.privacy.label_reader import WAY, guess, inferred
from dvfl.privacy.measured import Measured
from dvfl.privacy.readers import Effort
from dvfl.privacy.recording import Recording


def measure(seen: Recording, effort: Effort) -> list[Measured]:
    """Accuracy on the victims' labels by every number of known ones, beside that of one guess for all."""
    if seen.strategy != "dvfl" and not seen.strategy.startswith("fedonce"):
        return []
    who = "a host" if seen.strategy == "dvfl" else "an onlooker without labels"
    nothing = Measured(
        "probing", "most common class", who, "nothing", 0, "nothing", "labels", "accuracy", guess(seen), "nothing seen"
    )
    saw, of, joint = "encodings of all guests", "labels of each class", seen.joint()
    return [nothing] + [
        Measured("probing", WAY, who, saw, count, of, "labels", "accuracy", tuple(values.tolist()))
        for count in effort.labels
        for values in [inferred(seen, joint, count, effort, "probing")[0]]
    ]
