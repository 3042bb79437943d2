"""The inbox: from what the broker delivers to what is committed and acknowledged (DESIGN §4; rulings E1-E5).

One pass over a batch: who published it, can it be read, may this device say it; then one grouped transaction
for all of it, then the acknowledgement on the very connection it came on. A commit that fails ends the
connection, which is the only way to have it all delivered again.
"""

import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from adapters.events import ExecutionData
from events import topics
from events.admission import Publisher, admit
from events.canonical import same_content
from events.catalogue import Heartbeat, InventoryData, NotifyData
from events.documents import DocumentError
from events.envelope import Event, is_binary, read_binary_event, read_event
from events.transport import Delivery
from hub.entries import EventTaken, TelemetrySampled
from hub.incident_notes import note_orders_in
from hub.kitchen import Kitchen
from hub.recorder import Recording
from hub.store.database import StoreFailed
from hub.store.rings import QUARANTINE
from hub.store.writer import is_store_error
from safety.untrusted_text import EVENT_MOST

_LOG: Final = logging.getLogger("aboyeur.inbox")
_HEARTBEAT: Final = "cookwala.device.heartbeat"
_ONLINE: Final = "cookwala.device.online"
_WINDOW_S: Final = 60.0
SAMPLE_EVERY_S: Final = 60.0
"""Of a device's telemetry one event in this time is logged."""
_BEAT_MOST_BYTES: Final = 4_096
"""No heartbeat is longer."""
STORAGES_MOST: Final = 64
"""Of one device, each with an inventory of its own."""


@dataclass(frozen=True, slots=True)
class _Turned:
    """A message that goes to quarantine."""

    reason: str
    device: str
    detail: str
    body: bytes


@dataclass(frozen=True, slots=True)
class _Taken:
    """An event that may be said by who said it."""

    device: str
    event: Event


@dataclass(slots=True)
class _Usage:
    since: float
    events: int = 0
    bytes: int = 0
    exceeded: bool = False


class Attention(Protocol):
    """Who is told what came in, after it is committed."""

    def news(self, devices: frozenset[str]) -> None:
        """Events of these devices were committed."""
        ...

    def rebooted(self, device: str) -> None:
        """A device speaks under another boot than before."""
        ...

    def returned(self, device: str) -> None:
        """A device is heard for the first time after silence."""
        ...

    def incomplete(self, device: str) -> None:
        """Something that a device said may be missing here: only its status tells what holds."""
        ...


