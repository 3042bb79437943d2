"""A running hub: its parts put together, started in an order that lets a stop through first.

Order (DESIGN §4, §6): what is open is read; then the API answers (stops work from here on); then the store is
opened, migrated and checked; then broker and bus come up. Closing goes the other way, within a bound.
"""

import hmac
import logging
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final

import anyio
import httpx
from anyio.abc import TaskGroup

from adapters.http import HttpAdapter
from adapters.protocol import DeviceAdapter
from config.settings import Settings
from events.access_rights import HUB, Rights
from events.embedded_broker import EmbeddedBroker
from events.mosquitto import verify_password
from events.mqtt import MqttSettings, MqttTransport
from events.seams import Clock, Ids
from events.transport import Transport
from hub import damage, own_secrets
from hub.api.app import build
from hub.brigade import Brigade
from hub.bus import Bus
from hub.directory import DeviceEntry
from hub.entries import DamageAccepted
from hub.event_types import event_registry
from hub.http_server import listen, serving
from hub.inbox import Inbox
from hub.incidents import IncidentDesk
from hub.kitchen import Kitchen
from hub.liveness import Liveness
from hub.open_work import OpenWork
from hub.orders import OrderDesk
from hub.parts import Parts
from hub.people import PeopleDesk
from hub.presence import Presence
from hub.projections.projector import Projector
from hub.recalls import RecallDesk
from hub.recorder import Recorder
from hub.records.log.chain import Finding
from hub.records.log.head import HeadFile, HeadKeeper, check_at_start
from hub.registrar import Registrar
from hub.starting import OpeningStore, open_executions, preload
from hub.store.database import Database, DataFolderLock, FolderInUse, Store, StoreFailed, StoreUnusable
from hub.store.migrations import SchemaTooNew
from hub.store.writer import Journal, Writer, log_identity
from safety.vocabulary import VOCABULARY_RESOURCE, Vocabulary

_LOG: Final = logging.getLogger("aboyeur.service")
_CATCH_UP_EVERY_S: Final = 1.0


class LogDamaged(Exception):
    """The event log is not what it was; the text says how. Nothing was repaired."""

    def __init__(self, findings: list[Finding]) -> None:
        lines = "; ".join(damage.in_words(one) for one in findings)
        super().__init__(
            f"the event log is damaged ({lines}). Look at all of it: aboyeur rebuild --check. Then restore "
            "a backup (aboyeur restore), or take note and go on (aboyeur serve --accept-damage)"
        )
        self.findings = findings


@dataclass(frozen=True, slots=True)
class Seams:
    """What a test or a simulation puts in place of sockets and disks.

    Attributes:
        store: wraps the database.
        head: wraps the keeper of the log's head.
        transport: makes the connection to the broker.
        adapter: makes the adapter of a device.
        catalogues: carries the requests to catalogues; the network where there is none.
    """

    store: Callable[[Store], Store] = field(default=lambda store: store)
    head: Callable[[HeadKeeper], HeadKeeper] = field(default=lambda keeper: keeper)
    transport: Callable[[Transport], Transport] = field(default=lambda transport: transport)
    adapter: Callable[[DeviceAdapter], DeviceAdapter] = field(default=lambda adapter: adapter)
    catalogues: httpx.AsyncBaseTransport | None = None


async def serve(
    settings: Settings,
    clock: Clock,
    ids: Ids,
    *,
    stopping: anyio.Event,
    seams: Seams | None = None,
    accept_damage_by: str | None = None,
    ready: anyio.Event | None = None,
) -> None:
    """Run the hub of `settings` until `stopping` is set.

    Args:
        accept_damage_by: who takes note of a damaged log and goes on; `None` refuses to start with one.
        ready: set once everything runs.

    Raises:
        LogDamaged: the log is not what it was, and nobody takes note of it.
        FolderInUse, StoreUnusable, SchemaTooNew, SecretsMissing, OSError
    """
    hub = _Hub(settings, clock, ids, seams or Seams())
    failure: Exception | None = None
    async with AsyncExitStack() as last, anyio.create_task_group() as writing:
        async with anyio.create_task_group() as working:
            try:
                await hub.run(
                    writing, working, last, stopping=stopping, ready=ready, accept_damage_by=accept_damage_by
                )
            except (LogDamaged, FolderInUse, StoreUnusable, SchemaTooNew, StoreFailed, OSError) as error:
                failure = error
            working.cancel_scope.cancel()
        writing.cancel_scope.cancel()
    if failure is not None:
        raise failure


