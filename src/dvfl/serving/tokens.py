"""Who may ask: tokens in a file, one a line as `name sha256 expires`; the tokens themselves are kept nowhere."""

import contextlib
import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dvfl.errors import UserError
from dvfl.files import write_bytes, writing

LIFE = timedelta(days=90)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_EXPECTED = "'name sha256 expires', such as 'ward-3 5e88.. 2027-01-31T00:00:00Z', is right"


@dataclass(frozen=True)
class Token:
    """One that was given out."""

    name: str
    digest: str  # SHA-256 of it, in hexadecimal
    expires: datetime

    def expired(self, now: datetime) -> bool:
        return now >= self.expires

    def __str__(self) -> str:
        return f"{self.name} {self.digest} {self.expires:%Y-%m-%dT%H:%M:%SZ}"


class TokenFile:
    """The tokens of a file as it is now: a line taken out or put in counts from the next request on."""

    def __init__(self, path: Path) -> None:
        self._path, self._seen = path, self._stamp(path)
        self._tokens = read_tokens(path)

    def owner_of(self, secret: str) -> Token | None:
        """Whose token it is."""
        seen = self._stamp(self._path)
        if seen is None:
            self._tokens, self._seen = (), None
        elif seen != self._seen:
            with contextlib.suppress(UserError):  # half edited: the ones from before count until it can be read again
                self._tokens = read_tokens(self._path)
                self._seen = seen
        return owner_of(secret, self._tokens)

    @staticmethod
    def _stamp(path: Path) -> tuple[int, int] | None:
        with contextlib.suppress(OSError):
            found = path.stat()
            return found.st_mtime_ns, found.st_size
        return None


def read_tokens(path: Path) -> tuple[Token, ...]:
    """All that the file names; empty lines and those that begin with # do not count."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no text in UTF-8"
        raise UserError(
            f"{path}: cannot be read ({why}); a file that dvfl serve --new-token NAME makes is right"
        ) from error
    tokens = [
        _token(line, f"{path}, line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    names = [token.name for token in tokens]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise UserError(f"{path}: {', '.join(doubled)} more than once; one line for each name is right")
    return tuple(tokens)


def new_token(path: Path, name: str, now: datetime, life: timedelta = LIFE) -> tuple[str, Token]:
    """Makes a token, adds what is needed to know it again to the file, and gives it away this once."""
    if not _NAME.fullmatch(name):
        raise UserError(f"--new-token {name!r}: letters, digits, '.', '_' and '-', 64 at most, are right")
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder {path.parent} is not there")
    if path.exists() and any(token.name == name for token in read_tokens(path)):
        raise UserError(f"{path}: {name} has a token; another name, or its line taken out first, is right")
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    secret = secrets.token_urlsafe(32)
    token = Token(name, _digest(secret), (now + life).replace(microsecond=0))
    ended = before if not before or before.endswith("\n") else f"{before}\n"
    with writing(path):
        write_bytes(path, f"{ended}{token}\n".encode(), private=True)
    return secret, token


def owner_of(secret: str, tokens: Sequence[Token]) -> Token | None:
    """Whose token it is. Every line is compared, each in constant time, so that time tells nothing of them."""
    digest, found = _digest(secret), None
    for token in tokens:
        if hmac.compare_digest(token.digest, digest):
            found = token
    return found


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _token(line: str, where: str) -> Token:
    parts = line.split()
    if len(parts) != 3 or not _NAME.fullmatch(parts[0]) or not _DIGEST.fullmatch(parts[1]):
        raise UserError(f"{where}: {_EXPECTED}")
    try:
        expires = datetime.fromisoformat(parts[2])
    except ValueError:
        raise UserError(f"{where}: {parts[2]} is no time; {_EXPECTED}") from None
    if expires.tzinfo is None:
        raise UserError(f"{where}: {parts[2]} has no time zone; {_EXPECTED}")
    return Token(parts[0], parts[1], expires.astimezone(UTC))
