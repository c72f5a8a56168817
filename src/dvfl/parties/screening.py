"""Corrupt guests: what a guest sends for a batch of rows against what all guests sent for training rows.

A guest that is suspected counts as absent. Three things are looked at: how far the batch's mean is from that of
training rows, how large its values are, and how far they are from what the other guests' encodings predict. Each is
compared with batches of training rows, so that one batch in 200 raises an alarm when all is well.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dvfl.parties.cross_prediction import CLIP, Joint, fit_joint, standardised_rows
from dvfl.parties.numerics.randomness import numpy_generator

ALARMS = 1 / 200  # of batches in which nothing is wrong, for all guests together
_ALARMS_KEPT = 1 / 300  # of those that thresholds are made from: new rows go beyond the extremes of a few thousand
MOST = 64  # rows of a batch that count: a larger one is judged as if it had so many, and alarms less
SAMPLE = 4096  # training rows that are kept, to know what is usual for any guests and any size of batch
_BATCHES = 4000  # of them for one threshold
_USUAL = 0.99  # the quantile that brings different measures to one scale
# Rows of a request often have something in common (a writer, a day) that does not average out, unlike the luck of rows
# drawn at random. So much of it is allowed for, in deviations of a row: of a batch's mean, of how large its values are,
# and of what other guests leave over. Chosen so that no batch of 64 held-out training rows of MNIST in the file's order
# goes beyond (docs/tuning.md).
_IN_COMMON = (0.7, 1.9, 0.75)
_PLAIN = 0.5  # a score that honest guests have often: what is below tells nothing of who is wrong
_AT_ONCE = 100
_LEAST = 64  # kept rows that guests must have in common to be compared

Floats = NDArray[np.float32]
Exact = NDArray[np.float64]
Marks = NDArray[np.bool_]
Sent = Sequence[Floats | None]  # each guest's encodings of a batch, (rows, width); None: it is absent altogether


@dataclass(frozen=True)
class _Comparison:
    """A guest's rows beside some others'."""

    columns: slice
    predictor: Exact | None  # None: there is nobody to predict it from
    variance: Exact  # of what the prediction leaves over, by dimension
    centre: tuple[float, float] = (0.0, 0.0)  # of the two measures over kept rows
    spread: tuple[float, float] = (1.0, 1.0)

    def of(self, z: Floats) -> Exact:
        """How large each row's values are, and how far from the prediction, in deviations from the usual: (2, rows)."""
        own = z[:, self.columns].astype(np.float64)
        measures = [np.square(own).mean(1), np.zeros(len(z))]
        if self.predictor is not None:
            left = np.clip((own - z @ self.predictor) / np.sqrt(self.variance), -CLIP, CLIP)
            measures[1] = np.square(left).mean(1)
        made: Exact = (np.stack(measures) - np.array(self.centre)[:, None]) / np.array(self.spread)[:, None]
        return made


