"""What the hub expects of whatever carries events: connections that end for good, and receipts with them.

A `Session` is one connection. It is never repaired: whoever loses it asks the `Transport` for the next one,
subscribes again and reconciles. So an acknowledgement cannot reach a connection other than its message's.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol


class TransportLost(Exception):
    """The connection is gone, or could not be made; only a new one helps."""


class TransportRefused(TransportLost):
    """The broker said no: to the login, a subscription or a publication. Trying again alone does not help."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message as it arrived, unread.

    Attributes:
        topic: where it was published.
        payload: the very bytes.
        qos: 0 or 1.
        retained: whether the broker kept it from earlier; such a message is never fresh.
        attributes: MQTT 5 user properties (binary content mode); empty where there are none.
        receipt: what `Session.acknowledge` needs; 0 for QoS 0.
    """

    topic: str
    payload: bytes
    qos: int
    retained: bool
    attributes: Mapping[str, str]
    receipt: int


class Session(Protocol):
    """One connection, one generation; never used again after it broke."""

    generation: int

    async def subscribe(self, filters: Sequence[tuple[str, int]]) -> None:
        """Subscribe to (filter, QoS 0 or 1) pairs.

        Raises:
            TransportRefused: the broker refused one of them.
            TransportLost: the connection is gone or the broker does not answer.
        """
        ...

    async def batch(self, most: int) -> list[Delivery]:
        """Wait for at least one delivery and take what is there, at most `most`, in order of arrival.

        The same message may come twice (redelivery, overlapping subscriptions): the inbox keeps it to one
        effect.

        Raises:
            TransportLost: the connection is gone; what was not handed out will be delivered again.
        """
        ...

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        """Confirm deliveries of this very connection, after what they cause is committed. QoS 0 needs none.

        Raises:
            TransportLost: the connection is gone; nothing is confirmed, the broker will deliver again.
        """
        ...

    async def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool = False) -> None:
        """Publish; with QoS 1 the return means that the broker took it.

        Raises:
            TransportRefused: the broker answered that this may not be published.
            TransportLost: no confirmation in time; it may or may not have arrived.
        """
        ...


class Transport(Protocol):
    """Makes connections."""

    def connect(self) -> AbstractAsyncContextManager[Session]:
        """A fresh connection for the length of the context.

        Raises:
            TransportRefused: on entering, the broker refused the login.
            TransportLost: on entering, no connection could be made.
        """
        ...
