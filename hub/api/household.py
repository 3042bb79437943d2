"""The endpoints of a household: devices, people, mandates, recipes, presence, what waits or was refused."""

from sqlite3 import Connection
from typing import Annotated, Any

from litestar import Request, Response, Router, delete, get, post
from litestar.params import FromPath
from msgspec import Meta

from events.documents import Document
from hub.api.access import PEOPLE, allowed
from hub.api.answers import Problem, answer, document
from hub.directory import RecipeEntry
from hub.entries import ConditionEnded
from hub.parts import Parts
from hub.recorder import Recording
from hub.registrar import DeviceRequest, PersonRequest
from hub.store.rings import FAILED_LOGINS, QUARANTINE, REFUSALS, Ring

_OWNER = frozenset({"owner"})
_HOUSEHOLD = frozenset({"owner", "person", "agent"})
_ANYBODY = frozenset({"owner", "person", "agent", "device"})
_RING_MOST = 200


class PresenceRequest(Document, frozen=True):
    """A person says whether she is there."""

    present: bool
    nonce: str | None = None


class ConditionRequest(Document, frozen=True):
    """A person ends an alarm or a fault."""

    device: Annotated[str, Meta(min_length=1, max_length=64)]
    type: Annotated[str, Meta(min_length=1, max_length=256)]


