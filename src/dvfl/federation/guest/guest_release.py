"""A guest's defence of what it sends: every encoding is shortened to a length, and noise is added that cannot be
averaged out by asking again.

Noise follows from a secret of the guest, its settings, the encoder, the slot and the row's numbers. The same encoding
of the same row therefore leaves with the same noise however often it is sent, to whomever, after a restart too. Where
any of these is another, the noise is independent: were it the same, the difference of two releases would be bare.
"""

import hashlib
import math
import secrets
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from dvfl.errors import UserError
from dvfl.federation.keys.credentials import key_path
from dvfl.federation.party.settings import GuestFile
from dvfl.files import write_bytes, writing
from dvfl.release.flattening import Flattening
from dvfl.release.release import released

_SECRET = 32  # bytes
_KEY = "noise"


@dataclass(frozen=True)
class Release:
    """How long an encoding may be, how much noise it gets, and what the noise follows from."""

    clip: float
    noise: float  # in parts of `clip`
    secret: bytes
    flatten: bool = False  # before it is clipped

    @property
    def name(self) -> str:
        """Of its settings, which is no secret: encodings under other settings are other encodings."""
        return f"clip {self.clip!r} noise {self.noise!r}" + (" flat" if self.flatten else "")

    def leaving(
        self,
        codes: NDArray[np.float32],
        x: NDArray[np.float32],
        slots: NDArray[np.int32],
        encoder: str,
        flat: Flattening | None = None,
    ) -> NDArray[np.float32]:
        """Encodings as they leave, of rows `x` with these slots, by the encoder of that hash; `flat` goes first."""
        drawn = self._drawn(codes.shape[1], x, slots, encoder) if self.noise else np.zeros_like(codes)
        z = torch.from_numpy(codes)
        left = released(z if flat is None else flat(z), self.clip, self.noise, torch.from_numpy(drawn))
        result: NDArray[np.float32] = left.numpy()
        return result

    def _drawn(self, width: int, x: NDArray[np.float32], slots: NDArray[np.int32], encoder: str) -> NDArray[np.float32]:
        """Standard normal numbers (rows, width), which nobody without the secret can tell from random ones."""
        pairs = -(-width // 2)
        begun = hashlib.shake_256(self.secret + f"{self.name} {encoder} ".encode())  # the secret's length is fixed
        streams = []
        for slot, row in zip(slots.astype("<i4"), np.ascontiguousarray(x, "<f4"), strict=True):
            one = begun.copy()
            one.update(slot.tobytes() + row.tobytes())
            streams.append(one.digest(16 * pairs))
        bits = np.frombuffer(b"".join(streams), "<u8").reshape(len(streams), 2, pairs)
        uniform = ((bits >> np.uint64(11)) + 0.5) * 2.0**-53  # never 0, never 1
        radius, angle = np.sqrt(-2 * np.log(uniform[:, 0])), 2 * math.pi * uniform[:, 1]  # Box and Muller
        normal = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], 1)
        return np.ascontiguousarray(normal[:, :width], np.float32)


def guest_release(folder: Path, party: GuestFile) -> Release | None:
    """That of a guest's `party.toml`; its secret is made once and outlives runs. None: encodings leave as they are."""
    if party.clip is None:
        return None
    path = key_path(folder, _KEY)
    if not path.exists():
        with writing(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_bytes(path, secrets.token_bytes(_SECRET), private=True)
    return read_release(folder, party)


def read_release(folder: Path, party: GuestFile) -> Release | None:
    """The same without making anything: before the guest first ran with it, by a secret that is not kept."""
    if party.clip is None:
        return None
    path = key_path(folder, _KEY)
    try:
        secret = path.read_bytes() if path.exists() else secrets.token_bytes(_SECRET)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from None
    if len(secret) != _SECRET:
        raise UserError(f"{path} has {len(secret)} bytes, {_SECRET} are right; restore it, or remove it for a new one")
    return Release(party.clip, party.noise, secret, party.flatten)
