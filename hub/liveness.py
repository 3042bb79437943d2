"""Who is heard and who is not (DESIGN §4): heartbeats on the hub's monotonic clock. Pure.

Silence counts only while the hub itself listens: subscribed and past its marker. After a start, a reconnect
or a stall nobody is judged for three intervals. A stall makes the hub deaf until a new marker is through:
what was waiting for it meanwhile is old. Lost is said of the connection, never of the cooking.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

Life = Literal["unknown", "alive", "late", "lost"]

DEFAULT_INTERVAL_S: Final = 10.0
LATE_AFTER: Final = 1.5
"""Intervals of silence: one heartbeat is missed, with half an interval for the way."""
LOST_AFTER: Final = 3.0
STALL_S: Final = 1.0
"""A judge who was himself away this long between two looks has heard nobody and judges nobody."""


@dataclass(slots=True)
class _Pulse:
    interval_s: float
    life: Life
    since: float
    """When it came to be watched."""
    heard_at: float | None = None


class Liveness:
    """What is heard of each device. All times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._pulses: dict[str, _Pulse] = {}
        self._listening_since: float | None = None
        self._judged_at: float | None = None

    def watch(self, device: str, now: float, interval_s: float | None = None) -> None:
        """Begin to watch a device, if it is not watched yet; nothing is known of it but its interval."""
        self._pulses.setdefault(device, _Pulse(interval_s or DEFAULT_INTERVAL_S, "unknown", now))

    def forget(self, device: str) -> None:
        """Stop watching a device."""
        self._pulses.pop(device, None)

    def listening(self, now: float) -> None:
        """The hub is subscribed and past its marker."""
        self._listening_since = self._judged_at = now
        for pulse in self._pulses.values():
            pulse.life = "unknown"

    def deaf(self) -> None:
        """The hub's own connection is gone: silence proves nothing any more."""
        self._listening_since = None
        for pulse in self._pulses.values():
            pulse.life = "unknown"

    def heard(self, device: str, now: float, interval_s: float | None = None) -> bool:
        """A fresh sign of life; whether it is the first after silence."""
        pulse = self._pulses.get(device)
        if pulse is None or self._listening_since is None or self._away(now):
            return False
        before = pulse.life
        pulse.heard_at = now
        pulse.life = "alive"
        if interval_s is not None:
            pulse.interval_s = interval_s
        return before != "alive"

    def judge(self, now: float) -> list[tuple[str, Literal["late", "lost"]]]:
        """Look at everybody; who became late or lost since the last look."""
        if self._listening_since is None:
            return []
        if self._away(now):
            self.deaf()
            return []
        self._judged_at = now
        fallen: list[tuple[str, Literal["late", "lost"]]] = []
        for device, pulse in self._pulses.items():
            since = max(self._listening_since, pulse.since, pulse.heard_at or pulse.since)
            silence = (now - since) / pulse.interval_s
            if silence >= LOST_AFTER and pulse.life != "lost":
                pulse.life = "lost"
                fallen.append((device, "lost"))
            elif LATE_AFTER <= silence < LOST_AFTER and pulse.life == "alive":
                pulse.life = "late"
                fallen.append((device, "late"))
        return fallen

    @property
    def is_deaf(self) -> bool:
        """Whether nothing that is heard or not heard counts now."""
        return self._listening_since is None

    def _away(self, now: float) -> bool:
        return self._judged_at is not None and now - self._judged_at > STALL_S

    def life(self, device: str) -> Life:
        """What is known of a device now."""
        pulse = self._pulses.get(device)
        return pulse.life if pulse is not None else "unknown"

    def intervals(self) -> dict[str, float]:
        """Every device's heartbeat interval in seconds, as it said last."""
        return {device: pulse.interval_s for device, pulse in self._pulses.items()}

    def of(self, lives: Iterable[Life]) -> list[str]:
        """The devices whose life is one of `lives`."""
        wanted = set(lives)
        return [device for device, pulse in self._pulses.items() if pulse.life in wanted]
