"""The seams through which time and chance enter: everything else asks them.

Nothing but these classes reads a clock or draws a random number, so that a simulation can replace both.
"""

import secrets
import time
from datetime import UTC, datetime
from typing import Protocol

import anyio


class Clock(Protocol):
    """Wall time for what people read, monotonic time for what is waited for."""

    def wall(self) -> datetime:
        """The current time, timezone-aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back; meaningful only as differences within one process."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait `seconds` of monotonic time."""
        ...


class Ids(Protocol):
    """Identifiers and secrets."""

    def new(self, prefix: str) -> str:
        """A new identifier `prefix-…`, never given out before; at most 64 characters."""
        ...

    def secret(self) -> str:
        """A token of 256 random bits, base64url without padding."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def wall(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


class SystemIds:
    """Identifiers and secrets from the operating system's random source."""

    def new(self, prefix: str) -> str:
        return f"{prefix}-{secrets.token_hex(10)}"

    def secret(self) -> str:
        return secrets.token_urlsafe(32)
