"""Run as a script: serves the clinic as `dvfl serve` would, with the address and the PEM files in its arguments."""

import asyncio
import sys
from pathlib import Path

from clinic import Clinic

from dvfl.federation.party.lifecycle import run
from dvfl.serving.guarding import Rules
from dvfl.serving.listening import parse_listen, parse_tls
from dvfl.serving.server import serve

if __name__ == "__main__":
    listen = parse_listen(sys.argv[1])
    tls = parse_tls(*(Path(argument) for argument in sys.argv[2:5])) if len(sys.argv) > 2 else None

    async def answering(stop: asyncio.Event) -> None:
        await serve(Clinic(), Rules(local=True), listen, tls, lambda url: print(url, flush=True))

    run(answering)
