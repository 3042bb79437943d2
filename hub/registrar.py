"""Enrolling: people, agents' mandates, recipes and devices (DESIGN §8)."""

import re
from typing import Final

from msgspec import Struct

from adapters.protocol import DeviceError, DeviceUnreachable
from events.canonical import document_hash, read_document_hash
from events.documents import Document, DocumentError, from_plain, parse, read, read_part
from events.versions import other_version
from hub import own_secrets
from hub.brigade import Brigade
from hub.directory import DeviceEntry
from hub.entries import (
    DeviceRegistered,
    DeviceRemoved,
    MandateRegistered,
    MandateRevoked,
    PersonEnrolled,
    PersonRemoved,
    RecipeAdded,
    Role,
)
from hub.incident_notes import note_orders_in
from hub.kitchen import Kitchen
from hub.orders import OrderError
from hub.own_secrets import OwnSecrets
from hub.recorder import Recording
from mandates.authority import check_mandate
from mandates.documents import AgentMandate, KeyRecord
from mandates.tokens import AGENT, token_hash
from safety.device_documents import Capabilities, SafetyLimits
from safety.documents import Recipe

_DEVICE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_RESERVED: Final = frozenset({"hub"})


class PersonRequest(Document, frozen=True):
    """Enrol a person."""

    id: str
    role: Role = "person"
    public_key: KeyRecord | None = None


class DeviceRequest(Document, frozen=True):
    """Register a device that answers at `url`."""

    name: str
    url: str


class Pairing(Struct, frozen=True, rename="camel"):
    """What a device needs to belong here; holds its secrets and is shown once."""

    kitchen: str
    device: str
    token: str
    """The device's own secret: at the broker and at the hub."""
    hub_token: str
    """What the hub shows the device."""
    hub_url: str
    broker: "PairingBroker"


class PairingBroker(Struct, frozen=True):
    host: str
    port: int
    protocol: str


