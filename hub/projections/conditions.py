"""Alarms and faults in force (DESIGN §7): said by a device, ended by it or by a person.

Which holds is decided by the device's own times, not by what arrives first. Where that leaves a doubt the
alarm is shown: one too many can be ended by a person, one too few by nobody.
"""

from datetime import timedelta
from typing import Final

from events.catalogue import DeviceData, SafetyData
from events.envelope import Event
from events.times import format_date_time, parse_date_time
from hub.entries import ConditionEnded
from hub.projections.fold import Fold
from hub.projections.outbox import publish

CLEARED: Final = "cookwala.safety.cleared"
FAULT: Final = "cookwala.device.fault"
SAFETY: Final = "cookwala.safety."
_BACKWARDS: Final = timedelta(seconds=60)
"""An alarm that arrives after its own end is over only if the end came this soon after it by the device's
clock; a clock put back must not hide a new one."""


def is_condition(event_type: str) -> bool:
    """Whether events of this type are alarms or faults, or end one."""
    return event_type.startswith(SAFETY) or event_type == FAULT


def said(fold: Fold, device: str, event: Event) -> None:
    """A device reported an alarm or a fault, or that one is over."""
    if event.envelope.type == CLEARED:
        _cleared(fold, device, event)
    else:
        _raised(fold, device, event)


def ended(fold: Fold, entry: ConditionEnded) -> None:
    """A person ended every condition of one type at a device."""
    fold.run(
        "UPDATE condition SET active = 0 WHERE kitchen = ?1 AND device = ?2 AND type = ?3",
        entry.device,
        entry.type,
    )
    _show(fold, entry.device, entry.type)


def _raised(fold: Fold, device: str, event: Event) -> None:
    kind, name, time = event.envelope.type, _name(event), _utc(event.envelope.time)
    body = event.raw.decode()
    row = fold.one(
        "SELECT time, event, active FROM condition "
        "WHERE kitchen = ?1 AND device = ?2 AND type = ?3 AND name = ?4",
        device,
        kind,
        name,
    )
    # Two of one instant are put in an order of their own, so that it does not matter which came first.
    older = row is not None and (row[0], row[1]) >= (time, body)
    # What is long before one that has ended was not overtaken by it: the clock was put back.
    if row is not None and older and (row[2] or _just_before(time, row[0])):
        return
    ends = fold.all(
        "SELECT time FROM condition "
        "WHERE kitchen = ?1 AND device = ?2 AND type = ?3 AND name IN (?4, ?5, ?6)",
        device,
        CLEARED,
        "",
        kind,
        f"{kind} {name}",
    )
    safety = kind.startswith(SAFETY)
    active = not (safety and any(_just_before(time, end) for (end,) in ends))
    if older and not active:
        return
    _put(fold, device, kind, name, time=time, active=active, body=body)
    if active:
        publish(fold, kind, f"{device}/{kind}", body, retain=safety)


def _cleared(fold: Fold, device: str, event: Event) -> None:
    """The end of what the device names, or of all its alarms where it names none."""
    kind, name, time = _which(event), _name(event), _utc(event.envelope.time)
    scope = f"{kind} {name}".strip() if kind else ""
    row = fold.one(
        "SELECT time FROM condition WHERE kitchen = ?1 AND device = ?2 AND type = ?3 AND name = ?4",
        device,
        CLEARED,
        scope,
    )
    if row is not None and row[0] >= time:
        return
    _put(fold, device, CLEARED, scope, time=time, active=False, body="")
    over = fold.all(
        "SELECT type, name FROM condition WHERE kitchen = ?1 AND device = ?2 AND active = 1 AND time <= ?3 "
        "AND type LIKE 'cookwala.safety.%' ORDER BY type, name",
        device,
        time,
    )
    for other, its_name in over:
        if (kind and other != kind) or (name and its_name != name):
            continue
        fold.run(
            "UPDATE condition SET active = 0 WHERE kitchen = ?1 AND device = ?2 AND type = ?3 AND name = ?4",
            device,
            other,
            its_name,
        )
        _show(fold, device, other)
    publish(fold, CLEARED, device, event.raw.decode())


def _show(fold: Fold, device: str, kind: str) -> None:
    """What is kept for everybody of one safety type: the newest that still holds, or nothing."""
    newest = fold.one(
        "SELECT event FROM condition WHERE kitchen = ?1 AND device = ?2 AND type = ?3 AND active = 1 "
        "ORDER BY time DESC, event DESC LIMIT 1",
        device,
        kind,
    )
    publish(fold, kind, f"{device}/{kind}", newest[0] if newest else "", retain=True)


def _put(fold: Fold, device: str, kind: str, name: str, *, time: str, active: bool, body: str) -> None:
    fold.run(
        "INSERT INTO condition (kitchen, device, type, name, time, active, event) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET time = excluded.time, "
        "active = excluded.active, event = excluded.event",
        device,
        kind,
        name,
        time,
        int(active),
        body,
    )


def _name(event: Event) -> str:
    """Which of several of one type: the limit that fired, the part that is broken."""
    data = event.data
    if isinstance(data, SafetyData):
        return data.x_limit or ""
    return (data.x_fault or "") if isinstance(data, DeviceData) else ""


def _which(event: Event) -> str:
    data = event.data
    return (data.x_cleared or "") if isinstance(data, SafetyData) else ""


def _just_before(time: str, end: str) -> bool:
    return timedelta(0) <= parse_date_time(end) - parse_date_time(time) <= _BACKWARDS


def _utc(time: str) -> str:
    return format_date_time(parse_date_time(time))
