"""All parties of a federation on this machine, each a process of its own, started again when it dies."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

from dvfl.errors import RunFailed, UserError
from dvfl.federation.local.entrypoints import RESULT
from dvfl.federation.party.settings import FEDERATION, read_federation
from dvfl.federation.transport import launcher

MEND = 2  # the exit status of what the user must mend: starting again would not help
_AGAIN_S = 1.0  # before a process that died is started again
_LEAVE_S = 20.0  # to save and leave


class Supervisor:
    """Starts `dvfl guest`, `dvfl host` and `dvfl owner` on the folders of one federation, and watches them."""

    def __init__(self, folder: Path) -> None:
        if not (folder / FEDERATION).is_file():
            raise UserError(f"{folder}: no {FEDERATION}; a folder made by dvfl federation init is right")
        self.folder, self.federation = folder, read_federation(folder)
        f = self.federation
        self.roles = {**dict.fromkeys(f.hosts, "host"), **dict.fromkeys(f.guests, "guest"), f.owner: "owner"}
        for party in self.roles:
            if not (folder / party).is_dir():
                raise UserError(f"{folder / party}: not there; dvfl federation up needs all parties' folders")
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.restarts = dict.fromkeys(self.roles, 0)
        self._died: dict[str, float] = {}

    @property
    def result(self) -> Path:
        return self.folder / self.federation.owner / RESULT

    def start(self) -> None:
        """Starts all of them."""
        for party in self.roles:
            self.start_party(party)

    def start_party(self, party: str) -> None:
        """Starts one of them; it ends with this process, however that ends."""
        command = launched(self.roles[party], str(self.folder / party))
        self._died.pop(party, None)
        with self._log(party).open("ab") as log:
            # A session of its own, so that Ctrl-C reaches the parties through `stop` and not all at once.
            self.processes[party] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=_environment()
            )

    def watch(self, but: Collection[str] = ()) -> None:
        """Starts again what died, but for those that are meant to be down; RunFailed where that cannot help."""
        for party, process in self.processes.items():
            status = process.poll()
            if status is None or party in but:
                continue
            role = self.roles[party]
            if status == MEND or (role == "owner" and status == 1):
                raise RunFailed(f"{party} ended: {self.last_words(party)}")
            died = self._died.setdefault(party, time.monotonic())
            if time.monotonic() - died >= _AGAIN_S:
                self.restarts[party] += 1
                self.start_party(party)
                return

    def stop(self) -> None:
        """Asks all to save and leave, and ends those that do not."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGCONT)  # one that is held up would not hear it
        until = time.monotonic() + _LEAVE_S
        for process in self.processes.values():
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def last_words(self, party: str) -> str:
        """The last line that a party wrote."""
        lines = self._log(party).read_text(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("dvfl: ") if lines else "without a word"

    def _log(self, party: str) -> Path:
        return self.folder / party / "log.txt"


def launched(*arguments: str) -> list[str]:
    """The `dvfl` command with these arguments, as a process that ends with this one, however that ends."""
    launch = [sys.executable, "-I", "-S", launcher.__file__, str(os.getpid())]
    return [*launch, sys.executable, "-m", "dvfl", *arguments]


def _environment() -> dict[str, str]:
    """One thread a process: many small operations, and as many processes as parties."""
    return {**os.environ, "OMP_NUM_THREADS": "1"}
