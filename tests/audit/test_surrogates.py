"""An attacker's own autoencoder."""

from dataclasses import replace

from made_up import linear, made_up, noise

from dvfl.audit.readers.alike import alike, explained
from dvfl.audit.readers.readers import SMALL
from dvfl.audit.readers.surrogates import Surrogate

EFFORT = replace(SMALL, hidden=(64,), rates=(5e-3,), steps=400)


def test_encodings_that_can_be_translated_are_decoded() -> None:
    shares = {}
    for encode in (linear, noise):
        seen = made_up(encode, columns=(6, 6))
        group = alike(seen)[0]
        surrogate = Surrogate.learned(group.x[:, seen.rows.test], 8, EFFORT)
        shares[encode] = explained(seen, seen.known(60, "a test"), surrogate.guess)[0]
    assert shares[linear] > 0.8
    assert shares[noise] < 0.05
