"""A small catalogue: it publishes a key and recalls, and takes incident reports (Core §7, catalogue side).

For tests and for trying out; a real one would let only its editors recall anything.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import msgspec
from litestar import Litestar, Request, Response, get, post

from events import documents
from events.documents import DocumentError
from events.seams import Clock
from events.times import format_date_time
from events.versions import speaks
from hub.http_server import serving
from mandates.documents import KeyRecord
from mandates.keys import PrivateKey
from mandates.signature import sign_document
from safety.feed_documents import IncidentReport
from sim.loopback import listen

HOST: Final = "127.0.0.1"


class Catalogue:
    """What a catalogue at `base` publishes, and what it was told.

    Attributes:
        base: its address, which is also who it says it is.
        feed: the recalls as it gives them now.
        reports: the incident reports it took, by Idempotency-Key.
        answers: statuses to answer the next calls of a path with, instead of the usual.
        asked: the paths that were asked for, in order.
    """

    def __init__(
        self, base: str, clock: Clock, seed: bytes = b"catalogue".ljust(32, b"."), kid: str = ""
    ) -> None:
        self.base = base
        self._clock = clock
        self.key = PrivateKey.from_seed(seed, kid=kid or f"{base}#recalls-1")
        self.record: KeyRecord = self.key.record(actor=base, valid_from=clock.wall() - timedelta(days=30))
        self.published: list[KeyRecord] = [self.record]
        self.feed: list[Any] = []
        self.reports: dict[str, bytes] = {}
        self.answers: dict[str, list[int]] = {}
        self.asked: list[str] = []

    def recall(self, name: str, *targets: dict[str, Any], **members: Any) -> dict[str, Any]:
        """A recall by this catalogue, signed; it is not in the feed yet."""
        plain = {
            "core": "0.2.0",
            "kind": "Recall",
            "id": name,
            "issuedAt": format_date_time(self._clock.wall()),
            "issuer": self.base.partition("://")[2],
            "targets": list(targets),
            "severity": "high",
            "reason": "food_safety",
            "action": "block",
            **members,
        }
        return sign_document(plain, self.key, signed_at=self._clock.wall())

    def app(self) -> Litestar:
        """Its API."""

        @get("/.well-known/cookwala.json", sync_to_thread=False)
        def well_known() -> Response[bytes]:
            return self._answer("/.well-known/cookwala.json", {"keys": self.published})

        @get("/v1/recalls", sync_to_thread=False)
        def recalls() -> Response[bytes]:
            return self._answer("/v1/recalls", self.feed)

        @post("/v1/incidents", status_code=202)
        async def incidents(request: Request[Any, Any, Any]) -> Response[bytes]:
            raw = await request.body()
            answer = self._answer("/v1/incidents", {"received": True}, 202)
            key = request.headers.get("Idempotency-Key", "")
            try:
                report = documents.read(IncidentReport, raw)
            except DocumentError as error:
                return Response(str(error).encode(), status_code=400, media_type="text/plain")
            if not speaks(report.core):
                return Response(b"unsupported_version", status_code=422, media_type="text/plain")
            if answer.status_code == 202:
                self.reports.setdefault(key, raw)
            return answer

        return Litestar(route_handlers=[well_known, recalls, incidents], openapi_config=None)

    def _answer(self, path: str, value: Any, status: int = 200) -> Response[bytes]:
        self.asked.append(path)
        waiting = self.answers.get(path)
        if waiting:
            return Response(b"{}", status_code=waiting.pop(0), media_type="application/json")
        content = value if isinstance(value, bytes) else msgspec.json.encode(value)
        return Response(content, status_code=status, media_type="application/json")


@asynccontextmanager
async def running_catalogue(clock: Clock, port: int = 0) -> AsyncGenerator[Catalogue]:
    """A catalogue on this machine, at a free port unless one is named."""
    sock = listen(HOST, port)
    catalogue = Catalogue(f"http://{HOST}:{sock.getsockname()[1]}", clock)
    async with serving(catalogue.app(), sock):
        yield catalogue
