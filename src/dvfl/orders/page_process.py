"""The page beside `dvfl federation up`: `dvfl serve` as a process of its own, so that it watches as anybody would."""

import subprocess
import time
from pathlib import Path

from dvfl.errors import RunFailed, UserError
from dvfl.federation.local.supervisor import MEND, Supervisor, launched

_LOG = "serve.txt"
_READY = "predictions and the page are at "
_START_S, _LEAVE_S = 60.0, 10.0


class PageProcess:
    """The server of one federation's page on this machine."""

    def __init__(self, supervisor: Supervisor, port: int) -> None:
        self._owner: Path = supervisor.folder / supervisor.federation.owner
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Starts it; the line that says where it is."""
        self._log.write_bytes(b"")
        process = self._launch()
        until = time.monotonic() + _START_S
        while time.monotonic() < until:
            lines = self._log.read_text(errors="replace").splitlines()
            found = [line for line in lines if _READY in line]
            if found:
                address = found[0].partition(_READY)[2]
                self._port = int(address.rstrip("/").rpartition(":")[2])
                return f"the page is at {address}"
            if process.poll() is not None:
                said = lines[-1].removeprefix("dvfl: ") if lines else "it ended without a word"
                said = said.replace("--listen HOST:PORT", "--page-port PORT")
                raise (UserError if process.returncode == MEND else RunFailed)(f"the page: {said}")
            time.sleep(0.05)
        raise RunFailed(f"the page did not start within {_START_S:g} s; {self._log} says why")

    def watch(self) -> None:
        """Starts it again, in the same place, where it died."""
        if self._process is not None and self._process.poll() not in (None, MEND):
            self._launch()

    def stop(self) -> None:
        """Asks it to leave, and ends it if it does not."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _launch(self) -> subprocess.Popen[bytes]:
        command = launched("serve", str(self._owner), "--listen", f"127.0.0.1:{self._port}")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        return self._process

    @property
    def _log(self) -> Path:
        return self._owner / _LOG
