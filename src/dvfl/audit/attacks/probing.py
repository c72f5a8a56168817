"""A host that was given no labels learns them from the guests' encodings and a few labels that it came to know.

Fu et al. (2022) complete a party's own part of a vertical model with a few labels and so infer all others. The host of
a split network is told the labels: there is nothing to find out, and no figure. In DVFL hosts have none; in FedOnce
nobody but the owner gets encodings, and the figure is that of an onlooker without labels.
"""

from dvfl.audit.readers.label_reader import LabelReader, guess
from dvfl.audit.readers.readers import Effort
from dvfl.audit.recordings.measured import Measured
from dvfl.audit.recordings.recording import Recording
from dvfl.strategies import STRATEGIES


def measure(seen: Recording, effort: Effort) -> list[Measured]:
    """How many of the victims' labels it names, by every number of known ones, beside one guess for all."""
    sends = STRATEGIES[seen.strategy].sends
    if sends == "gradients":
        return []
    who = "a host" if sends == "encodings" else "an onlooker without labels"
    nothing = guess(seen)
    found = [
        Measured(
            "probing", "one class", who, "nothing", 0, "nothing", "labels", "balanced accuracy", nothing, "nothing seen"
        )
    ]
    reader = LabelReader(seen, seen.joint(), "probing")
    for count in effort.labels:
        for way, (values, _) in reader.inferred(count, effort).items():
            told = tuple(values.tolist())
            saw, known_of = "encodings of all guests", "labels of each class"
            found.append(Measured("probing", way, who, saw, count, known_of, "labels", "balanced accuracy", told))
    return found
