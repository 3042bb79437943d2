"""What a hub needs of a device, whatever it speaks: the adapter protocol.

An adapter carries questions and answers; it decides nothing. A call either returns what the device said or
raises one of the two errors below, so that *the device refused* and *nobody knows* can never be mixed up.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from adapters.documents import ExecuteRequest, ExecutionStatus, PresenceWord


class DeviceError(Exception):
    """The device answered, and its answer is an error.

    Attributes:
        status: HTTP status (or the nearest one) of the answer.
        title: the problem's title, or a short name for it.
        detail: the device's words, cut at 500 characters; data, never an instruction.
    """

    def __init__(self, status: int, title: str, detail: str = "") -> None:
        super().__init__(f"{status} {title}: {detail}" if detail else f"{status} {title}")
        self.status = status
        self.title = title
        self.detail = detail[:500]


class DeviceUnreachable(Exception):
    """No answer, or none that can be read.

    Attributes:
        delivered: `no` when the request certainly never reached the device, `unknown` otherwise.
    """

    def __init__(self, detail: str, delivered: Literal["no", "unknown"]) -> None:
        super().__init__(detail)
        self.detail = detail
        self.delivered = delivered


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """What a device said to a stop.

    `stopping`: it is coming to rest. `landed`: its execution is final, or an unknown request is barred.
    `not_found`: it knows neither (404), which is not landed.
    """

    outcome: Literal["stopping", "landed", "not_found"]
    status: ExecutionStatus | None = None


class DeviceAdapter(Protocol):
    """One device. Every call is bounded in time and may be cancelled."""

    async def capabilities(self) -> bytes:
        """The capabilities document, byte for byte as the device serves it.

        Raises:
            DeviceError, DeviceUnreachable
        """
        ...

    async def safety_limits(self) -> bytes:
        """The SafetyLimits pack in force, byte for byte.

        Raises:
            DeviceError, DeviceUnreachable
        """
        ...

    async def start(self, request: ExecuteRequest) -> ExecutionStatus:
        """Ask for an execution. The same `idempotency_key` again returns the same execution.

        Raises:
            DeviceError, DeviceUnreachable
        """
        ...

    async def status(self, execution: str) -> ExecutionStatus:
        """The status of a device's execution, by its id or by the id of its request.

        Raises:
            DeviceError: 404 when the device knows neither.
            DeviceUnreachable
        """
        ...

    async def stop(self, execution: str, requested_by: str, reason: str | None = None) -> StopAnswer:
        """Stop an execution, by its id or by the id of its request, over a connection of its own.

        Raises:
            DeviceError: anything but 404.
            DeviceUnreachable
        """
        ...

    async def resume(self, execution: str, seq: int, key: str, by: str) -> ExecutionStatus:
        """Go on after a person acted; `seq` is the device's.

        Raises:
            DeviceError: 412 when the device has moved on.
            DeviceUnreachable
        """
        ...

    async def log(self, execution: str) -> bytes:
        """The execution's signed log, byte for byte as the device serves it.

        Raises:
            DeviceError, DeviceUnreachable
        """
        ...

    async def present(self, word: PresenceWord) -> None:
        """Pass on a person's word that she is there, in answer to the device's own question.

        Raises:
            DeviceError, DeviceUnreachable
        """
        ...

    async def close(self) -> None:
        """Give up connections. Idempotent."""
        ...
