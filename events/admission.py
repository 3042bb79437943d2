"""May this publisher say this? (ruling E2): a pure decision over an event that was read.

Who published is what the broker authenticated, never what the payload claims.
"""

from dataclasses import dataclass
from typing import Literal

from events.envelope import Event
from events.registry import Registry, Sender
from events.topics import FromTopic, category_of

RefusedReason = Literal["foreign_source", "foreign_subject", "forbidden_type", "wrong_topic", "wrong_kitchen"]


@dataclass(frozen=True, slots=True)
class Publisher:
    """Who published, by the broker's word.

    Attributes:
        device: its name, which is its broker user name.
        source: the CloudEvents `source` registered for it.
        role: what it is here.
    """

    device: str
    source: str
    role: Sender = "device"


@dataclass(frozen=True, slots=True)
class Refused:
    """Why an event is quarantined."""

    reason: RefusedReason
    detail: str


def admit(
    event: Event, publisher: Publisher, kitchen: str, registry: Registry, *, topic: FromTopic
) -> Refused | None:
    """`None` when `publisher` may say `event` on `topic` in `kitchen`; otherwise why not."""
    envelope = event.envelope
    if topic.kitchen != kitchen or envelope.cookwalakitchen not in (None, kitchen):
        return Refused("wrong_kitchen", f"this is kitchen {kitchen!r}")
    if topic.device != publisher.device:
        return Refused("wrong_topic", f"{publisher.device!r} publishes below its own name only")
    if envelope.source != publisher.source:
        return Refused("foreign_source", f"{publisher.device!r} speaks as {publisher.source!r} only")
    known = registry.lookup(envelope.type)
    if known is None or publisher.role not in known.senders:
        return Refused("forbidden_type", f"a {publisher.role} may not send {envelope.type}")
    if topic.category != category_of(envelope.type) or topic.subject != envelope.subject:
        return Refused("wrong_topic", "the topic names another category or subject than the event")
    own = (publisher.device, publisher.source)
    about_itself = envelope.type.startswith("cookwala.device.") or event.subject.startswith("cookwala://")
    if about_itself and event.subject not in own:
        return Refused("foreign_subject", f"{publisher.device!r} speaks of itself only")
    return None
