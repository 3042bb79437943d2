"""Core's endpoints of executions (Core §7; rulings X4-X7)."""

import logging
import re
from typing import Any, Final

import anyio
from litestar import Request, Response, Router, get, post
from litestar.exceptions import HTTPException
from litestar.params import FromPath

from events.canonical import digest
from events.documents import DocumentError, parse
from hub.api.access import PEOPLE, allowed
from hub.api.answers import Problem, answer
from hub.executions.model import Execution
from hub.executions.view import ExecutionList, HubStatus, view
from hub.parts import Parts
from hub.projections.executions import read_execution

_READERS = frozenset({"owner", "person", "agent"})
_LISTED_MOST: Final = 200
_STOP_BODY_MOST: Final = 4096
_STOP_BODY_WITHIN_S: Final = 0.2
_SHORT: Final = re.compile(r"[0-9]{1,4}")
_LOG: Final = logging.getLogger("aboyeur.api")
_SEQ: Final = re.compile(r'([0-9]{1,15})|"([0-9]{1,15})"')


def routes(parts: Parts) -> Router:
    """The router of executions."""
    kitchen = parts.kitchen

    def shown(execution: Execution) -> HubStatus:
        attempt = execution.attempt
        silent = attempt is not None and kitchen.liveness.life(attempt.device) == "lost"
        return view(execution, unreachable=silent)

    async def held(execution: str) -> Execution:
        entry = kitchen.open_work.get(execution)
        if entry is not None:
            return entry.execution
        row = await kitchen.store.read(
            lambda connection: connection.execute(
                "SELECT body FROM execution WHERE kitchen = ? AND id = ?", (kitchen.name, execution)
            ).fetchone()
        )
        if row is None:
            raise Problem(404, "not_found", f"no execution is called {execution}")
        return read_execution(row[0])

    @post("/v1/executions", operation_id="start")
    async def start(request: Request[Any, Any, Any]) -> Response[bytes]:
        """Ask for a dish: 202 with its status, also when it is refused."""
        actor = await allowed(request, parts, "start", _READERS)
        order = await parts.orders.ask(actor, await request.body(), request.headers.get("idempotency-key"))
        if order.device is not None:
            parts.brigade.news(frozenset((order.device,)))
        return answer(order.status, 202)

    @get("/v1/executions", operation_id="executions")
    async def executions(request: Request[Any, Any, Any]) -> Response[bytes]:
        """The executions, newest first; `state=all` shows ended ones too."""
        await allowed(request, parts, "executions", _READERS)
        which = request.query_params.get("state", "open")
        if which not in ("open", "all"):
            raise Problem(400, "invalid", "state is open or all")
        found = {execution.id: execution for execution in kitchen.open_work.all()}
        if which == "all":
            rows = await kitchen.store.read(
                lambda connection: connection.execute(
                    "SELECT id, body FROM execution WHERE kitchen = ? ORDER BY rowid DESC LIMIT ?",
                    (kitchen.name, _LISTED_MOST),
                ).fetchall()
            )
            for execution, body in rows:
                found.setdefault(execution, read_execution(body))
        newest = sorted(found.values(), key=lambda one: (one.updated_at, one.id), reverse=True)
        return answer(ExecutionList(executions=[shown(one) for one in newest]))

    @get("/v1/executions/{execution:str}", operation_id="execution")
    async def execution(request: Request[Any, Any, Any], execution: FromPath[str]) -> Response[bytes]:
        """One execution's status."""
        await allowed(request, parts, "execution", _READERS)
        return answer(shown(await held(execution)))

    @post("/v1/executions/{execution:str}/stop", operation_id="stop")
    async def stop(request: Request[Any, Any, Any], execution: FromPath[str]) -> Response[bytes]:
        """Stop: no token, no body, no If-Match, no key. It leaves for the device before anything else."""
        by, reason = _who_stops(await _body_of_a_stop(request))
        outcome = await parts.brigade.stops.stop(execution, by, reason)
        if outcome.execution is None:
            raise unknown_to_stop(f"no execution called {execution} is known here")
        return answer(shown(outcome.execution), 202)

    @post("/v1/executions/{execution:str}/resume", operation_id="resume")
    async def resume(request: Request[Any, Any, Any], execution: FromPath[str]) -> Response[bytes]:
        """Go on after a person did what was needed; If-Match carries the seq she saw."""
        actor = await allowed(request, parts, "resume", PEOPLE)
        match = request.headers.get("if-match")
        if match is None:
            raise Problem(428, "precondition_required", "say which seq you saw: If-Match: <seq>")
        seq = _SEQ.fullmatch(match.strip())
        if seq is None:
            raise Problem(400, "invalid", "If-Match is the execution's seq, bare or quoted")
        key = request.headers.get("idempotency-key")
        if key is not None and not 8 <= len(key) <= 128:
            raise Problem(400, "invalid", "an Idempotency-Key has 8 to 128 characters")
        await held(execution)
        body_hash = digest(f"resume {execution}\n".encode() + await request.body())
        return answer(
            await parts.people.resume(actor.id, execution, int(seq[1] or seq[2]), key, body_hash), 202
        )

    @get("/v1/executions/{execution:str}/log", operation_id="log")
    async def log(request: Request[Any, Any, Any], execution: FromPath[str]) -> Response[bytes]:
        """The device's own log, byte for byte: of the last attempt, or of `attempt`."""
        await allowed(request, parts, "log", _READERS)
        now = await held(execution)
        wanted = request.query_params.get("attempt", str(len(now.attempts)))
        if not (wanted.isascii() and wanted.isdigit() and len(wanted) < 10):
            raise Problem(400, "invalid", "attempt is a number")
        row = await kitchen.store.read(
            lambda connection: connection.execute(
                "SELECT document FROM device_log WHERE kitchen = ? AND execution = ? AND attempt = ?",
                (kitchen.name, execution, int(wanted)),
            ).fetchone()
        )
        if row is None or row[0] is None:
            raise Problem(404, "not_found", "no log of that attempt is here (yet)")
        return answer(row[0].encode())

    return Router("/", route_handlers=[start, executions, execution, stop, resume, log])


def unknown_to_stop(why: str) -> Problem:
    """The answer to a stop that finds nothing to stop (ruling X4)."""
    return Problem(404, "not_found", f"{why}; to stop an appliance now, use the control on the appliance")


async def _body_of_a_stop(request: Request[Any, Any, Any]) -> bytes:
    """The body, if it comes at once; a stop never waits for one and never fails for one."""
    length = request.headers.get("content-length", "")
    if not _SHORT.fullmatch(length) or int(length) > _STOP_BODY_MOST:
        return b""
    body = b""
    with anyio.move_on_after(_STOP_BODY_WITHIN_S):
        try:
            body = await request.body()
        except HTTPException as error:  # the caller is gone; the stop is not
            _LOG.info("a stop came without the body it announced: %s", error.detail)
    return body


def _who_stops(body: bytes) -> tuple[str, str | None]:
    try:
        plain = parse(body) if body else {}
    except DocumentError:
        plain = {}
    if not isinstance(plain, dict):
        return "anyone", None
    by, reason = plain.get("requestedBy"), plain.get("reason")
    return (
        by[:200] if isinstance(by, str) and by else "anyone",
        reason[:300] if isinstance(reason, str) else None,
    )
