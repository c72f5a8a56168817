"""uvicorn around the application: an address, TLS, and leaving on a signal."""

import asyncio
import json
import ssl
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI

from dvfl.errors import UserError
from dvfl.federation.protocol.predictions import Predictor
from dvfl.serving.app import create_app
from dvfl.serving.guarding import Rules
from dvfl.serving.listening import Listen, Tls


async def serve(
    predictor: Predictor, rules: Rules, listen: Listen, tls: Tls | None, ready: Callable[[str], None]
) -> None:
    """Answers until SIGTERM or SIGINT; `ready` is told the address once it does."""
    app = create_app(predictor, rules, log=_log, leaving=lambda: server.should_exit)
    if tls is not None:
        _check(tls)
    server = uvicorn.Server(_config(app, listen, tls))
    telling = asyncio.create_task(_told(server, listen, tls is not None, ready))
    try:
        await server.serve()
    except SystemExit:  # uvicorn's way to say that it could not listen
        raise UserError(
            f"{listen.host}:{listen.port} cannot be listened on; another --listen HOST:PORT is right"
        ) from None
    finally:
        telling.cancel()


def _check(tls: Tls) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except OSError as error:
        raise UserError(
            f"{tls.certificate}, {tls.key}: not a certificate and its key ({error}); two PEM files that fit are right"
        ) from error
    try:
        if tls.clients is not None:
            context.load_verify_locations(tls.clients)
    except OSError as error:
        raise UserError(f"{tls.clients}: no certificates ({error}); a PEM file with them is right") from error


async def _told(server: uvicorn.Server, listen: Listen, tls: bool, ready: Callable[[str], None]) -> None:
    while not server.started:
        await asyncio.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    ready(Listen(listen.host, port).url(tls))


def _config(app: FastAPI, listen: Listen, tls: Tls | None) -> uvicorn.Config:
    options: dict[str, Any] = {}
    if tls is not None:
        options = {"ssl_certfile": str(tls.certificate), "ssl_keyfile": str(tls.key)}
        if tls.clients is not None:
            options |= {"ssl_ca_certs": str(tls.clients), "ssl_cert_reqs": ssl.CERT_REQUIRED}
    return uvicorn.Config(
        app,
        host=listen.host,
        port=listen.port,
        log_config=None,
        log_level="critical",  # what it says of requests that are none, or of a taken port, is no line of our log
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the address that counts against the rate is the one that connected
        timeout_keep_alive=15,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=1 << 16,
        **options,
    )


def _log(entry: dict[str, Any]) -> None:
    """One line of JSON."""
    print(json.dumps(entry), file=sys.stderr, flush=True)
