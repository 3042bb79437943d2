"""The API as one ASGI application."""

import logging
from typing import Any, Final

from litestar import Litestar, Request, Response
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Scope, Send

from events.documents import MAX_DOCUMENT_BYTES
from hub.api import executions, household, open, precautions
from hub.api.answers import Problem, problem
from hub.orders import OrderError
from hub.parts import Parts
from hub.store.database import StoreFailed

REQUESTS_MOST: Final = 256
_LOG: Final = logging.getLogger("aboyeur.api")


def build(parts: Parts) -> ASGIApp:
    """The application over the parts of a running hub."""
    return Bounded(_routed(parts), REQUESTS_MOST)


class Bounded:
    """Serves at most so many requests at once, and any number of stops (DESIGN §4: no queue holds one up)."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._served = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["path"].rstrip("/").endswith("/stop"):
            await self._app(scope, receive, send)
            return
        if self._served >= self._most:
            busy = Problem(503, "busy", f"{self._most} requests are being served already: ask again")
            answer: Any = problem(busy).to_asgi_response(None, Request(scope))
            await answer(scope, receive, send)
            return
        self._served += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._served -= 1


def _routed(parts: Parts) -> Litestar:
    return Litestar(
        route_handlers=[
            open.routes(parts),
            executions.routes(parts),
            household.routes(parts),
            precautions.routes(parts),
        ],
        exception_handlers={
            Problem: lambda _request, error: problem(error),
            OrderError: _order,
            StoreFailed: _store_failed,
            HTTPException: _http,
            Exception: _unexpected,
        },
        request_max_body_size=MAX_DOCUMENT_BYTES,
        openapi_config=None,
        logging_config=None,
    )


def _order(_request: Request[Any, Any, Any], error: OrderError) -> Response[bytes]:
    more = {} if error.seq is None else {"seq": error.seq}
    return problem(Problem(error.status, error.title, error.detail, **more))


def _store_failed(_request: Request[Any, Any, Any], error: StoreFailed) -> Response[bytes]:
    return problem(
        Problem(503, "store_failed", f"nothing was accepted, ask again with the same key: {error.detail}")
    )


def _http(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    if error.status_code == 404 and request.url.path.rstrip("/").endswith("/stop"):
        return problem(executions.unknown_to_stop("no execution can be called that"))
    titles = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}
    title = titles.get(error.status_code, "invalid" if error.status_code < 500 else "internal")
    return problem(Problem(error.status_code, title, error.detail or "bad request"), headers=error.headers)


def _unexpected(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem(Problem(500, "internal", "the hub failed at this request; its log says how"))
