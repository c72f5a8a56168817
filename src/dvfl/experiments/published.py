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
