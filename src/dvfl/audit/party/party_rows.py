"""Which of a party's rows serve for what when it audits itself."""

import numpy as np
from numpy.typing import NDArray

from dvfl.audit.recordings.cases import LEAST, POOL, TESTS, VICTIMS
from dvfl.audit.recordings.recording import Rows
from dvfl.errors import UserError
from dvfl.parties.numerics.randomness import numpy_generator


def chosen_rows(
    trained: int, tested: int, name: str, *, stand_ins: bool
) -> tuple[Rows, NDArray[np.int64], NDArray[np.int64]]:
    """How many rows serve for what, and numbers of training and of test rows.

    Four fifths may be known, a fifth never is. With `stand_ins`, a tenth of them takes the place of test rows where
    there are none.
    """
    if trained < LEAST:
        raise UserError(f"{name} has {trained} rows; for an audit {LEAST} at least are right")
    draw = numpy_generator(0, "audit", name)
    stand_in = min(TESTS, trained // 10) if stand_ins and not tested else 0
    victims = min(VICTIMS, (trained - stand_in) // 5)
    pool = min(POOL, trained - stand_in - victims)
    rows = Rows(pool, victims, min(TESTS, tested) or stand_in)
    train = draw.permutation(trained)[: rows.trained + stand_in]
    return rows, train, draw.permutation(tested)[: rows.tests if tested else 0]
