"""The HTTP application over a `Predictor`: predictions, status, events, metrics, and the page."""

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from dvfl.federation.protocol.predictions import NotReady, Prediction, Predictor
from dvfl.serving import schemas
from dvfl.serving.guarding import PREDICT, Guard, Rules
from dvfl.serving.metrics import CONTENT, Metrics, kind
from dvfl.serving.page_files import page_files
from dvfl.serving.watching import Watcher
from dvfl.version import __version__

_AT_ONCE = 32  # predictions that are made at the same time; further ones wait within their own deadlines
_STREAMS = 64  # pages that are fed at the same time
_GRACE_S = 1.0  # beyond a deadline, before a predictor that did not keep it is left alone

_REFUSALS = {
    400: "Not JSON.",
    401: "No token, an unknown one or an expired one.",
    408: "The body did not come.",
    413: "Too large.",
    415: "Not of the type application/json.",
    421: "Asked by a name that is not this machine's, where it alone may ask.",
    422: "JSON of the wrong shape.",
    429: "Too often.",
    500: "A defect of the server.",
    503: "Not trained yet, or too busy.",
    504: "The federation did not keep the deadline.",
}


def create_app(
    predictor: Predictor,
    rules: Rules | None = None,
    *,
    log: Callable[[dict[str, Any]], None],
    leaving: Callable[[], bool] = lambda: False,
) -> FastAPI:
    """Everything behind one address; `log` gets an entry a request, `leaving`: the server is about to go."""
    rules = rules or Rules()
    watcher = Watcher(predictor.status)
    metrics = Metrics(watcher)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with watcher.watching():
            yield

    app = FastAPI(title="dvfl", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    _predictions(app, predictor, metrics)
    _statuses(app, watcher, metrics, leaving)
    _page(app)
    _problems(app)
    app.openapi = lambda: _document(app, rules)  # type: ignore[method-assign]
    paths = frozenset(path for route in app.routes if (path := getattr(route, "path", None)))
    app.add_middleware(Guard, rules=rules, metrics=metrics, paths=paths, log=log)
    return app


def _predictions(app: FastAPI, predictor: Predictor, metrics: Metrics) -> None:
    free = asyncio.Semaphore(_AT_ONCE)

    async def asked(ids: list[str], deadline_s: float) -> list[Prediction]:
        until = time.monotonic() + deadline_s
        try:
            async with asyncio.timeout(deadline_s):
                await free.acquire()
        except TimeoutError:
            raise HTTPException(503, "too many predictions at once; again later", {"retry-after": "1"}) from None
        try:
            left = max(schemas.SHORTEST_S, until - time.monotonic())
            async with asyncio.timeout(left + _GRACE_S):
                return await predictor.predict(ids, left)
        except TimeoutError:
            raise HTTPException(504, f"no answer within {deadline_s:g} s") from None
        except NotReady as error:
            raise HTTPException(503, str(error), {"retry-after": "5"}) from None
        finally:
            free.release()

    @app.post(
        PREDICT,
        responses=_responses(400, 401, 408, 413, 415, 421, 422, 429, 500, 503, 504, ok=schemas.Predictions),
    )
    async def predict(asked_for: schemas.PredictRequest, request: Request) -> Response:
        """Predict ids with whoever is there; one answer for each, in order."""
        found = await asked(asked_for.ids, asked_for.deadline_s)
        metrics.answers(found)
        kinds = [kind(one) for one in found]
        degraded = kinds.count("degraded") + kinds.count("unanswered")
        request.state.counts = {"ids": len(found), "degraded": degraded, "unknown": kinds.count("unknown")}
        unknown = [one.id for one in found if not one.known]
        answers = [schemas.answer(one) for one in found]
        return _json({"predictions": answers, "unknown": unknown, "degraded": degraded})


def _statuses(app: FastAPI, watcher: Watcher, metrics: Metrics, leaving: Callable[[], bool]) -> None:
    streams: set[object] = set()

    @app.get("/v1/status", responses=_responses(401, 421, 429, 500, 503, ok=schemas.Status))
    async def status() -> Response:
        """The federation as the owner sees it: who is up, how far, how fresh."""
        if watcher.latest is None:
            raise HTTPException(503, watcher.trouble or "no status yet; again in a moment", {"retry-after": "1"})
        return _json(watcher.latest)

    @app.get("/v1/events", include_in_schema=False)
    async def events() -> StreamingResponse:
        """Server-sent events for the page: `history` once, then `status` once a second, or sooner when somebody goes.

        It is no part of the OpenAPI document, since it does not end by itself.
        """
        if len(streams) >= _STREAMS:
            raise HTTPException(503, f"{_STREAMS} pages are open already; close one", {"retry-after": "5"})

        async def feed() -> AsyncIterator[str]:
            mark = object()
            streams.add(mark)
            try:
                yield _event("history", watcher.history())
                async for news in watcher.news():
                    yield _event("status", news)
                    if leaving():
                        return
            finally:
                streams.discard(mark)

        return StreamingResponse(feed(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    @app.get("/metrics", responses={**_responses(401, 421, 429, 500), 200: {"content": {"text/plain": {}}}})
    async def prometheus() -> Response:
        """Requests, answers and parties for Prometheus."""
        return Response(metrics.text(), media_type=CONTENT)

    @app.get("/healthz", responses=_responses(421, 500, ok=schemas.Health))
    async def healthz() -> JSONResponse:
        """The process answers; whether it can predict is `ready` in the status."""
        return JSONResponse({"status": "ok"})


def _page(app: FastAPI) -> None:
    def file(content: bytes, media: str) -> Callable[[Request], Response]:
        return lambda request: Response(content, media_type=media, headers={"cache-control": "no-cache"})

    for path, (content, media) in page_files().items():
        app.add_route(path, file(content, media), include_in_schema=False)


def _problems(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def wrong(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            where = f"{first['ctx']['error']} at character {first['loc'][-1]}"
            return JSONResponse({"error": f"the body is not JSON: {where}; {_RIGHT}"}, 400)
        place = ".".join(str(part) for part in first["loc"] if part not in ("body", "float", "int")) or "the body"
        return JSONResponse({"error": f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}; {_RIGHT}"}, 422)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        text = _TEXTS.get(error.status_code, error.detail)
        return JSONResponse({"error": text}, error.status_code, error.headers)


_RIGHT = '{"ids": ["17", "42"], "deadline_s": 2.0} is right'
_PATHS = "POST /v1/predict, GET /v1/status, /metrics, /healthz and / are right, and /openapi.json describes them"
_TEXTS = {  # in place of FastAPI's own
    400: f"the body is not JSON in UTF-8, or nested too deeply; {_RIGHT}",
    404: f"there is nothing here; {_PATHS}",
    405: f"not by this method; {_PATHS}",
}


def _responses(*refusals: int, ok: type | None = None) -> dict[int | str, dict[str, Any]]:
    found: dict[int | str, dict[str, Any]] = {
        status: {"model": schemas.Problem, "description": _REFUSALS[status]} for status in refusals
    }
    for status in (429, 503):
        if status in found:
            found[status]["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return found if ok is None else {**found, 200: {"model": ok}}


def _document(app: FastAPI, rules: Rules) -> dict[str, Any]:
    """The OpenAPI document, with the tokens and certificates that this server asks for."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schemes = {"certificate": {"type": "mutualTLS"}} if rules.certificates else {}
        if rules.tokens is not None:
            schemes["token"] = {"type": "http", "scheme": "bearer"}
        if schemes:
            found["components"]["securitySchemes"] = schemes
        for path, operations in found["paths"].items():
            needed = [scheme for scheme in schemes if scheme == "certificate" or path != "/healthz"]
            for operation in operations.values():
                operation |= {"security": [{scheme: [] for scheme in needed}]} if needed else {}
        app.openapi_schema = found
    return app.openapi_schema


def _event(name: str, value: Mapping[str, Any]) -> str:
    return f"event: {name}\ndata: {_text(value)}\n\n"


def _json(value: Mapping[str, Any]) -> Response:
    return Response(_text(value), media_type="application/json")


def _text(value: Mapping[str, Any]) -> str:
    """As JSON; a large answer is not gone through twice unless it must be."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, separators=(",", ":"))


def _finite(value: Any) -> Any:
    """The same with null for what JSON has no number for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value
