"""Where the server listens and who reaches it there: an address, TLS, and what must be given for either."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from dvfl.errors import UserError


@dataclass(frozen=True)
class Listen:
    """An address to listen on."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def url(self, tls: bool) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if tls else 'http'}://{host}:{self.port}"


@dataclass(frozen=True)
class Tls:
    """The server's certificate, and the authority of its clients' where they need one."""

    certificate: Path
    key: Path
    clients: Path | None = field(default=None)


def parse_listen(text: str) -> Listen:
    """`HOST:PORT`, `[::1]:8080` for an address of IPv6; port 0: a free one."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UserError(f"--listen {text}: HOST:PORT is right, such as 127.0.0.1:8080")
    return Listen(host, int(port))


def parse_tls(certificate: Path | None, key: Path | None, clients: Path | None) -> Tls | None:
    """What the options mean together; None: plain HTTP."""
    if certificate is None and key is None and clients is None:
        return None
    if certificate is None or key is None:
        raise UserError("--tls-cert and --tls-key belong together, and --client-ca needs both")
    for option, path in (("--tls-cert", certificate), ("--tls-key", key), ("--client-ca", clients)):
        if path is not None and not path.is_file():
            raise UserError(f"{option} {path}: no such file; a PEM file is right")
    return Tls(certificate, key, clients)


def check_reach(listen: Listen, *, tokens: bool, tls: Tls | None) -> None:
    """Nobody but this machine may reach a server that asks nobody who they are."""
    if listen.loopback:
        return
    if not tokens and (tls is None or tls.clients is None):
        raise UserError(
            f"--listen {listen.host}:{listen.port} is open to others; --token-file FILE or --client-ca FILE"
            " is needed there, and 127.0.0.1 without them"
        )
    if tls is None:
        raise UserError(
            f"--listen {listen.host}:{listen.port} would show tokens and ids to the network;"
            " --tls-cert and --tls-key are needed there, and 127.0.0.1 behind a proxy"
        )
