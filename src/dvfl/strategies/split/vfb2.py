"""VFB2: the host reads the sum of the guests' encodings, so a lost message is a smaller sum.

Zhang et al., "Secure bilevel asynchronous vertical federated learning with backward updating" (2021). There, several
active parties hold labels, partial sums run over two trees of communication so that no party sees another's part, and
passive parties update from gradients that may be old.

The DVFL paper's variant, simulated here, is a skyline: one active party (m = k = 1), no second communication graph, so
every round is forward to one host and back, and only the first layer of the head is changed, to the width of one
guest's encoding. Guests' encodings must be equally wide. A guest that is not heard adds nothing to the sum and gets no
gradient.
"""

from dvfl.strategies.split.splitnn import SplitNN


class Vfb2(SplitNN):
    """SplitNN that sums where others concatenate; what is missing from a sum is zero."""

    summed = True

    def __init__(self) -> None:
        super().__init__("zeros")
