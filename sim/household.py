"""The scripted clients of the demo: a person and agents, each with a token of her own, at the hub's API."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
import msgspec

from events.seams import Clock, Ids
from events.times import format_date_time
from mandates.keys import PrivateKey
from mandates.signature import sign_document


class HubRefused(Exception):
    """The hub answered with a problem; the text is what it said."""


@dataclass(frozen=True, slots=True)
class Client:
    """One client of the hub."""

    name: str
    http: httpx.AsyncClient = field(repr=False)
    clock: Clock
    ids: Ids

    async def get(self, path: str) -> dict[str, Any]:
        """A resource of the hub."""
        return _document(await self.http.get(path))

    async def post(self, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
        """Post a document (bytes are sent as they are)."""
        content = body if isinstance(body, bytes) else msgspec.json.encode({} if body is None else body)
        sent = {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
        return _document(await self.http.post(path, content=content, headers=sent))

    async def order(
        self, recipe: str, recipe_hash: str, mandate: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Ask for a dish; the execution's status, accepted or refused."""
        name = self.ids.new("order")
        request: dict[str, Any] = {
            "core": "0.2.0",
            "kind": "ExecuteRequest",
            "id": name,
            "recipe": f"cw:cookwala.ai:{recipe}",
            "recipeHash": recipe_hash,
            "requestedBy": self.name,
            "idempotencyKey": f"key-{name}",
        }
        if mandate is not None:
            request["mandate"] = mandate
        return await self.post("/v1/executions", request)

    async def execution(self, execution: str) -> dict[str, Any]:
        """An execution's status."""
        return await self.get(f"/v1/executions/{execution}")


@dataclass(frozen=True, slots=True)
class Person:
    """A person: a client that signs, is there, and resumes."""

    client: Client
    key: PrivateKey = field(repr=False)

    async def grant(self, agent: str, scopes: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
        """Sign a mandate for `agent` and register it; the agent's token and the mandate."""
        now = self.client.clock.wall()
        mandate = sign_document(
            {
                "principal": self.client.name,
                "agent": agent,
                "scopes": list(scopes),
                "expires": format_date_time(now + timedelta(hours=1)),
            },
            self.key,
            signed_at=now,
        )
        answer = await self.client.post("/v1/mandates", mandate)
        return str(answer["token"]), mandate

    async def be_here(self) -> None:
        """Say that she is there, and answer whoever asks."""
        await self.client.post("/v1/presence", {"present": True})

    async def resume(self, need: dict[str, Any]) -> None:
        """Go on with what waited for her."""
        await self.client.post(f"/v1/executions/{need['execution']}/resume", If_Match=str(need["seq"]))


def _document(answer: httpx.Response) -> dict[str, Any]:
    document = msgspec.json.decode(answer.content) if answer.content else {}
    if answer.status_code >= 400:
        detail = document.get("detail", "") if isinstance(document, dict) else ""
        raise HubRefused(f"{answer.status_code}: {detail}")
    if not isinstance(document, dict):
        raise HubRefused("the hub's answer is no object")
    return document
