"""What `dvfl serve` does once its options are read."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import typer

from dvfl.federation.party.lifecycle import run, say
from dvfl.serving.guarding import Rules
from dvfl.serving.listening import check_reach, parse_listen, parse_tls
from dvfl.serving.server import serve
from dvfl.serving.tokens import TokenFile, new_token

TOKENS = "tokens"


def make_token(path: Path, name: str) -> None:
    """Makes a token and shows it."""
    secret, token = new_token(path, name, datetime.now(UTC))
    typer.echo(secret)
    typer.echo(f"{name} may ask until {token.expires:%Y-%m-%d}; only {path} knows it again, by its hash.", err=True)


def run_server(
    folder: Path,
    listen: str,
    token_file: Path | None,
    pems: tuple[Path | None, Path | None, Path | None],
    rate: float,
    pad: int,
) -> None:
    """Answers until it is asked to leave."""
    address, tls = parse_listen(listen), parse_tls(*pems)
    if token_file is None and (folder / TOKENS).is_file():
        token_file = folder / TOKENS
    tokens = None if token_file is None else TokenFile(token_file)
    check_reach(address, tokens=tokens is not None, tls=tls)
    certificates = tls is not None and tls.clients is not None
    rules = Rules(tokens, certificates, rate, local=tokens is None and not certificates)

    from dvfl.federation.prediction.predicting import opened  # PyTorch: after all that can be refused without it

    async def answering(stop: asyncio.Event) -> None:
        async with opened(folder, pad=pad) as predictor:
            await serve(predictor, rules, address, tls, lambda url: say(f"predictions and the page are at {url}/"))

    run(answering)
