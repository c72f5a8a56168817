"""Ctrl-C and SIGTERM: the first lets the epoch end, so that a checkpoint can be written; the second stops at once."""

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """The user stopped the command. No `Exception`: nothing on the way may take it for a failure and go on."""

    def __init__(self, message: str, signum: int) -> None:
        super().__init__(message)
        self.signum = signum
        self.status = 128 + signum  # as shells report a process that a signal ended


class Interrupts:
    """While open, takes the signals in; while `patient`, the first is only noted."""

    def __init__(self) -> None:
        self.noted: int | None = None
        self.patient = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():  # Python allows no other to set handlers
            self._before = {signum: signal.signal(signum, self._take) for signum in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    def _take(self, signum: int, frame: FrameType | None) -> None:
        if not self.patient or self.noted is not None:
            raise Interrupted("stopped at once", signum)
        self.noted = signum
        if os.isatty(2):
            os.write(2, b"\ndvfl: this epoch ends and is saved first; once more to stop at once\n")