@dataclass
class Screen:
    """What is usual. A guest whose score for a batch is above 1 looks wrong."""

    joint: Joint
    sample: Floats  # (rows, all widths): kept training rows, standardised
    held: Marks  # (rows, guests): who has them
    _compared: dict[tuple[int, tuple[int, ...]], _Comparison] = field(default_factory=dict, repr=False, compare=False)
    _limits: dict[tuple[tuple[int, ...], int], Exact] = field(default_factory=dict, repr=False, compare=False)

    def suspects(self, sent: Sent, present: Marks | None = None) -> list[int]:
        """The guests, by number, whose encodings of a batch cannot be right.

        One that is wrong makes others look wrong, which are predicted from it. So of those that look wrong the one is
        named without which the rest looks best, and the rest is looked at again. Where two contradict each other and
        nobody else is there, it is the one that looks worse.
        """
        there = self._there(sent, present)
        found: list[int] = []
        while True:
            scores = self.scores(sent, there)
            wrong = [guest for guest, score in enumerate(scores) if score > 1]
            if not wrong:
                return sorted(found)
            rest = [_most(self.scores(sent, _without(there, guest))) for guest in wrong]
            best = min(range(len(wrong)), key=lambda n: (max(_PLAIN, rest[n]), -scores[wrong[n]]))
            found.append(wrong[best])
            there = _without(there, wrong[best])

    def scores(self, sent: Sent, present: Marks | None = None) -> Exact:
        """How wrong each guest's part of a batch looks: (guests,).

        Infinite where it is no finite numbers of the right shape; no number where it is absent. `present` (rows,
        guests) says who has which row.
        """
        there, made = self._there(sent, present), np.full(len(self.joint.widths), np.nan)
        for guest, values in enumerate(sent):
            if there[:, guest].any() and not self._sound(values, guest, there):
                made[guest], there[:, guest] = np.inf, False
        z, guests = standardised_rows(self.joint, sent, there), tuple(np.flatnonzero(there.any(0)).tolist())
        measures = self._measures(z, there)
        for guest in guests:
            own, count = there[:, guest], int(there[:, guest].sum())
            batch = _batch(z[own, self.joint.columns[guest]], measures[:, own, guest])
            made[guest] = (batch / self._limit(guests, count)[guest]).max()
        return made

    def row_scores(self, sent: Sent, present: Marks | None = None) -> Exact:
        """The same for each row by itself: (rows, guests)."""
        there = self._there(sent, present)
        z, guests = standardised_rows(self.joint, sent, there), tuple(np.flatnonzero(there.any(0)).tolist())
        measures, made = self._measures(z, there), np.full(there.shape, np.nan)
        for guest in guests:
            own = there[:, guest]
            rows = _batch(z[own, self.joint.columns[guest]][:, None], measures[:, own, guest][..., None])
            made[own, guest] = (rows / self._limit(guests, 1)[guest][:, None]).max(0)
        return made

    def prepare(self) -> None:
        """Makes the thresholds for all guests together; those for fewer are made when they are first needed."""
        everybody, size = tuple(np.flatnonzero(self.held.any(0)).tolist()), 1
        while everybody and size <= MOST:
            self._limit(everybody, size)
            size *= 2

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Plain arrays."""
        return {**self.joint.state(), "sample": self.sample, "held": self.held}

    @classmethod
    def from_state(cls, state: dict[str, NDArray[np.generic]]) -> "Screen":
        """Takes back what `state` gave."""
        return cls(Joint.from_state(state), state["sample"].astype(np.float32), state["held"].astype(np.bool_))

    def _there(self, sent: Sent, present: Marks | None) -> Marks:
        lengths = [len(values) for values in sent if values is not None]
        there = np.ones((max(lengths, default=0), len(sent)), bool) if present is None else present.copy()
        there[:, [values is None for values in sent]] = False
        return there

    def _sound(self, values: Floats | None, guest: int, there: Marks) -> bool:
        shape = (len(there), self.joint.widths[guest])
        return values is not None and values.shape == shape and bool(np.isfinite(values[there[:, guest]]).all())

    def _measures(self, z: Floats, there: Marks) -> Exact:
        """Of every row that a guest has, beside the others that have it: (2, rows, guests)."""
        made = np.zeros((2, *there.shape))
        for pattern in np.unique(there, axis=0):
            rows, guests = (there == pattern).all(1), tuple(np.flatnonzero(pattern).tolist())
            for guest in guests:
                made[:, rows, guest] = self._comparison(guest, guests).of(z[rows])
        return made

    def _comparison(self, guest: int, guests: tuple[int, ...]) -> _Comparison:
        """A guest among some, itself one of them."""
        key = guest, guests
        if key not in self._compared:
            rows = self.sample[self._kept(guest, guests)]
            own, predictor = self.joint.columns[guest], None
            variance = np.ones(self.joint.widths[guest])
            if len(guests) > 1 and self._in_common(guests).sum() >= _LEAST:
                predictor = self.joint.predictor(guest, [other for other in guests if other != guest])
                variance = np.square(rows[:, own] - rows @ predictor).mean(0)
                variance = np.where(variance > 1e-6, variance, 1.0)
            plain = _Comparison(own, predictor, variance)
            if len(rows):
                usual = plain.of(rows)
                spread = np.where(usual.std(1) > 1e-9, usual.std(1), 1.0)
                plain = _Comparison(own, predictor, variance, tuple(usual.mean(1)), tuple(spread))
            self._compared[key] = plain
        return self._compared[key]

    def _limit(self, guests: tuple[int, ...], rows: int) -> Exact:
        """What the measures of a batch may be, (all guests, 3): of so many rows, or of the next lower power of two."""
        size = 1 << (min(rows, MOST).bit_length() - 1)
        if (guests, size) not in self._limits:
            made = np.full((len(self.joint.widths), 3), np.inf)
            usual = np.stack([self._usual(guest, guests, size) for guest in guests])  # (guests, 3, batches)
            if usual.shape[2]:
                scale = np.maximum(np.quantile(usual, _USUAL, 2, keepdims=True), 1e-9)
                most = np.quantile((usual / scale).max((0, 1)), 1 - _ALARMS_KEPT)
                made[list(guests)] = _with_common(scale[..., 0] * max(1.0, float(most)), size)
            self._limits[guests, size] = made
        return self._limits[guests, size]

    def _usual(self, guest: int, guests: tuple[int, ...], size: int) -> Exact:
        """The measures of batches of kept rows: (3, batches). All guests have the same rows in a batch."""
        rows = self._kept(guest, guests)
        z, measures = (
            self.sample[rows, self.joint.columns[guest]],
            self._comparison(guest, guests).of(self.sample[rows]),
        )
        draw, made, count = numpy_generator(0, "usual batches", size), [], len(z)
        for _ in range(_BATCHES // _AT_ONCE if count else 0):
            order = draw.integers(count, size=(_AT_ONCE, size))
            made.append(_batch(z[order], measures[:, order]))
        # What is usual was itself learned from so many rows: new batches are that much farther from it.
        farther = 1 + size / max(count, 1)
        return np.concatenate(made, 1) * [[farther], [farther**0.5], [farther**0.5]] if made else np.empty((3, 0))

    def _in_common(self, guests: tuple[int, ...]) -> Marks:
        return np.asarray(self.held[:, list(guests)].all(1))

    def _kept(self, guest: int, guests: tuple[int, ...]) -> Marks:
        """The kept rows that all of some guests have, or this one where those are too few."""
        common = self._in_common(guests)
        own: Marks = self.held[:, guest]
        return common if common.sum() >= _LEAST else own


def fit_screen(encodings: Sequence[Floats], present: Marks | None = None, seed: int = 0) -> Screen:
    """From the encodings of training rows, (rows, width) a guest; `present` (rows, guests) says who has them."""
    rows = len(encodings[0])
    there = np.ones((rows, len(encodings)), bool) if present is None else present
    # A quarter is kept, or half where a quarter is little: thresholds need rows that the regression has not met.
    count = min(SAMPLE, max(rows // 4, min(rows // 2, 4 * MOST)))
    kept = np.zeros(rows, bool)
    kept[numpy_generator(seed, "screen").permutation(rows)[:count]] = True
    joint = fit_joint(encodings, there, kept)
    own = [values[kept] for values in encodings]
    return Screen(joint, standardised_rows(joint, own, there[kept]), there[kept])


def _batch(z: Floats, measures: Exact) -> Exact:
    """The measures of batches: of their mean (.., rows, width), and of their rows' two (2, .., rows): (3, ..)."""
    rows = min(z.shape[-2], MOST)
    shift = rows * np.square(z.mean(-2, dtype=np.float64)).mean(-1)
    size, left = np.sqrt(rows) * measures.mean(-1)
    return np.stack([shift, np.abs(size), left])


def _with_common(limits: Exact, rows: int) -> Exact:
    """Limits (guests, 3) for rows drawn at random, as they are where rows have something in common."""
    mean, size, left = limits.T
    far, large, over = np.sqrt(rows) * np.array(_IN_COMMON)
    return np.stack([(np.sqrt(mean) + far) ** 2, size + large, left + over], 1)  # the first is a square


def _without(there: Marks, guest: int) -> Marks:
    made = there.copy()
    made[:, guest] = False
    return made


def _most(scores: Exact) -> float:
    return float(np.nanmax(scores)) if not np.isnan(scores).all() else 0.0
