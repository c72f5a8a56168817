"""Published figures, to be set beside ours: Amalanshu, Sirvi and Inouye, *Decoupled Vertical Federated Learning*."""

from typing import TypeAlias

Figure: TypeAlias = tuple[float, float] | None  # mean and twice the standard deviation, percent; None: N/A

_COLUMNS: tuple[tuple[str, float | None], ...] = (
    ("none", None),
    *((kind, up) for kind in ("connection", "guest", "host") for up in (1.0, 0.5, 0.1)),
)


def _row(*figures: Figure) -> dict[tuple[str, float | None], Figure]:
    return dict(zip(_COLUMNS, figures, strict=True))


# Table 1 of the paper: MNIST test accuracy at R_d 0.3, by (kind, R_u).
# The paper's names, in this order: DVFL-NN, VFL (SplitNN), SplitNN-skip, -zeros, -buffer, FedOnce-zeros, VAFL, VFB2.
# fmt: off
TABLE1: dict[str, dict[tuple[str, float | None], Figure]] = {
    "dvfl": _row(
        (97.80, 0.12),
        (97.78, 0.11), (97.78, 0.14), (97.72, 0.17),
        (97.77, 0.11), (97.74, 0.16), (97.58, 0.20),
        (97.81, 0.12), (97.79, 0.14), (97.60, 0.33),
    ),
    "splitnn-wait": _row((97.85, 0.17), None, None, None, None, None, None, None, None, None),
    "splitnn-skip": _row(
        (97.86, 0.16),
        (97.50, 0.54), (96.60, 0.51), (77.21, 5.34),
        (97.44, 0.57), (96.65, 0.45), (80.22, 4.31),
        (97.65, 0.41), (97.59, 0.50), (97.29, 0.89),
    ),
    "splitnn-zeros": _row(
        (97.84, 0.15),
        (97.64, 0.38), (97.53, 0.40), (97.44, 0.36),
        (97.68, 0.40), (97.59, 0.40), (96.95, 0.50),
        (97.68, 0.30), (97.65, 0.37), (97.31, 0.93),
    ),
    "splitnn-buffer": _row(
        (97.85, 0.17),
        (97.66, 0.38), (96.85, 0.74), (93.45, 2.10),
        (97.59, 0.58), (96.76, 0.70), (91.78, 1.70),
        (97.81, 0.32), (97.71, 0.40), (97.69, 0.51),
    ),
    "fedonce-zeros": _row(
        (97.76, 0.20),
        (96.89, 0.29), (96.41, 0.30), (92.80, 0.75),
        (97.47, 0.37), (97.45, 0.31), (97.50, 0.31),
        (97.28, 0.35), (97.34, 0.37), (96.93, 0.51),
    ),
    "vafl": _row(
        (97.57, 0.30),
        (97.17, 0.46), (96.88, 0.36), (96.46, 0.44),
        (97.18, 0.42), (96.99, 0.44), (96.45, 0.51),
        (97.17, 0.48), (96.89, 0.36), (96.42, 0.52),
    ),
    "vfb2": _row(
        (97.72, 0.16),
        (97.43, 0.38), (97.33, 0.41), (96.09, 0.47),
        (97.36, 0.45), (97.24, 0.41), (96.29, 0.42),
        (97.43, 0.49), (97.20, 0.61), (96.79, 0.90),
    ),
}
# fmt: on

# The figure on redundancy: accuracy by fault rate of connections (R_d) and number of hosts.
REDUNDANCY = {
    0.0: {1: 97.74, 2: 97.79, 3: 97.80, 4: 97.82},
    0.3: {1: 97.60, 2: 97.70, 3: 97.74, 4: 97.79},
    0.6: {1: 97.52, 2: 97.65, 3: 97.70, 4: 97.74},
}

# Accuracy by communication period K: the figure and the text of the same section disagree.
COMMUNICATION_FIGURE = {1: 97.80, 5: 97.74, 15: 97.58, 20: 97.46}
COMMUNICATION_TEXT = {1: 97.30, 5: 97.14, 10: 97.08, 20: 96.84}

# The table on limited intersections: accuracy by number of labelled rows.
INTERSECTION = {
    "dvfl": {128: 76.45, 256: 82.51, 512: 85.18, 1024: 88.90},
    "splitnn-wait": {128: 65.07, 256: 77.51, 512: 83.09, 1024: 87.26},
}

# The appendix' table on model width: accuracy by W_h and W_g.
WIDTH = {
    120: {200: 97.43, 240: 97.28, 320: 97.09, 400: 97.34},
    160: {200: 97.60, 240: 97.86, 320: 97.89, 400: 97.69},
    200: {200: 97.81, 240: 97.89, 320: 98.15, 400: 98.30},
}

# The table on more data sets. FedVS's row was read off the graphs of the FedVS paper by the DVFL paper's authors.
DATASETS = {
    "dvfl": {"credit_card": 82.66, "parkinsons": 85.76, "caltech7": 99.00, "handwritten": 98.25},
    "splitnn-wait": {"credit_card": 84.11, "parkinsons": 86.64, "caltech7": 99.66, "handwritten": 98.25},
    "fedvs": {"credit_card": 81.99, "parkinsons": 81.83, "caltech7": 95.98, "handwritten": 98.25},
}

# The appendix on time: DVFL with SimCLR, without hosts, by (kind of fault, R_u).
SIMCLR: dict[tuple[str, float | None], float] = {
    ("none", None): 97.78,
    **{("guest", 1.0): 97.63, ("guest", 0.5): 97.64, ("guest", 0.1): 97.41},
    **{("connection", 1.0): 97.71, ("connection", 0.5): 97.63, ("connection", 0.1): 97.52},
}

# The same appendix: seconds on a laptop's CPU, an epoch or the whole process; None where the paper has a dash.
TIME: dict[str, dict[str, float | None]] = {
    "dvfl": {
        **{"guest forward": 2.144, "guest waiting": 0.0, "guest backward": 0.650},
        **{"host forward": 1.748, "host backward": 0.806, "owner forward": 1.271, "owner backward": 0.564},
        "guest process": 55.883,
    },
    "dvfl, SimCLR": {
        **{"guest forward": 4.872, "guest waiting": 0.0, "guest backward": 10.488},
        **{"host forward": 4.657, "host backward": 20.778, "owner forward": 1.149, "owner backward": 2.430},
        "guest process": 305.596,
    },
    "splitnn-wait": {
        **{"guest forward": 1.830, "guest waiting": 2.180, "guest backward": 0.001},
        **{"host forward": 0.982, "host backward": 0.274, "owner forward": None, "owner backward": None},
        "guest process": 80.220,
    },
}
