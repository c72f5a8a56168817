"""A file system of a few megabytes that a test can fill, make read-only and mend."""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

# What a party says of them, after the name of the file.
_KEPT = "what was saved before is kept"
FULL = rf"cannot be written \(No space left on device\); {_KEPT}: make room and start again"
READ_ONLY = rf"cannot be written \(Read-only file system\); {_KEPT}: make it writable and start again"

_HOLD = 'mount -t tmpfs -o "size=$1" small "$2" && echo mounted && exec cat'


class SmallDisk:
    """Mounted on a folder, for the processes that are started in its namespace; the test sees it at `root`."""

    def __init__(self, holder: "subprocess.Popen[str]", folder: Path) -> None:
        self._folder = folder
        self._inside = ["nsenter", "--target", str(holder.pid), "--user", "--mount", "--preserve-credentials"]
        self.root = Path(f"/proc/{holder.pid}/root{folder}")
        self._ballast = self.root / "ballast"

    def start(self, command: Sequence[str], **options: Any) -> "subprocess.Popen[str]":
        """A process that sees the disk on its folder."""
        return subprocess.Popen([*self._inside, *command], text=True, **options)

    def fill(self, leave: int = 0) -> None:
        """Until so many bytes are left."""
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        with self._ballast.open("ab") as file:
            file.truncate(file.tell() - leave)

    def empty(self) -> None:
        """Gives all of that back."""
        self._ballast.unlink()

    def remount(self, how: Literal["ro", "rw"]) -> bool:
        """Makes it read-only or writable; False where somebody has a file open to write it."""
        command = [*self._inside, "mount", "-o", f"remount,bind,{how}", str(self._folder)]
        return subprocess.run(command, capture_output=True).returncode == 0


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Skips the test where the kernel does not let this user mount in a namespace of his own."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _HOLD, "sh", f"{megabytes}m", str(folder)]
    try:
        holder = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except FileNotFoundError:
        pytest.skip("unshare is not here, so no small disk can be mounted")
    with holder:
        assert holder.stdin is not None and holder.stdout is not None and holder.stderr is not None
        try:
            if holder.stdout.readline() != "mounted\n":
                pytest.skip(f"no small disk can be mounted here: {holder.stderr.read().strip()}")
            yield SmallDisk(holder, folder)
        finally:
            holder.stdin.close()  # the holder ends, and the disk with the last process that sees it
