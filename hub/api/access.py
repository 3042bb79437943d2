"""Who calls: bearer tokens and roles (DESIGN §8). A failed login is counted and kept in a ring."""

from typing import Any

from litestar import Request

from hub.api.answers import Problem
from hub.parts import Parts
from hub.store.rings import FAILED_LOGINS, REFUSALS
from mandates.confirmation import refusal_of_agent
from mandates.tokens import Actor

PEOPLE = frozenset({"owner", "person"})


async def caller(request: Request[Any, Any, Any], parts: Parts) -> Actor:
    """Whose token the request carries.

    Raises:
        Problem: 401.
    """
    header = request.headers.get("authorization", "")
    scheme, _, secret = header.partition(" ")
    actor = None
    if scheme.lower() == "bearer" and secret:
        actor = parts.kitchen.directory.actor(secret.strip())
    if actor is None:
        reason = "unknown_token" if header else "no_token"
        where = f"{request.client.host if request.client else 'unknown'} {request.method} {request.url.path}"
        await parts.kitchen.recorder.commit(
            lambda recording: recording.turn_away(FAILED_LOGINS, reason, where)
        )
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
        await parts.kitchen.recorder.commit(
            lambda recording: recording.turn_away(REFUSALS, "not_authorized", actor.id, detail)
        )
        raise Problem(403, "not_authorized", f"{actor.id} may not do this: {detail}")
    return actor