def routes(parts: Parts) -> Router:
    """The router of a household."""
    kitchen = parts.kitchen

    async def listed(name: str, query: str) -> Response[bytes]:
        """The rows that `query` finds in this kitchen, each as an object of its columns."""

        def read(connection: Connection) -> list[dict[str, Any]]:
            found = connection.execute(query, (kitchen.name,))
            columns = [column[0] for column in found.description]
            return [dict(zip(columns, row, strict=True)) for row in found]

        return answer({name: await kitchen.store.read(read)})

    @get("/v1/needs", operation_id="needs")
    async def needs(request: Request[Any, Any, Any]) -> Response[bytes]:
        """What waits for a person."""
        await allowed(request, parts, "needs", _HOUSEHOLD)
        return answer(await parts.people.needs())

    @post("/v1/presence", operation_id="presence")
    async def presence(request: Request[Any, Any, Any]) -> Response[bytes]:
        """A person says that she is there, and answers the devices that ask."""
        actor = await allowed(request, parts, "presence", PEOPLE)
        body = await document(request, PresenceRequest)
        if not body.present:
            kitchen.presence.left(actor.id)
            return answer({"answered": []})
        return answer({"answered": await parts.people.here(actor.id, body.nonce)})

    @get("/v1/devices", operation_id="devices")
    async def devices(request: Request[Any, Any, Any]) -> Response[bytes]:
        """The devices: whether they are heard and what they are at."""
        await allowed(request, parts, "devices", _HOUSEHOLD)
        busy = kitchen.open_work.busy()
        found = []
        for device in kitchen.directory.devices.values():
            capabilities = device.capabilities
            found.append(
                {
                    "name": device.name,
                    "url": device.url,
                    "liveness": kitchen.liveness.life(device.name),
                    "busyWith": busy.get(device.name),
                    "model": capabilities.actor.model if capabilities else None,
                    "ops": len(capabilities.capabilities.ops or ()) if capabilities else 0,
                    "keys": [record.kid for record in device.keys],
                }
            )
        return answer({"devices": found})

    @post("/v1/devices", operation_id="add_device")
    async def add_device(request: Request[Any, Any, Any]) -> Response[bytes]:
        """Register a device; the answer holds its secrets and is given once."""
        actor = await allowed(request, parts, "add_device", _OWNER)
        return answer(await parts.registrar.add_device(await document(request, DeviceRequest), actor.id), 201)

    @delete("/v1/devices/{name:str}", status_code=204, operation_id="remove_device")
    async def remove_device(request: Request[Any, Any, Any], name: FromPath[str]) -> None:
        """Remove a device that has no work."""
        actor = await allowed(request, parts, "remove_device", _OWNER)
        await parts.registrar.remove_device(name, actor.id)

    @get("/v1/people", operation_id="people")
    async def people(request: Request[Any, Any, Any]) -> Response[bytes]:
        """Who is enrolled."""
        await allowed(request, parts, "people", PEOPLE)
        directory = kitchen.directory
        found = [
            {"id": person, "role": role, "keys": sorted(directory.enrolled[person].kids)}
            for person, role in sorted(directory.people.items())
        ]
        return answer({"people": found})

    @post("/v1/people", operation_id="add_person")
    async def add_person(request: Request[Any, Any, Any]) -> Response[bytes]:
        """Enrol a person; the token is given once."""
        actor = await allowed(request, parts, "add_person", _OWNER)
        token = await parts.registrar.add_person(await document(request, PersonRequest), actor.id)
        return answer({"token": token}, 201)

    @delete("/v1/people/{person:path}", status_code=204, operation_id="remove_person")
    async def remove_person(request: Request[Any, Any, Any], person: FromPath[str]) -> None:
        """Remove a person."""
        actor = await allowed(request, parts, "remove_person", _OWNER)
        # An id may hold slashes; what stands behind the path's own is the id.
        await parts.registrar.remove_person(str(person).removeprefix("/"), actor.id)

    @get("/v1/mandates", operation_id="mandates")
    async def mandates(request: Request[Any, Any, Any]) -> Response[bytes]:
        """The mandates in force."""
        await allowed(request, parts, "mandates", PEOPLE)
        return await listed(
            "mandates",
            "SELECT hash, principal, agent, expires FROM mandate WHERE kitchen = ? AND revoked = 0 "
            "ORDER BY agent, hash",
        )

    @post("/v1/mandates", operation_id="add_mandate")
    async def add_mandate(request: Request[Any, Any, Any]) -> Response[bytes]:
        """Register a mandate that the caller signed; the agent's token is given once."""
        actor = await allowed(request, parts, "add_mandate", PEOPLE)
        hashed, token = await parts.registrar.add_mandate(await request.body(), actor.id)
        return answer({"mandate": hashed, "token": token}, 201)

    @delete("/v1/mandates/{hashed:str}", status_code=204, operation_id="revoke_mandate")
    async def revoke_mandate(request: Request[Any, Any, Any], hashed: FromPath[str]) -> None:
        """End a mandate now."""
        actor = await allowed(request, parts, "revoke_mandate", PEOPLE)
        await parts.registrar.revoke_mandate(hashed, actor.id)

    def _recall(entry: RecipeEntry) -> dict[str, str] | None:
        """What a catalogue asks for of a recipe it withdrew."""
        book = kitchen.directory.recall_book
        recall = book.strictest(recipe=entry.recipe.id, recipe_hash=entry.hash)
        return None if recall is None else {"action": recall.action, "id": recall.id, "issuer": recall.issuer}

    @get("/v1/recipes", operation_id="recipes")
    async def recipes(request: Request[Any, Any, Any]) -> Response[bytes]:
        """The recipes held here."""
        await allowed(request, parts, "recipes", _HOUSEHOLD)
        found = [
            {
                "id": entry.recipe.id,
                "hash": entry.hash,
                "revision": entry.recipe.revision,
                "names": entry.recipe.dish.names,
                "recall": _recall(entry),
            }
            for entry in kitchen.directory.recipes.values()
        ]
        found.sort(key=lambda one: (str(one["id"]), str(one["hash"])))
        return answer({"recipes": found})

    @post("/v1/recipes", operation_id="add_recipe")
    async def add_recipe(request: Request[Any, Any, Any]) -> Response[bytes]:
        """Keep a recipe revision, byte for byte."""
        actor = await allowed(request, parts, "add_recipe", PEOPLE)
        hashed, recipe = await parts.registrar.add_recipe(await request.body(), actor.id)
        return answer({"hash": hashed, "id": recipe}, 201)

    @get("/v1/recipes/{hashed:str}", operation_id="recipe")
    async def recipe(request: Request[Any, Any, Any], hashed: FromPath[str]) -> Response[bytes]:
        """A recipe revision, byte for byte."""
        await allowed(request, parts, "recipe", _ANYBODY)
        row = await kitchen.store.read(
            lambda connection: connection.execute(
                "SELECT document FROM recipe WHERE kitchen = ? AND hash = ?", (kitchen.name, hashed)
            ).fetchone()
        )
        if row is None:
            raise Problem(404, "not_found", "no recipe of that hash is held here")
        return answer(row[0].encode())

    @get("/v1/conditions", operation_id="conditions")
    async def conditions(request: Request[Any, Any, Any]) -> Response[bytes]:
        """The alarms and faults in force."""
        await allowed(request, parts, "conditions", _HOUSEHOLD)
        return await listed(
            "conditions",
            "SELECT device, type, time FROM condition WHERE kitchen = ? AND active = 1 ORDER BY device, type",
        )

    @post("/v1/conditions/end", operation_id="end_condition")
    async def end_condition(request: Request[Any, Any, Any]) -> Response[bytes]:
        """A person ends an alarm or a fault."""
        actor = await allowed(request, parts, "end_condition", PEOPLE)
        body = await document(request, ConditionRequest)

        def work(recording: Recording) -> bool:
            found = recording.fold.one(
                "SELECT 1 FROM condition WHERE kitchen = ?1 AND device = ?2 AND type = ?3 AND active = 1",
                body.device,
                body.type,
            )
            if found is not None:
                recording.record(ConditionEnded(device=body.device, type=body.type, by=actor.id))
            return found is not None

        if not await kitchen.recorder.commit(work):
            raise Problem(404, "not_found", f"{body.device} reports no {body.type}")
        parts.brigade.outbox_bell.set()
        return answer({"ended": body.type})

    async def ring(which: Ring) -> Response[bytes]:
        rows, counters = await kitchen.store.read(
            lambda connection: (
                which.newest(connection, kitchen.name, _RING_MOST),
                which.counters(connection, kitchen.name),
            )
        )
        found = [
            {"at": row.at, "reason": row.reason, "source": row.source, "detail": row.detail} for row in rows
        ]
        return answer({"counters": counters, "newest": found})

    @get("/v1/refusals", operation_id="refusals")
    async def refusals(request: Request[Any, Any, Any]) -> Response[bytes]:
        """What was refused, the newest of it, and how often for which reason."""
        await allowed(request, parts, "refusals", PEOPLE)
        return await ring(REFUSALS)

    @get("/v1/quarantine", operation_id="quarantine")
    async def quarantine(request: Request[Any, Any, Any]) -> Response[bytes]:
        """Which messages went to quarantine, the newest of them, and how often for which reason."""
        await allowed(request, parts, "quarantine", PEOPLE)
        return await ring(QUARANTINE)

    @get("/v1/failed-logins", operation_id="failed_logins")
    async def failed_logins(request: Request[Any, Any, Any]) -> Response[bytes]:
        """Which calls showed no good token."""
        await allowed(request, parts, "failed_logins", _OWNER)
        return await ring(FAILED_LOGINS)

    return Router(
        "/",
        route_handlers=[
            needs,
            presence,
            devices,
            add_device,
            remove_device,
            people,
            add_person,
            remove_person,
            mandates,
            add_mandate,
            revoke_mandate,
            recipes,
            add_recipe,
            recipe,
            conditions,
            end_condition,
            refusals,
            quarantine,
            failed_logins,
        ],
    )
