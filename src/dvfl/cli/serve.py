"""`dvfl serve`: predictions over HTTP and the page for people, or a new token for somebody who may ask."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: dvfl serve practice/owner --listen 127.0.0.1:8080"


def serve(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The owner's folder; the owner may run beside.")],
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Others than this machine need TLS and a token or certificate.")
    ] = "127.0.0.1:8080",
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Who may ask; DIR/tokens where that is there.")
    ] = None,
    new_token: Annotated[
        str | None, typer.Option(metavar="NAME", help="Make a token, show it this once, and leave.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="The server's certificate chain, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its private key, PEM.")] = None,
    client_ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Whose certificates clients must have, PEM.")
    ] = None,
    rate: Annotated[float, typer.Option(min=0.1, help="Requests a second for each token, or each address.")] = 50.0,
    pad: Annotated[
        int, typer.Option("--pad", min=0, help="Ask for a multiple of so many rows, so that hosts see not which.")
    ] = 0,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Answer predictions over HTTP (POST /v1/predict) and show the federation as a page (docs/serving.md)."""
    from dvfl.cli.party import checked
    from dvfl.orders.extras import needed
    from dvfl.orders.serving import TOKENS, make_token, run_server

    needed("serve", "fastapi", "uvicorn", "prometheus_client")
    checked(folder)
    if new_token is not None:
        from dvfl.federation.party.settings import check_owner

        check_owner(folder)
        make_token(token_file or folder / TOKENS, new_token)
    else:
        run_server(folder, listen, token_file, (tls_cert, tls_key, client_ca), rate, pad)
