"""The Core API of one device over HTTP (Core §7).

Handlers take the raw bytes of a body and give them to our strict reader. A stop is the exception: it needs
neither body, token nor header, so it reads none of them.
"""

import hmac
import logging
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import msgspec
from litestar import Litestar, Request, Response, get, post
from litestar.exceptions import HTTPException

from adapters.documents import ExecutionStatus, PresenceWord
from events import documents
from events.documents import Document, DocumentError
from sim.acceptance import Rejected
from sim.appliance import Appliance
from sim.memory import MemoryUnavailable

MAX_BODY_BYTES: Final = documents.MAX_DOCUMENT_BYTES
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{2,127}")
_SEQ: Final = re.compile(r'"?([0-9]{1,15})"?')

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Access:
    """Who may give the device orders: its hub, by the token of the pairing. None: nobody yet."""

    hub_token: str | None = None

    def admits(self, authorization: str | None) -> bool:
        """Whether an Authorization header carries the hub's token."""
        scheme, _, token = (authorization or "").partition(" ")
        if self.hub_token is None or scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(token.strip().encode(), self.hub_token.encode())


class Resume(Document, frozen=True):
    """Who acted, so that a waiting execution may go on."""

    by: str


def device_api(appliance: Appliance, access: Access) -> Litestar:
    """The API as an ASGI application."""

    def admit(request: Request[Any, Any, Any]) -> None:
        if not access.admits(request.headers.get("Authorization")):
            raise Rejected(401, "not_authorized", "a bearer token of this device's hub is needed")

    @get("/v1/capabilities", sync_to_thread=False)
    def capabilities() -> Response[bytes]:
        return _json(200, appliance.capabilities_document)

    @get("/v1/safety-limits", sync_to_thread=False)
    def safety_limits() -> Response[bytes]:
        return _json(200, appliance.limits_document)

    @get("/health", sync_to_thread=False)
    def health() -> Response[bytes]:
        state = {"status": "ok", "device": appliance.name, "x-aboyeur-boot": appliance.boot}
        return _json(200, msgspec.json.encode(state))

    @post("/v1/executions", status_code=202)
    async def start(request: Request[Any, Any, Any]) -> Response[bytes]:
        admit(request)
        raw = await request.body()
        return _status(202, await appliance.start(raw, request.headers.get("Idempotency-Key")))

    @get("/v1/executions/{ref:str}", sync_to_thread=False)
    def status(request: Request[Any, Any, Any]) -> Response[bytes]:
        admit(request)
        known = appliance.status(_ref(request))
        if known is None:
            raise Rejected(404, "not_found", "neither an execution nor a request of this device")
        return _status(200, known)

    @post("/v1/executions/{ref:str}/stop", status_code=202, sync_to_thread=False)
    def stop(request: Request[Any, Any, Any]) -> Response[bytes]:
        ref = _ref(request)
        if not _ID.fullmatch(ref):
            raise Rejected(404, "not_found", "no execution can be called that; use the device's own control")
        known = appliance.stop(ref)
        if known is None:
            return _json(202, msgspec.json.encode({"x-aboyeur-barred": True, "execution": ref}))
        return _status(202, known)

    @post("/v1/executions/{ref:str}/resume", status_code=202)
    async def resume(request: Request[Any, Any, Any]) -> Response[bytes]:
        admit(request)
        match = request.headers.get("If-Match")
        if match is None:
            raise Rejected(428, "if_match_required", "If-Match names the seq that was seen")
        seq = _SEQ.fullmatch(match.strip())
        if seq is None:
            raise Rejected(412, "precondition_failed", "If-Match is no seq")
        key = request.headers.get("Idempotency-Key", "")
        if not 8 <= len(key) <= 128:
            raise Rejected(400, "idempotency_key_required", "an Idempotency-Key of 8 to 128 characters")
        documents.read(Resume, await request.body())
        return _status(202, appliance.resume(_ref(request), int(seq[1]), key))

    @get("/v1/executions/{ref:str}/log", sync_to_thread=False)
    def log(request: Request[Any, Any, Any]) -> Response[bytes]:
        admit(request)
        raw = appliance.log(_ref(request))
        if raw is None:
            raise Rejected(404, "not_found", "there is a log once the execution is over")
        return _json(200, raw)

    @post("/v1/presence", status_code=204)
    async def presence(request: Request[Any, Any, Any]) -> None:
        admit(request)
        word = documents.read(PresenceWord, await request.body())
        fault = appliance.present(word)
        if fault is not None:
            raise Rejected(409, fault, "this answers no question that is open")

    reads = [capabilities, safety_limits, health, status, log]
    return Litestar(
        route_handlers=[*reads, start, stop, resume, presence],
        exception_handlers={
            Rejected: _rejected,
            DocumentError: _unreadable,
            MemoryUnavailable: _forgetful,
            HTTPException: _http,
            Exception: _broken,
        },
        request_max_body_size=MAX_BODY_BYTES,
        openapi_config=None,
        logging_config=None,
    )


def problem(status: int, title: str, detail: str = "") -> Response[bytes]:
    """An RFC 9457 problem."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail[:500]}
    return Response(msgspec.json.encode(body), status_code=status, media_type="application/problem+json")


def _rejected(_: Request[Any, Any, Any], error: Rejected) -> Response[bytes]:
    return problem(error.status, error.title, error.detail)


def _unreadable(_: Request[Any, Any, Any], error: DocumentError) -> Response[bytes]:
    return problem(400, error.reason, f"{error.path}: {error.detail}")


def _http(_: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    title = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    return problem(error.status_code, title, str(error.detail))


def _forgetful(_: Request[Any, Any, Any], error: MemoryUnavailable) -> Response[bytes]:
    return problem(503, "memory_unavailable", str(error))


def _broken(_: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    _log.error("a request broke the device's API", exc_info=error)
    return problem(500, "internal_error", "a fault of the device; nothing is known of what it did")


def _ref(request: Request[Any, Any, Any]) -> str:
    """The id in the path: of an execution or of a request."""
    return str(request.path_params["ref"])


def _status(code: int, status: ExecutionStatus) -> Response[bytes]:
    return _json(code, documents.write(status))


def _json(code: int, raw: bytes) -> Response[bytes]:
    return Response(raw, status_code=code, media_type="application/json")