class _Hub:
    """The parts of one run."""

    def __init__(self, settings: Settings, clock: Clock, ids: Ids, seams: Seams) -> None:
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._seams = seams
        self._secrets = own_secrets.load(settings.folder)
        self._opening = OpeningStore()
        self._store = seams.store(self._opening)
        registry = event_registry()
        self._kitchen = Kitchen(
            settings=settings,
            clock=clock,
            ids=ids,
            registry=registry,
            vocabulary=Vocabulary.from_bytes(files("safety").joinpath(VOCABULARY_RESOURCE).read_bytes()),
            store=self._store,
            recorder=Recorder(Projector(settings.kitchen, registry)),
            connect=self._connect,
            open_work=OpenWork(),
            liveness=Liveness(),
            presence=Presence(clock),
        )

    async def run(
        self,
        writing: TaskGroup,
        working: TaskGroup,
        last: AsyncExitStack,
        *,
        stopping: anyio.Event,
        ready: anyio.Event | None,
        accept_damage_by: str | None,
    ) -> None:
        """Start everything, wait for `stopping`, close the API; the task groups are the caller's to end."""
        settings, kitchen = self._settings, self._kitchen
        with DataFolderLock(settings.data):
            pass  # another hub on this folder is the first thing to say, before its ports are in the way
        # Before the store is opened, migrated and checked, a look is enough to let stops through.
        preload(settings.folder.database, kitchen)
        brigade = Brigade(kitchen, working)
        brigade.sync()
        inbox = Inbox(kitchen, brigade)
        bus = Bus(kitchen, self._seams.transport(self._transport()), inbox, brigade)
        parts = Parts(
            kitchen=kitchen,
            brigade=brigade,
            orders=OrderDesk(kitchen),
            people=PeopleDesk(kitchen, brigade),
            registrar=Registrar(kitchen, brigade, self._secrets),
            inbox=inbox,
            bus=bus,
            recalls=RecallDesk(kitchen, brigade.stops, transport=self._seams.catalogues),
            incidents=IncidentDesk(kitchen, transport=self._seams.catalogues),
        )
        async with serving(build(parts), listen(settings.http.host, settings.http.port)):
            try:
                await self._open_store(writing, last, accept_damage_by)
            except BaseException:
                # Requests that wait for the store would hold up the closing and be cut off without an answer.
                self._opening.give_up()
                kitchen.recorder.give_up()
                raise
            await kitchen.reload()
            await self._read_open_work()
            brigade.sync()
            brigade.stops.take_up()
            async with self._broker(), anyio.create_task_group() as on_the_bus:
                on_the_bus.start_soon(bus.run, name="bus")
                on_the_bus.start_soon(brigade.watch, name="watch")
                on_the_bus.start_soon(self._catch_up, brigade, name="catch up")
                on_the_bus.start_soon(parts.recalls.run, name="recalls")
                on_the_bus.start_soon(parts.incidents.run, name="incidents")
                brigade.reconcile()
                _LOG.info("the hub of the kitchen %s answers at %s", settings.kitchen, settings.url())
                if ready is not None:
                    ready.set()
                await stopping.wait()
                on_the_bus.cancel_scope.cancel()

    async def _open_store(
        self, writing: TaskGroup, last: AsyncExitStack, accept_damage_by: str | None
    ) -> None:
        settings = self._settings
        database = await Database.open(settings.folder.database)
        last.push_async_callback(database.close)
        store = self._seams.store(database)
        head = self._seams.head(last.enter_context(HeadFile(settings.folder.head)))
        log_id = await store.run(lambda connection: log_identity(connection, self._ids))
        findings = await store.run(
            lambda connection: damage.unknown(connection, check_at_start(connection, log_id, head))
        )
        if findings and accept_damage_by is None:
            raise LogDamaged(findings)
        writer = Writer(store, Journal(log_id, settings.kitchen, head), self._clock)
        writing.start_soon(writer.run, name="writer")
        self._kitchen.recorder.attach(writer)
        self._opening.opened(database)
        if findings and accept_damage_by is not None:
            _LOG.warning("%s takes note of a damaged log: %s", accept_damage_by, findings)
            await self._kitchen.recorder.record(
                DamageAccepted(by=accept_damage_by, findings=[damage.in_words(one) for one in findings])
            )

    async def _read_open_work(self) -> None:
        rows = await self._store.read(lambda connection: open_executions(connection, self._kitchen.name))
        for execution in rows:
            self._kitchen.open_work.changed(0, execution)

    async def _catch_up(self, brigade: Brigade) -> None:
        """After a commit that was not confirmed, learn what of it holds; until cancelled."""
        kitchen = self._kitchen
        while True:
            await kitchen.recorder.doubt.wait()
            try:
                await kitchen.recorder.settle()
                await kitchen.reload()
            except StoreFailed as failure:
                _LOG.warning("the store fails; what holds is not known yet: %s", failure.detail)
                await self._clock.sleep(_CATCH_UP_EVERY_S)
            else:
                brigade.sync()

    def _broker(self) -> AbstractAsyncContextManager[object]:
        broker = self._settings.broker
        if broker.kind != "embedded":
            return nullcontext()
        devices = _Registered(self._kitchen)
        rights = Rights(self._kitchen.name, devices)
        return EmbeddedBroker(broker.host, broker.port, self._is_password, rights).running()

    def _is_password(self, user: str, password: bytes) -> bool:
        if user == HUB:
            return hmac.compare_digest(password, self._secrets.broker_password.encode())
        if self._kitchen.stale:
            return False  # perhaps removed by now; a device tries again
        device = self._kitchen.directory.devices.get(user)
        return device is not None and verify_password(password, device.broker_hash)

    def _transport(self) -> Transport:
        broker = self._settings.broker
        tls = None if broker.tls_ca is None else ssl.create_default_context(cafile=broker.tls_ca)
        return MqttTransport(
            MqttSettings(
                host=broker.host,
                port=broker.port,
                username=HUB,
                password=self._secrets.broker_password,
                client_id=HUB,
                protocol=broker.protocol,
                tls=tls,
            ),
            self._clock,
        )

    def _connect(self, device: DeviceEntry) -> DeviceAdapter:
        forward = self._settings.forward
        return self._seams.adapter(
            HttpAdapter(
                device.url,
                self._secrets.device_token(device.name, device.salt),
                timeout_s=forward.answer_s,
                stop_timeout_s=forward.stop_answer_s,
            )
        )


class _Registered:
    """The names of the devices registered at this moment."""

    def __init__(self, kitchen: Kitchen) -> None:
        self._kitchen = kitchen

    def __contains__(self, name: object) -> bool:
        return name in self._kitchen.directory.devices
