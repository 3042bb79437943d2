"""The endpoints of recalls, incident reports and texts that tried to give orders (Core §6.4, §6.8, §6.9)."""

from typing import Annotated, Any

from litestar import Request, Response, Router, get, post
from msgspec import Meta

from events.documents import Document
from hub.api.access import PEOPLE, allowed
from hub.api.answers import answer, document
from hub.incidents import Preview
from hub.parts import Parts
from hub.store.rings import INCIDENTS
from safety.recalls import concerns

_HOUSEHOLD = frozenset({"owner", "person", "agent"})
_RING_MOST = 200


class ReportRequest(Document, frozen=True):
    """Let an incident report go: the report as text, and the digest of what was shown."""

    report: Annotated[str, Meta(max_length=65_536)]
    shown: Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$(?!\n)")]


def routes(parts: Parts) -> Router:
    """The router of precautions."""
    kitchen = parts.kitchen

    @get("/v1/recalls", operation_id="recalls")
    async def recalls(request: Request[Any, Any, Any]) -> Response[bytes]:
        """Every recall known here, each the very document: open, for devices to poll."""
        del request
        entries = sorted(
            kitchen.directory.recalls.values(), key=lambda one: (one.recall.issued_at, one.recall.id)
        )
        return answer(("[" + ",".join(entry.text for entry in entries) + "]").encode())

    @get("/v1/recalls/keys", operation_id="recall_keys")
    async def recall_keys(request: Request[Any, Any, Any]) -> Response[bytes]:
        """The public keys that the recalls known here were verified with: open, for devices."""
        del request
        keys = {entry.key.kid: entry.key for entry in kitchen.directory.recalls.values()}
        return answer({"keys": [keys[kid] for kid in sorted(keys)]})

    def state() -> dict[str, Any]:
        held = kitchen.directory.recipes.values()
        rows = [
            {
                "id": entry.recall.id,
                "issuer": entry.recall.issuer,
                "action": entry.recall.action,
                "severity": entry.recall.severity,
                "reason": entry.recall.reason,
                "issuedAt": entry.recall.issued_at,
                "targets": [target.ref for target in entry.recall.targets],
                "detail": entry.recall.detail,
                "hash": hashed,
                "recipes": [
                    one.recipe.id
                    for one in held
                    if concerns(entry.recall, recipe=one.recipe.id, recipe_hash=one.hash)
                ],
            }
            for hashed, entry in kitchen.directory.recalls.items()
        ]
        rows.sort(key=lambda row: (str(row["issuedAt"]), str(row["id"])))
        catalogues = [
            {
                "url": one.url,
                "askedAt": one.asked_at,
                "answeredAt": one.answered_at,
                "trouble": one.trouble,
                "said": one.said,
                "passedOver": [
                    {"recall": other.what, "reason": other.reason, "detail": other.detail}
                    for other in one.passed_over
                ],
            }
            for one in parts.recalls.catalogues
        ]
        return {"recalls": rows, "catalogues": catalogues}

    @get("/v1/recalls/state", operation_id="recall_state")
    async def recall_state(request: Request[Any, Any, Any]) -> Response[bytes]:
        """The recalls known here in short, the recipes they concern, and how each catalogue stands."""
        await allowed(request, parts, "recall_state", _HOUSEHOLD)
        return answer(state())

    @post("/v1/recalls/poll", status_code=200, operation_id="poll_recalls")
    async def poll_recalls(request: Request[Any, Any, Any]) -> Response[bytes]:
        """Ask every catalogue now."""
        await allowed(request, parts, "poll_recalls", PEOPLE)
        await parts.recalls.poll_now()
        return answer(state())

    @get("/v1/incidents", operation_id="incidents")
    async def incidents(request: Request[Any, Any, Any]) -> Response[bytes]:
        """The incident reports that people let go, and which catalogues have them."""
        await allowed(request, parts, "incidents", PEOPLE)
        return answer({"incidents": await parts.incidents.reports()})

    @post("/v1/incidents/preview", status_code=200, operation_id="preview_incident")
    async def preview_incident(request: Request[Any, Any, Any]) -> Response[bytes]:
        """What a report would tell, before anything leaves the house."""
        await allowed(request, parts, "preview_incident", PEOPLE)
        return answer(_shown(parts.incidents.preview(await request.body())))

    @post("/v1/incidents", status_code=202, operation_id="report_incident")
    async def report_incident(request: Request[Any, Any, Any]) -> Response[bytes]:
        """A person who was shown the report lets it go to the catalogues."""
        actor = await allowed(request, parts, "report_incident", PEOPLE)
        body = await document(request, ReportRequest)
        return answer(_shown(await parts.incidents.queue(body.report.encode(), body.shown, actor.id)), 202)

    @get("/v1/untrusted-texts", operation_id="untrusted_texts")
    async def untrusted_texts(request: Request[Any, Any, Any]) -> Response[bytes]:
        """Texts that tried to give orders: where they stood, and by which sign they were found."""
        await allowed(request, parts, "untrusted_texts", PEOPLE)
        rows, counters = await kitchen.store.read(
            lambda connection: (
                INCIDENTS.newest(connection, kitchen.name, _RING_MOST),
                INCIDENTS.counters(connection, kitchen.name),
            )
        )
        found = [
            {
                "at": row.at,
                "incident": row.reason,
                "source": row.source,
                "detail": row.detail,
                "text": row.body.decode("utf-8", "replace"),
            }
            for row in rows
        ]
        return answer({"counters": counters, "newest": found})

    return Router(
        "/",
        route_handlers=[
            recalls,
            recall_keys,
            recall_state,
            poll_recalls,
            incidents,
            preview_incident,
            report_incident,
            untrusted_texts,
        ],
    )


def _shown(preview: Preview) -> dict[str, Any]:
    return {
        "report": preview.document.decode(),
        "digest": preview.digest,
        "traces": [{"path": one.path, "kind": one.kind, "detail": one.detail} for one in preview.traces],
        "catalogues": list(preview.catalogues),
    }
