"""Who calls: bearer tokens and roles (DESIGN §8). A failed login is counted and kept in a ring."""

import logging
from typing import Any, Final

from litestar import Request

from hub.api.answers import Problem
from hub.parts import Parts
from hub.store.database import StoreFailed
from hub.store.rings import FAILED_LOGINS, REFUSALS, Ring
from mandates.confirmation import refusal_of_agent
from mandates.tokens import Actor

PEOPLE: Final = frozenset({"owner", "person"})
_LOG: Final = logging.getLogger("aboyeur.api")


async def caller(request: Request[Any, Any, Any], parts: Parts) -> Actor:
    """Whose token the request carries.

    Raises:
        Problem: 401.
    """
    if parts.kitchen.stale:
        await parts.kitchen.reload()
    header = request.headers.get("authorization", "")
    scheme, _, secret = header.partition(" ")
    actor = None
    if scheme.lower() == "bearer" and secret:
        actor = parts.kitchen.directory.actor(secret.strip())
    if actor is None:
        reason = "unknown_token" if header else "no_token"
        where = f"{request.client.host if request.client else 'unknown'} {request.method} {request.url.path}"
        await _note(parts, FAILED_LOGINS, reason, where)
        raise Problem(401, "unauthorized", "show a token of this household: Authorization: Bearer …")
    return actor


async def allowed(
    request: Request[Any, Any, Any], parts: Parts, operation: str, roles: frozenset[str]
) -> Actor:
    """The caller, if one of `roles` may do `operation`; an agent also needs that it asks no confirmation.

    Raises:
        Problem: 401, or 403, which is recorded.
    """
    actor = await caller(request, parts)
    if actor.role not in roles or (actor.role == "agent" and refusal_of_agent(operation)):
        detail = f"{operation}: not for the role {actor.role}"
        await _note(parts, REFUSALS, "not_authorized", actor.id, detail)
        raise Problem(403, "not_authorized", f"{actor.id} may not do this: {detail}")
    return actor


async def _note(parts: Parts, ring: Ring, reason: str, source: str, detail: str = "") -> None:
    """Record who was turned away. A store that cannot be written changes nothing about the answer."""
    try:
        await parts.kitchen.recorder.commit(
            lambda recording: recording.turn_away(ring, reason, source, detail)
        )
    except StoreFailed as failure:
        _LOG.warning("%s from %s is not recorded: %s", reason, source, failure.detail)
