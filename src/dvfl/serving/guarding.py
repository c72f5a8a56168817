"""What every request passes before anything looks into it: who asks, how often, how much; and what is kept of it."""

import asyncio
import ipaddress
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dvfl.serving.metrics import Metrics
from dvfl.serving.rates import Rates
from dvfl.serving.tokens import TokenFile

PREDICT = "/v1/predict"  # the one path whose body is read
BODY_BYTES = 1 << 20
_BODY_S = 10.0  # for all of a body to come
_JSON = "application/json"

_CACHE = b"cache-control"
_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]
_UNCACHED = [*_HEADERS, (_CACHE, b"no-store")]
_SECURE = [(b"strict-transport-security", b"max-age=31536000")]


@dataclass(frozen=True)
class Rules:
    """What is asked of a request."""

    tokens: TokenFile | None = None
    certificates: bool = False  # TLS has asked for a client's certificate; here it is only told of
    rate: float = 50.0  # requests a second for each token, or each address where there are no tokens
    local: bool = False  # this machine alone may ask: then also by no other name, or a web page could by its own


class Refusal(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, error: str, **headers: str) -> None:
        self.status, self.error, self.headers = status, error, headers


class Guard:
    """The outermost of the application; one line a request goes to `log`, and no id with it."""

    def __init__(
        self, app: ASGIApp, rules: Rules, metrics: Metrics, paths: frozenset[str], log: Callable[[dict[str, Any]], None]
    ) -> None:
        self._app, self._rules, self._metrics, self._paths, self._log = app, rules, metrics, paths, log
        self._rates = Rates(rules.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        began, sent = time.perf_counter(), {"status": 0}
        scope.setdefault("state", {})

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent["status"] = message["status"]
                own = list(message.get("headers", ()))
                own += _HEADERS if any(name == _CACHE for name, _ in own) else _UNCACHED
                message = {**message, "headers": own + _SECURE if scope["scheme"] == "https" else own}
            await send(message)

        try:
            await self._app(scope, await self._admitted(scope, receive), answered)
        except Refusal as refusal:
            await _answer(refusal)(scope, receive, answered)
        except Exception as error:
            # Where, but not the message, which may have an id in it.
            self._log({"error": type(error).__name__, "at": "".join(traceback.format_tb(error.__traceback__))})
            if not sent["status"]:
                await _answer(Refusal(500, "a defect of the server; its log says more"))(scope, receive, answered)
        finally:
            self._close(scope, sent["status"], time.perf_counter() - began)

    async def _admitted(self, scope: Scope, receive: Receive) -> Receive:
        """The body, once the request may go on."""
        path, headers = scope["path"], Headers(scope=scope)
        if self._rules.local and not _names_this_machine(headers.get("host", "")):
            raise Refusal(421, "this server answers to localhost and 127.0.0.1 only, not to the name it was asked by")
        if path.startswith("/v1/") or path == "/metrics":
            self._know(scope, headers)
        if (scope["method"], path) != ("POST", PREDICT):
            return receive  # nothing else has a body that is looked at
        if headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            raise Refusal(415, f"a body of the type {_JSON} is right", connection="close")
        return await _whole_body(headers, receive)

    def _know(self, scope: Scope, headers: Headers) -> None:
        """Refuses whoever may not ask, or not so often. Wrong tokens count against their address."""
        who, refusal = f"address {(scope.get('client') or ('unknown',))[0]}", None
        if self._rules.tokens is not None:
            scheme, _, secret = headers.get("authorization", "").partition(" ")
            token = self._rules.tokens.owner_of(secret.strip()) if scheme.lower() == "bearer" else None
            if token is None:
                refusal = "a token is needed: the header 'Authorization: Bearer TOKEN' with one that is known here"
            elif token.expired(datetime.now(UTC)):
                refusal = (
                    f"the token of {token.name} expired on {token.expires:%Y-%m-%d %H:%M} UTC; a new one is needed"
                )
            else:
                who = f"token {token.name}"
                scope["state"]["token"] = token.name
        wait = self._rates.take(who, time.monotonic())
        if wait > 0:
            after = max(1, round(wait + 0.5))
            raise Refusal(
                429, f"more than {self._rules.rate:g} requests a second; again in {after} s", retry_after=str(after)
            )
        if refusal is not None:
            raise Refusal(401, refusal, www_authenticate="Bearer")

    def _close(self, scope: Scope, status: int, seconds: float) -> None:
        path = scope["path"] if scope["path"] in self._paths else "other"
        self._metrics.request(path, status, seconds)
        state = scope["state"]
        entry = {
            "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z",
            "client": (scope.get("client") or ("unknown",))[0],
            "token": state.get("token"),
            "method": scope["method"],
            "path": path,
            "status": status,
            "ms": round(1000 * seconds, 1),
        }
        self._log({**entry, **state.get("counts", {})})


def _answer(refusal: Refusal) -> JSONResponse:
    names = {name.replace("_", "-"): value for name, value in refusal.headers.items()}
    return JSONResponse({"error": refusal.error}, refusal.status, names)


async def _whole_body(headers: Headers, receive: Receive) -> Receive:
    """Reads the body, and no more of it than is allowed."""
    large = Refusal(
        413, f"the body is larger than {BODY_BYTES:,} bytes; cut the request into several", connection="close"
    )
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > BODY_BYTES:
        raise large
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(_BODY_S):
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise Refusal(400, "the request broke off")
                body += message.get("body", b"")
                if len(body) > BODY_BYTES:
                    raise large
                more = message.get("more_body", False)
    except TimeoutError:
        raise Refusal(408, f"the body did not come within {_BODY_S:g} s", connection="close") from None
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": bytes(body), "more_body": False}

    return replayed


@lru_cache(maxsize=64)
def _names_this_machine(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    name = name.removeprefix("[").removesuffix("]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
