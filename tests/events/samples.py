"""Valid events, one of each kind of data, as plain JSON values."""

import json
from typing import Any

HOME = "cookwala://home/hob"


def event(event_type: str, data: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    """A valid event of the device `hob` in kitchen `home`; `None` leaves an attribute out."""
    made = {
        "specversion": "1.0",
        "id": "evt-1",
        "source": HOME,
        "type": event_type,
        "time": "2026-11-30T12:00:00.250Z",
        "data": data,
        **attributes,
    }
    return {name: value for name, value in made.items() if value is not None}


def raw_of(plain: Any) -> bytes:
    """`plain` as JSON text."""
    return json.dumps(plain, ensure_ascii=False).encode()


HEARTBEAT = event(
    "cookwala.device.heartbeat",
    {"intervalS": 10, "x-aboyeur-boot": "boot-1", "counter": 3, "firmware": "kept: in raw"},
    subject="hob",
    cookwalakitchen="home",
)
STEP = event(
    "cookwala.execution.step",
    {
        "request": "req-0001",
        "state": "needs_human",
        "step": {"node": "n1", "op": "cw.op.simmer", "progress": 0.5},
        "humanNeeded": {"why": "turn the eggs"},
        "x-aboyeur-boot": "boot-1",
    },
    subject="exe-0001",
    cookwalaseq=4,
    datacontenttype="application/json",
    cookwalalatency="realtime",
)
SMOKE = event(
    "cookwala.safety.smoke",
    {
        "level": "alarm",
        "action": "heat_off_all",
        "zone": "hob",
        "reading": {"ppm": 90.5},
        "detectedBy": {"kind": "sensor", "id": "sensor:smoke-1"},
        "expected": False,
        "x-maker": {"any": ["thing"]},
    },
    cookwalapriority="safety",
    cookwalalatency="local_safety",
)
QUESTION = event(
    "cookwala.notify.request",
    {
        "audience": ["role:household"],
        "urgency": "time_critical",
        "message": {"en": "Is somebody there?", "ar": "هل من أحد؟"},
        "actions": [{"id": "here", "label": {"en": "I am here"}}],
        "relatesTo": "exe-0001",
        "expiresAt": "2026-11-30T12:01:00Z",
        "x-aboyeur-nonce": "nonce-1",
    },
    subject="exe-0001",
    cookwalapriority="high",
)
READINGS = event(
    "cookwala.telemetry.reading",
    {
        "taskId": "t1",
        "readings": [
            {"sensor": "cw.sense.oil_temp", "value": 171.5, "unit": "degC", "confidence": 0.9},
            {"sensor": "cw.sense.lid", "value": "closed"},
        ],
    },
    cookwalasession="s1",
)
FAULT = event("cookwala.device.fault", {"x-aboyeur-boot": "boot-1", "code": "E7"}, subject="hob")
TASK = event(
    "cookwala.task.progress",
    {"taskId": "t1", "state": "running", "progress": 0.5, "assignee": {"kind": "human", "id": "human:anna"}},
)
TEAM = event("cookwala.team.bid", {"cfpId": "c1", "from": "robot:neo", "bid": {"actorId": "a", "etaS": 30}})
STOCK = event("cookwala.inventory.low", {"items": [{"name": "flour", "anything": 1}], "storage": "fridge"})
VENDOR = event("x-acme.glow", {"colour": "red", "list": [1, {"a": 2}]})
PRESENCE = event(
    "cookwala.human.presence",
    {"present": True, "by": "person:anna", "x-aboyeur-nonce": "nonce-1", "room": "kitchen"},
    source="cookwala://home/hub",
    subject="person:anna",
    cookwalapriority="high",
)
"""Only a hub may send it."""

ALL = [HEARTBEAT, STEP, SMOKE, QUESTION, READINGS, FAULT, TASK, TEAM, STOCK, VENDOR]
