"""What the hub is to publish on the public layout, in the order in which it came to hold (DESIGN §7)."""

from typing import Final, Literal

import msgspec

from adapters.documents import HumanNeeded, Refusal, State, Step
from events import topics
from events.documents import Document
from events.envelope import MAX_EVENT_BYTES
from hub.executions.advance import shown
from hub.executions.model import Execution
from hub.projections.fold import Fold, to_text

_TOPIC_MOST: Final = 4_096
_TYPE_OF_STATE: Final[dict[State, str]] = {
    "accepted": "cookwala.execution.accepted",
    "refused": "cookwala.execution.refused",
    "completed": "cookwala.execution.completed",
}


class _ExecutionData(Document, frozen=True):
    request: str
    state: State
    step: Step | None = None
    refusal: Refusal | None = None
    human_needed: HumanNeeded | None = None


class _HubEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    specversion: Literal["1.0"]
    id: str
    source: str
    type: str
    subject: str
    time: str
    datacontenttype: Literal["application/json"]
    cookwalaseq: int
    cookwalakitchen: str
    data: _ExecutionData


def publish(fold: Fold, event_type: str, subject: str | None, body: str, *, retain: bool = False) -> None:
    """Have `body` published where everybody may read it; what no broker would carry is left to the log."""
    topic = topics.public(fold.kitchen, topics.category_of(event_type), subject)
    if len(body) > MAX_EVENT_BYTES or len(topic) > _TOPIC_MOST:
        return
    fold.run(
        "INSERT INTO outbox (kitchen, topic, retain, body) VALUES (?1, ?2, ?3, ?4)", topic, int(retain), body
    )


def publish_changes(fold: Fold, before: Execution | None, after: Execution) -> None:
    """Have every state that a client is shown published, one event for each seq."""
    states = shown(before, after)
    for back, state in zip(range(len(states) - 1, -1, -1), states, strict=True):
        last = back == 0
        seq = after.seq - back
        same = before is not None and state == before.state
        event = _HubEvent(
            specversion="1.0",
            id=f"{after.id}.{seq}",
            source=f"cookwala://{fold.kitchen}/hub",
            type="cookwala.execution.step"
            if same
            else _TYPE_OF_STATE.get(state, "cookwala.execution.state_changed"),
            subject=after.id,
            time=fold.at,
            datacontenttype="application/json",
            cookwalaseq=seq,
            cookwalakitchen=fold.kitchen,
            data=_ExecutionData(
                request=after.request,
                state=state,
                step=after.step if last else None,
                refusal=after.refusal if last else None,
                human_needed=after.human_needed if last else None,
            ),
        )
        publish(fold, event.type, after.id, to_text(event))
