"""Whether a party that was killed goes on from where it was, but for what a checkpoint may miss."""

import json
from collections import deque
from contextlib import suppress
from pathlib import Path

CHECKPOINT = 15  # statuses, one in each second of a party's life: it saves every 10 s, and saving takes time


class Resumption:
    """Follows one party through its restarts, by the epochs in its statuses and in its checkpoint."""

    def __init__(self, party: str) -> None:
        self._party = party
        self._epochs: deque[int] = deque(maxlen=CHECKPOINT)  # that the process which runs now has shown
        self._saved: int | None = None  # what the next process must begin with, until it has shown itself
        self.wrong: list[str] = []

    def said(self, epoch: int | None) -> None:
        """The party's process shows a new status; without an epoch while rows are being aligned."""
        if epoch is None:
            return
        if self._saved is not None and epoch < self._saved:
            self.wrong.append(f"{self._party} went on from epoch {epoch}, though {self._saved} had been saved")
        self._saved = None
        self._epochs.append(epoch)

    def starts(self, saved: int) -> None:
        """A new process starts on a checkpoint of this epoch."""
        if len(self._epochs) == CHECKPOINT and saved < self._epochs[0]:
            self.wrong.append(f"{self._party} had saved epoch {saved}, though it had long been in {self._epochs[0]}")
        self._saved = saved
        self._epochs.clear()


def saved_epoch(folder: Path) -> int:
    """The epoch in a party's checkpoint, 0 without one; a host's counts its steps."""
    with suppress(OSError, ValueError, KeyError):
        values = json.loads((folder / "state" / "checkpoint.json").read_text())["values"]
        if "steps" not in values:
            return int(values["epoch"])
        if values["plan"]:
            plan = json.loads(values["plan"])["plan"]
            iterations: int = -(-plan["rows"] // plan["batch"])
            return int(values["steps"]) // iterations
    return 0
