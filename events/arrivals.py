"""What a connection has received and nobody has taken yet, within bounds."""

from collections import deque
from collections.abc import Mapping
from types import MappingProxyType

from paho.mqtt.properties import Properties

from events.transport import Delivery

MOST_QOS0_QUEUED = 10_000
MOST_QOS0_QUEUED_BYTES = 16 * 1024 * 1024

_NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})
_STRUCTURED = "application/cloudevents"


class Arrivals:
    """What has arrived and was not taken yet: QoS 1 as it is, QoS 0 within a bound, together in order."""

    def __init__(self) -> None:
        self.count = 0
        self._certain: deque[tuple[int, Delivery]] = deque()
        self._fleeting: deque[tuple[int, Delivery]] = deque()
        self._fleeting_bytes = 0

    def __len__(self) -> int:
        return len(self._certain) + len(self._fleeting)

    def add(self, delivery: Delivery) -> int:
        """Put a delivery at the end; returns how many older QoS 0 ones had to go for it."""
        self.count += 1
        if delivery.qos:
            self._certain.append((self.count, delivery))
            return 0
        self._fleeting.append((self.count, delivery))
        self._fleeting_bytes += _size(delivery)
        dropped = 0
        while len(self._fleeting) > MOST_QOS0_QUEUED or self._fleeting_bytes > MOST_QOS0_QUEUED_BYTES:
            self._take_fleeting()
            dropped += 1
        return dropped

    def take(self, most: int) -> list[Delivery]:
        """Remove and return the oldest, at most `most`."""
        taken: list[Delivery] = []
        while len(taken) < most and len(self):
            if not self._fleeting or (self._certain and self._certain[0][0] < self._fleeting[0][0]):
                taken.append(self._certain.popleft()[1])
            else:
                taken.append(self._take_fleeting())
        return taken

    def _take_fleeting(self) -> Delivery:
        delivery = self._fleeting.popleft()[1]
        self._fleeting_bytes -= _size(delivery)
        return delivery


def _size(delivery: Delivery) -> int:
    texts = sum(len(name) + len(value) for name, value in delivery.attributes.items())
    return len(delivery.payload) + len(delivery.topic) + texts


def attributes_of(properties: Properties | None) -> Mapping[str, str]:
    """User properties as attributes; in binary content mode the content type is one of them.

    A name that is given twice stays visible as `name#2`, which no reader of attributes accepts: choosing one
    of the two would let sender and reader disagree.
    """
    pairs = getattr(properties, "UserProperty", None)
    if not pairs:
        return _NO_ATTRIBUTES
    attributes: dict[str, str] = {}
    for name, value in pairs:
        unique = name
        number = 1
        while unique in attributes:
            number += 1
            unique = f"{name}#{number}"
        attributes[unique] = value
    content_type = getattr(properties, "ContentType", None)
    if content_type and "specversion" in attributes and not content_type.startswith(_STRUCTURED):
        attributes.setdefault("datacontenttype", content_type)
    return MappingProxyType(attributes)