class Inbox:
    """Takes batches of deliveries; holds what one connection needs to know."""

    def __init__(self, kitchen: Kitchen, attention: Attention) -> None:
        self._kitchen = kitchen
        self._attention = attention
        self._usage: dict[str, _Usage] = {}
        self._boots: dict[str, str] = {}
        self._sample_due: dict[str, float] = {}
        self.duplicates = 0

    async def take(self, deliveries: Sequence[Delivery], *, live: bool) -> None:
        """Commit a batch; on return all of it may be acknowledged.

        Args:
            live: past the marker: before it, nothing proves life.

        Raises:
            StoreFailed: nothing of the batch may be acknowledged.
        """
        taken: list[_Taken] = []
        turned: list[_Turned] = []
        for delivery in deliveries:
            outcome = self._judge(delivery, live=live)
            if isinstance(outcome, _Taken):
                taken.append(outcome)
            elif outcome is not None:
                turned.append(outcome)
        if taken or turned:
            self.duplicates += await self._kitchen.recorder.commit(
                lambda recording: self._commit(recording, taken, turned)
            )
        if taken:
            self._attention.news(frozenset(item.device for item in taken))

    def _judge(self, delivery: Delivery, *, live: bool) -> _Taken | _Turned | None:
        """What becomes of one delivery; `None` where nothing is to be stored."""
        topic = topics.parse_from(delivery.topic)
        if topic is None:
            return _Turned("wrong_topic", "", f"not a device's topic: {delivery.topic}", delivery.payload)
        device = topic.device
        known = self._kitchen.directory.devices.get(device)
        if known is None:
            return _Turned("unknown_device", device, "no device of that name is registered", delivery.payload)
        size = len(delivery.payload)
        # What waited at the broker while the hub was away comes all at once; that is not the device's doing.
        excess = self._over_quota(device, size, counted=live)
        # A device that says too much is not thereby dead: its heartbeats are heard all the same.
        if excess is not None and (topic.category != "device" or size > _BEAT_MOST_BYTES):
            return _Turned("quota", device, excess, delivery.payload)
        registry = self._kitchen.registry
        try:
            if is_binary(delivery.attributes):
                event = read_binary_event(delivery.attributes, delivery.payload, registry)
            else:
                event = read_event(delivery.payload, registry)
        except DocumentError as error:
            return _Turned(error.reason, device, f"{error.path}: {error.detail}", delivery.payload)
        publisher = Publisher(device, f"cookwala://{self._kitchen.name}/{device}")
        refused = admit(event, publisher, self._kitchen.name, registry, topic=topic)
        if refused is not None:
            return _Turned(refused.reason, device, refused.detail, event.raw)
        if event.envelope.type == _HEARTBEAT:
            return self._heartbeat(device, event, delivery, live=live)
        if excess is not None:
            return _Turned("quota", device, excess, delivery.payload)
        if event.event_type.event_class == "telemetry" and not self._is_sample(device, delivery, live=live):
            return None
        if live and not delivery.retained and event.envelope.type == _ONLINE:
            # It was away from the broker, and what it said before may have been lost there.
            self._attention.incomplete(device)
        if live and not delivery.retained and isinstance(event.data, ExecutionData):
            self._boot(device, event.data.x_boot)
        return _Taken(device, event)

    def _heartbeat(self, device: str, event: Event, delivery: Delivery, *, live: bool) -> _Turned | None:
        if delivery.retained:
            return _Turned("retained_heartbeat", device, "a kept heartbeat proves no life", event.raw)
        if not live:
            return None
        beat = event.data
        assert isinstance(beat, Heartbeat)
        self._boot(device, beat.x_boot)
        if self._kitchen.liveness.heard(device, self._kitchen.clock.monotonic(), beat.interval_s):
            self._attention.returned(device)
        return None

    def _is_sample(self, device: str, delivery: Delivery, *, live: bool) -> bool:
        """Whether this reading is one of the few that are logged, as a trace of what was measured."""
        now = self._kitchen.clock.monotonic()
        if delivery.retained or not live or now < self._sample_due.get(device, now):
            return False
        self._sample_due[device] = now + SAMPLE_EVERY_S
        return True

    def _boot(self, device: str, boot: str | None) -> None:
        if boot is None:
            return
        before = self._boots.get(device)
        self._boots[device] = boot
        if before is not None and before != boot:
            self._attention.rebooted(device)

    def _over_quota(self, device: str, size: int, *, counted: bool) -> str | None:
        quotas = self._kitchen.settings.quotas
        if size > quotas.payload_bytes:
            return f"{size} bytes in one message, at most {quotas.payload_bytes}"
        if not counted:
            return None
        now = self._kitchen.clock.monotonic()
        usage = self._usage.get(device)
        if usage is None or now - usage.since >= _WINDOW_S:
            if usage is not None and usage.exceeded:
                self._attention.incomplete(device)
            usage = self._usage[device] = _Usage(now)
        usage.events += 1
        usage.bytes += size
        excess = None
        if usage.events > quotas.events_per_device_per_minute:
            excess = f"more than {quotas.events_per_device_per_minute} events in a minute"
        elif usage.bytes > quotas.payload_bytes * 64:
            excess = f"more than {quotas.payload_bytes * 64} bytes in a minute"
        usage.exceeded = usage.exceeded or excess is not None
        return excess

    def _commit(self, recording: Recording, taken: Sequence[_Taken], turned: Sequence[_Turned]) -> int:
        """One transaction for the batch; how many of its events were there already."""
        for away in turned:
            recording.turn_away(QUARANTINE, away.reason, away.device, away.detail, away.body)
        duplicates = 0
        for item in taken:
            if item.event.event_type.event_class == "telemetry":
                recording.record(TelemetrySampled(device=item.device, event=msgspec.Raw(item.event.raw)))
                continue
            refusal = self._take_one(recording, item)
            if refusal is None:
                continue
            if refusal.reason == "duplicate":
                duplicates += 1
            else:
                recording.turn_away(QUARANTINE, refusal.reason, item.device, refusal.detail, item.event.raw)
        return duplicates

    def _take_one(self, recording: Recording, item: _Taken) -> _Turned | None:
        fold, event, device = recording.fold, item.event, item.device
        seen = fold.one(
            "SELECT seq FROM seen WHERE kitchen = ?1 AND device = ?2 AND id = ?3", device, event.envelope.id
        )
        if seen is not None:
            if self._same_as_logged(recording, seen[0], event):
                return _Turned("duplicate", device, "", b"")
            return _Turned("id_conflict", device, f"{event.envelope.id} came before with other content", b"")
        if isinstance(event.data, ExecutionData):
            excess = self._too_many_subjects(recording, device, event.subject)
        elif isinstance(event.data, NotifyData):
            excess = self._too_many_questions(recording, device, event.subject)
        elif isinstance(event.data, InventoryData):
            excess = self._too_many_storages(recording, device, event.data.storage or "")
        else:
            excess = None
        if excess is not None:
            return _Turned("quota", device, excess, b"")
        try:
            with recording.part():
                recording.record(EventTaken(device=device, event=msgspec.Raw(event.raw)), event)
                said = msgspec.json.decode(event.raw)
                note_orders_in(recording, said, f"an event of {device}", most=EVENT_MOST)
        except Exception as error:
            if isinstance(error, StoreFailed) or (isinstance(error, sqlite3.Error) and is_store_error(error)):
                raise
            _LOG.exception("an event of %s cannot be folded; it goes to quarantine", device)
            return _Turned("not_processable", device, f"{type(error).__name__}: {error}", b"")
        return None

    def _same_as_logged(self, recording: Recording, seq: int, event: Event) -> bool:
        body = recording.logged(seq)
        if body is None:
            return True  # its payload was erased: nothing is left to differ from
        first = msgspec.json.decode(body, type=EventTaken)
        return same_content(bytes(first.event), event.raw)

    def _too_many_subjects(self, recording: Recording, device: str, subject: str) -> str | None:
        fold = recording.fold
        known = fold.one(
            "SELECT 1 FROM subject WHERE kitchen = ?1 AND device = ?2 AND subject = ?3 UNION ALL "
            "SELECT 1 FROM parked WHERE kitchen = ?1 AND device = ?2 AND subject = ?3 LIMIT 1",
            device,
            subject,
        )
        if known is not None:
            return None
        most = self._kitchen.settings.quotas.open_subjects_per_device
        row = fold.one(
            "SELECT (SELECT count(*) FROM subject WHERE kitchen = ?1 AND device = ?2 AND open = 1) + "
            "(SELECT count(DISTINCT subject) FROM parked WHERE kitchen = ?1 AND device = ?2)",
            device,
        )
        if row is not None and row[0] >= most:
            return f"more than {most} executions open at once"
        return None

    def _too_many_questions(self, recording: Recording, device: str, subject: str) -> str | None:
        most = self._kitchen.settings.quotas.open_subjects_per_device
        row = recording.fold.one(
            "SELECT count(*) FROM question WHERE kitchen = ?1 AND device = ?2 AND open = 1 AND subject <> ?3",
            device,
            subject,
        )
        return f"more than {most} questions open at once" if row is not None and row[0] >= most else None

    def _too_many_storages(self, recording: Recording, device: str, storage: str) -> str | None:
        row = recording.fold.one(
            "SELECT count(*) FROM inventory WHERE kitchen = ?1 AND device = ?2 AND storage <> ?3",
            device,
            storage,
        )
        full = row is not None and row[0] >= STORAGES_MOST
        return f"more than {STORAGES_MOST} storages of one device" if full else None
