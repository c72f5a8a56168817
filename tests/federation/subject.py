"""What a simulated federation learns: rows, labels and a plan, as small or large as is asked for."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dvfl.federation.owner.owner_training import Labels
from dvfl.federation.protocol.plan import Plan, PlannedGuest
from dvfl.parties.numerics.learner import Adam

_COLUMNS = 5


@dataclass(frozen=True)
class Size:
    """How much there is to learn, and for how long."""

    rows: int = 48
    test_rows: int = 16
    batch: int = 16
    guest_epochs: int = 3
    host_epochs: int = 4
    owner_epochs: int = 20


class Table:
    """A guest's rows in memory."""

    def __init__(self, values: NDArray[np.float32], slots: NDArray[np.int32]) -> None:
        self._values, self.slots = values, slots
        self.rows, self.width = values.shape
        self.schema: dict[str, Any] = {}
        self.identity = hashlib.sha256(values.tobytes() + slots.tobytes()).hexdigest()

    def take(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        return self._values[rows]

    def changed(self, change: Callable[[NDArray[np.float32]], NDArray[np.float32]]) -> "Table":
        """The same rows with other values."""
        return Table(change(self._values), self.slots)


def rows_and_labels(guests: list[str], size: Size) -> tuple[dict[str, tuple[Table, Table]], tuple[Labels, Labels]]:
    """Each guest's rows to train on and others only to encode, and the labels of both. All columns tell the class."""
    rng, train, test = np.random.default_rng(7), size.rows, size.test_rows
    y = rng.integers(2, size=train + test)
    slots, apart = rng.permutation(train).astype(np.int32), (train + rng.permutation(test)).astype(np.int32)
    tables = {}
    for name in guests:
        x = (rng.normal(size=(train + test, _COLUMNS)) + 4 * y[:, None]).astype(np.float32)
        order = rng.permutation(train)
        tables[name] = Table(x[:train][order], slots[order]), Table(x[train:], apart)
    classes = ("no", "yes")
    return tables, (Labels(slots, y[:train], classes), Labels(apart, y[train:], classes))


def training_plan(guests: list[str], hosts: list[str], size: Size, **change: Any) -> Plan:
    values: dict[str, Any] = {
        "run": "0" * 32,
        "federation": "f" * 64,
        "seed": 0,
        "guests": tuple(PlannedGuest(name, _COLUMNS, unit=False) for name in guests),
        "hosts": tuple(hosts),
        "rule": "table",
        "w_g": 4 * len(guests),
        "w_h": 6,
        "guest_hidden": None,
        "guest_objective": "reconstruction",
        "host_model": "autoencoder",
        "host_objective": "reconstruction",
        "temperature": 0.5,
        "adversary": 0.0,
        "batch": size.batch,
        "guest_epochs": size.guest_epochs,
        "period": 1,
        "host_epochs": size.host_epochs,
        "guest_rule": Adam(1e-2),
        "host_rule": Adam(1e-2),
        "guest_schedule": "constant",
        "host_schedule": "constant",
        "guest_noise": 0.1,
        "guest_dropout": 0.1,
        "partial": 0,
        "slots": size.rows,
        "encode_slots": size.test_rows,
        "rows": size.rows,
        "quorum_hosts": 1,
        "quorum_guests": 1,
        "stall_s": 20.0,
        "sweep_deadline_s": 60.0,
        "phase1_deadline_s": 600.0,
    }
    return Plan(**{**values, **change})
