"""How a device says things: every event it publishes is made here (Core §7)."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from adapters.events import ExecutionData
from adapters.events import register_events as register_execution_events
from events.catalogue import InventoryItem, register_events
from events.envelope import Latency, write_event
from events.registry import Registry
from events.seams import Clock, Ids
from events.times import format_date_time
from events.topics import category_of
from sim.lifecycle import Change
from sim.memory import Outgoing
from sim.presence import Question


class Voice:
    """One device's events, under its boot, in its kitchen."""

    def __init__(self, kitchen: str, device: str, boot: str, clock: Clock, ids: Ids) -> None:
        self.kitchen = kitchen
        self.device = device
        self._boot = boot
        self._clock = clock
        self._ids = ids
        self._registry = Registry()
        register_events(self._registry)
        register_execution_events(self._registry)

    def change(self, change: Change) -> Outgoing:
        """The one event that reports a change of an execution."""
        life = change.life
        data = ExecutionData(
            request=life.request,
            state=life.state,
            step=life.step,
            refusal=life.refusal,
            human_needed=life.human_needed,
            x_boot=life.boot,
        )
        return self._say(change.event_type, data, subject=life.execution, seq=life.seq)

    def question(self, execution: str, step: str, question: Question, wait_s: float) -> Outgoing:
        """Ask the household whether somebody is there."""
        expires_at = format_date_time(self._clock.wall() + timedelta(seconds=wait_s))
        data = {
            "audience": ["role:household"],
            "urgency": "time_critical",
            "message": {"en": f"Is somebody with {self.device}? {step} may not run unattended."},
            "actions": [{"id": "here", "label": {"en": "I am here"}}],
            "relatesTo": execution,
            "expiresAt": expires_at,
            "x-aboyeur-nonce": question.nonce,
        }
        return self._say("cookwala.notify.request", data, subject=execution)

    def online(self) -> Outgoing:
        """Say that the device is on the bus."""
        return self._say("cookwala.device.online", {"x-aboyeur-boot": self._boot}, subject=self.device)

    def heartbeat(self, interval_s: float, counter: int) -> Outgoing:
        """A sign of life; never kept, never retained."""
        data = {"intervalS": interval_s, "x-aboyeur-boot": self._boot, "counter": counter}
        return self._say("cookwala.device.heartbeat", data, subject=self.device)

    def inventory(self, items: Sequence[InventoryItem]) -> Outgoing:
        """Say what is in store, all of it."""
        return self._say("cookwala.inventory.changed", {"items": list(items)}, subject=self.device)

    def fault(self, name: str, detail: str) -> Outgoing:
        """Say that something in the device is broken."""
        data = {"x-aboyeur-boot": self._boot, "x-aboyeur-fault": name, "x-aboyeur-detail": detail}
        return self._say("cookwala.device.fault", data, subject=self.device)

    def limit_fired(self, report: Mapping[str, Any]) -> Outgoing:
        """Say that a local limit fired, and what the device already did about it."""
        data = {"level": "alarm", "action": "none", "x-aboyeur-boot": self._boot, **report}
        return self._say("cookwala.safety.limit_fired", data, subject=self.device, latency="local_safety")

    def cleared(self, limit: str) -> Outgoing:
        """Say that an alarm is over."""
        data = {
            "level": "warning",
            "action": "none",
            "x-aboyeur-boot": self._boot,
            "x-aboyeur-cleared": "cookwala.safety.limit_fired",
            "x-aboyeur-limit": limit,
        }
        return self._say("cookwala.safety.cleared", data, subject=self.device)

    def _say(
        self,
        event_type: str,
        data: msgspec.Struct | Mapping[str, Any],
        *,
        subject: str,
        seq: int | None = None,
        latency: Latency | None = None,
    ) -> Outgoing:
        payload = write_event(
            self._registry,
            event_id=self._ids.new("ev"),
            source=f"cookwala://{self.kitchen}/{self.device}",
            event_type=event_type,
            time=self._clock.wall(),
            data=data,
            subject=subject,
            kitchen=self.kitchen,
            seq=seq,
            latency=latency,
        )
        return Outgoing(category_of(event_type), subject, payload)