class Registrar:
    """Enrols and removes."""

    def __init__(self, kitchen: Kitchen, brigade: Brigade, secrets: OwnSecrets) -> None:
        self._kitchen = kitchen
        self._brigade = brigade
        self._secrets = secrets

    async def add_person(self, request: PersonRequest, by: str) -> str:
        """Enrol a person; returns the token, which is not kept."""
        if not request.id.strip() or len(request.id) > 200:
            raise OrderError(422, "invalid", "a person's id has 1 to 200 characters")
        if request.id.startswith(AGENT):
            raise OrderError(422, "invalid", f"{request.id} is an agent's id; people are person:…")
        # Before her keys, which are taken by herself; the commit decides again.
        if request.id in self._kitchen.directory.people:
            raise OrderError(409, "conflict", f"{request.id} is enrolled already")
        keys = []
        if request.public_key is not None:
            if request.public_key.actor != request.id:
                raise OrderError(422, "invalid", f"that key is of {request.public_key.actor}")
            if self._kitchen.directory.keys.get(request.public_key.kid) is not None:
                raise OrderError(409, "conflict", f"the kid {request.public_key.kid} is taken")
            keys = [request.public_key]
        token = self._kitchen.ids.secret()

        def work(recording: Recording) -> None:
            _free_name(recording, request.id)
            recording.record(
                PersonEnrolled(
                    id=request.id, role=request.role, token_hash=token_hash(token), keys=keys, by=by
                )
            )

        await self._kitchen.enrol(work)
        return token

    async def remove_person(self, person: str, by: str) -> None:
        """Remove a person; the last owner stays."""

        def work(recording: Recording) -> None:
            roles = dict(recording.fold.all("SELECT id, role FROM person WHERE kitchen = ?1"))
            if person not in roles:
                raise OrderError(404, "not_found", f"{person} is not enrolled")
            if roles[person] == "owner" and list(roles.values()).count("owner") == 1:
                raise OrderError(409, "conflict", f"{person} is the only owner; enrol another first")
            recording.record(PersonRemoved(id=person, by=by))

        await self._kitchen.enrol(work)
        self._kitchen.presence.left(person)

    async def add_mandate(self, raw: bytes, by: str) -> tuple[str, str]:
        """Register a mandate that its principal signed; returns its hash and the agent's token."""
        try:
            plain = parse(raw)
            mandate = from_plain(AgentMandate, plain)
            hashed = document_hash(plain)
        except DocumentError as error:
            raise OrderError(400, error.reason, f"{error.path}: {error.detail}") from None
        if mandate.principal != by:
            raise OrderError(403, "not_authorized", f"only {mandate.principal} registers that mandate")
        directory = self._kitchen.directory
        if mandate.agent in directory.people or mandate.agent in directory.devices:
            raise OrderError(422, "invalid", f"{mandate.agent} is no agent")
        now = self._kitchen.clock.wall()
        verdict = check_mandate(
            plain,
            requested_by=mandate.agent,
            token_actor=mandate.agent,
            scope=mandate.scopes[0],
            now=now,
            first_seen=now,
            keys=directory.keys,
            enrolled=directory.enrolled,
        )
        if not verdict.ok:
            raise OrderError(422, verdict.refusal or "not_authorized", f"{verdict.reason}: {verdict.detail}")
        token = self._kitchen.ids.secret()
        entry = MandateRegistered(
            hash=hashed,
            principal=mandate.principal,
            agent=mandate.agent,
            expires=mandate.expires,
            token_hash=token_hash(token),
            document=raw.decode(),
            by=by,
        )

        def work(recording: Recording) -> None:
            if recording.fold.one("SELECT 1 FROM person WHERE kitchen = ?1 AND id = ?2", by) is None:
                raise OrderError(403, "not_authorized", f"{by} is not enrolled any more")
            _free_name(recording, mandate.agent, agent=True)
            recording.record(entry)
            note_orders_in(recording, plain, f"a mandate for {mandate.agent}")

        await self._kitchen.enrol(work)
        return hashed, token

    async def revoke_mandate(self, hashed: str, by: str) -> None:
        """End a mandate now."""

        def work(recording: Recording) -> bool:
            known = recording.fold.one(
                "SELECT 1 FROM mandate WHERE kitchen = ?1 AND hash = ?2 AND revoked = 0", hashed
            )
            if known is not None:
                recording.record(MandateRevoked(hash=hashed, by=by))
            return known is not None

        if not await self._kitchen.enrol(work):
            raise OrderError(404, "not_found", "no such mandate is in force")

    async def add_recipe(self, raw: bytes, by: str) -> tuple[str, str]:
        """Keep a recipe revision, byte for byte; returns its hash and id."""
        try:
            plain = parse(raw)
            recipe = read_part(Recipe, raw)
            hashed = read_document_hash(raw)
        except DocumentError as error:
            raise OrderError(400, error.reason, f"{error.path}: {error.detail}") from None
        written = plain.get("hash")
        if written is not None and written != hashed:
            raise OrderError(
                422, "recipe_hash_mismatch", f"the recipe says {written}, its content is {hashed}"
            )
        if hashed not in self._kitchen.directory.recipes:
            entry = RecipeAdded(hash=hashed, id=recipe.id, document=raw.decode(), by=by)

            def work(recording: Recording) -> None:
                recording.record(entry)
                note_orders_in(recording, plain, f"the recipe {recipe.id} {hashed}")

            await self._kitchen.enrol(work)
        return hashed, recipe.id

    async def add_device(self, request: DeviceRequest, by: str) -> Pairing:
        """Read a device, pin its keys and its address, and pair it."""
        kitchen = self._kitchen
        name = request.name
        if not _DEVICE_NAME.fullmatch(name) or name in _RESERVED:
            raise OrderError(422, "invalid", "a device's name: 1 to 64 of a-z, 0-9 and hyphen")
        if name in kitchen.directory.devices:
            raise OrderError(409, "conflict", f"{name} is registered already; remove it first to change it")
        capabilities, limits = await self._read_device(name, request.url)
        token, salt = kitchen.ids.secret(), kitchen.ids.new("salt")
        entry = DeviceRegistered(
            name=name,
            url=request.url,
            token_hash=token_hash(token),
            broker_hash=own_secrets.broker_hash(token, kitchen.ids),
            salt=salt,
            capabilities=capabilities,
            safety_limits=limits,
            by=by,
        )

        def work(recording: Recording) -> None:
            _free_name(recording, name)
            recording.record(entry)
            for document, what in ((capabilities, "capabilities"), (limits, "safety limits")):
                note_orders_in(recording, parse(document.encode()), f"the {what} of {name}")

        await kitchen.enrol(work)
        self._brigade.sync()
        broker = kitchen.settings.broker
        return Pairing(
            kitchen=kitchen.name,
            device=name,
            token=token,
            hub_token=self._secrets.device_token(name, salt),
            hub_url=kitchen.settings.url(),
            broker=PairingBroker(broker.host, broker.port, broker.protocol),
        )

    async def _read_device(self, name: str, url: str) -> tuple[str, str]:
        stranger = DeviceEntry.stranger(name, url)
        try:
            adapter = self._kitchen.connect(stranger)
        except ValueError as error:
            raise OrderError(422, "invalid", str(error)) from None
        try:
            raw_capabilities = await adapter.capabilities()
            raw_limits = await adapter.safety_limits()
            capabilities = read(Capabilities, raw_capabilities)
            other = other_version(parse(raw_limits))
            if other is not None:
                raise OrderError(422, "unsupported_version", f"{url}: its limits are of Core {other}")
            read(SafetyLimits, raw_limits)
        except (DeviceError, DeviceUnreachable) as error:
            raise OrderError(502, "unreachable", f"{url} gave no capabilities: {error}") from None
        except DocumentError as error:
            raise OrderError(422, error.reason, f"{url}: {error.path}: {error.detail}") from None
        finally:
            await adapter.close()
        for record in capabilities.x_keys or ():
            holder = self._kitchen.directory.keys.get(record.kid)
            if holder is not None:
                raise OrderError(409, "conflict", f"the kid {record.kid} is taken by {holder.actor}")
        return raw_capabilities.decode(), raw_limits.decode()

    async def remove_device(self, name: str, by: str) -> None:
        """Remove a device that has no work."""
        if name not in self._kitchen.directory.devices:
            raise OrderError(404, "not_found", f"{name} is not registered")

        def work(recording: Recording) -> str | None:
            row = recording.fold.one(
                "SELECT attempt.execution FROM attempt JOIN execution ON execution.kitchen = attempt.kitchen "
                "AND execution.id = attempt.execution WHERE attempt.kitchen = ?1 AND attempt.device = ?2 "
                "AND execution.open = 1 LIMIT 1",
                name,
            )
            if row is not None:
                return str(row[0])
            recording.record(DeviceRemoved(name=name, by=by))
            return None

        open_work = await self._kitchen.enrol(work)
        if open_work is not None:
            raise OrderError(409, "conflict", f"{name} has work: {open_work}; let it end or stop it first")
        self._brigade.sync()


def _free_name(recording: Recording, name: str, *, agent: bool = False) -> None:
    """Whether nobody is called `name` yet, at the moment of the commit; an agent may have several mandates.

    Everybody here shares one space of names: a document says who, and never in which role.

    Raises:
        OrderError: 409.
    """
    taken = recording.fold.one(
        "SELECT 'a person' FROM person WHERE kitchen = ?1 AND id = ?2 UNION ALL "
        "SELECT 'a device' FROM device WHERE kitchen = ?1 AND name = ?2 UNION ALL "
        "SELECT 'an agent' FROM mandate WHERE kitchen = ?1 AND agent = ?2 AND revoked = 0 AND NOT ?3 LIMIT 1",
        name,
        agent,
    )
    if taken is not None:
        raise OrderError(409, "conflict", f"{name} is {taken[0]} here already; remove it first to change it")
