"""The effects of devices' events and reads: order and questions (DESIGN §4; ruling E1)."""

from typing import Final

import msgspec

from adapters.documents import State
from adapters.events import ExecutionData
from adapters.states import FINAL
from events.envelope import Event, read_event
from events.sequence import Position, place
from events.times import format_date_time, parse_date_time
from hub.entries import DeviceRead, EventTaken, QuestionClosed
from hub.executions.model import DeviceReport, within_bounds
from hub.projections import conditions, executions, precautions
from hub.projections.fold import Fold, to_text
from hub.projections.outbox import publish

_QUESTION: Final = "cookwala.notify.request"
_MOST_PARKED: Final = 256
"""Per subject; what comes beyond is in the log and healed by reading the device."""

_STATE_OF_TYPE: Final[dict[str, State]] = {
    "cookwala.execution.accepted": "accepted",
    "cookwala.execution.refused": "refused",
    "cookwala.execution.completed": "completed",
}
_REPORT = msgspec.json.Decoder(DeviceReport)


def taken(fold: Fold, entry: EventTaken, event: Event | None = None) -> None:
    """An event was accepted; `event` is the entry's own, where it has been read already."""
    if event is None:
        event = read_event(bytes(entry.event), fold.registry)
    envelope = event.envelope
    fold.run(
        "INSERT INTO seen (kitchen, device, id, seq) VALUES (?1, ?2, ?3, ?4)",
        entry.device,
        envelope.id,
        fold.seq,
    )
    of_execution = isinstance(event.data, ExecutionData)
    if of_execution and envelope.cookwalaseq is not None:
        _in_order(fold, entry.device, event, event.subject, envelope.cookwalaseq)
        return
    if of_execution:
        _unnumbered(fold, entry.device, event)
    elif conditions.is_condition(envelope.type):
        conditions.said(fold, entry.device, event)
    elif envelope.type == _QUESTION:
        _question(fold, entry.device, event)
        publish(fold, envelope.type, envelope.subject, event.raw.decode())
    else:
        if envelope.type == precautions.INVENTORY:
            precautions.inventory_changed(fold, entry.device, event)
        publish(fold, envelope.type, envelope.subject or entry.device, event.raw.decode())


def device_read(fold: Fold, entry: DeviceRead) -> None:
    """A device's own word on one execution: believed before any event (DESIGN §4)."""
    said, subject = entry.report, entry.device_execution
    if said is None or subject is None:
        _forgotten(fold, entry)
        return
    row = fold.one(
        "SELECT boot, seq FROM subject WHERE kitchen = ?1 AND device = ?2 AND subject = ?3",
        entry.device,
        subject,
    )
    if row is not None and row[0] == said.boot and said.seq < row[1]:
        return
    request = entry.ref if entry.ref != subject else None
    # What came without a boot was said under the one that the device's status names.
    fold.run(
        "UPDATE OR REPLACE parked SET boot = ?4 "
        "WHERE kitchen = ?1 AND device = ?2 AND subject = ?3 AND boot = ''",
        entry.device,
        subject,
        said.boot,
    )
    overtaken = fold.all(
        "SELECT event FROM parked WHERE kitchen = ?1 AND device = ?2 AND subject = ?3 AND boot = ?4 "
        "AND seq <= ?5 ORDER BY seq",
        entry.device,
        subject,
        said.boot,
        said.seq,
    )
    fold.run(
        "DELETE FROM parked WHERE kitchen = ?1 AND device = ?2 AND subject = ?3 "
        "AND (boot <> ?4 OR seq <= ?5)",
        entry.device,
        subject,
        said.boot,
        said.seq,
    )
    for (body,) in overtaken:
        publish(fold, "cookwala.execution.state_changed", subject, body)
    _set_position(fold, entry.device, subject, request, said)
    executions.reported(fold, entry.device, subject, request, said=said, at=fold.at)
    _release(fold, entry.device, subject, said)


def _forgotten(fold: Fold, entry: DeviceRead) -> None:
    """The device knows nothing of it any more: no hole can close, and nothing of it is open."""
    fold.run(
        "DELETE FROM parked WHERE kitchen = ?1 AND device = ?2 AND subject = ?3", entry.device, entry.ref
    )
    fold.run(
        "UPDATE subject SET open = 0 WHERE kitchen = ?1 AND device = ?2 AND (subject = ?3 OR request = ?3)",
        entry.device,
        entry.ref,
    )
    executions.forgotten(fold, entry.device, entry.ref)


def question_closed(fold: Fold, entry: QuestionClosed) -> None:
    fold.run(
        "UPDATE question SET open = 0 WHERE kitchen = ?1 AND device = ?2 AND nonce = ?3",
        entry.device,
        entry.nonce,
    )


def _in_order(fold: Fold, device: str, event: Event, subject: str, seq: int) -> None:
    row = fold.one(
        "SELECT boot, seq, report FROM subject WHERE kitchen = ?1 AND device = ?2 AND subject = ?3",
        device,
        subject,
    )
    data = event.data if isinstance(event.data, ExecutionData) else None
    boot = data.x_boot if data is not None and data.x_boot is not None else (row[0] if row else "")
    position = Position(row[0], row[1]) if row else None
    where = place(position, boot, seq)
    if where == "late":
        return
    if where == "apply":
        before = _REPORT.decode(row[2]) if row else None
        said = _report_of(event, boot, seq, before)
        _apply(fold, device, subject, event, said)
        _release(fold, device, subject, said)
        return
    parked = fold.one(
        "SELECT count(*) FROM parked WHERE kitchen = ?1 AND device = ?2 AND subject = ?3", device, subject
    )
    if parked is not None and parked[0] < _MOST_PARKED:
        fold.run(
            "INSERT INTO parked (kitchen, device, subject, boot, seq, event) VALUES (?1, ?2, ?3, ?4, ?5, ?6) "
            "ON CONFLICT DO NOTHING",
            device,
            subject,
            boot,
            seq,
            event.raw.decode(),
        )


def _release(fold: Fold, device: str, subject: str, said: DeviceReport) -> None:
    """Apply what was parked and now follows without a hole."""
    while True:
        row = fold.one(
            "SELECT event FROM parked WHERE kitchen = ?1 AND device = ?2 AND subject = ?3 AND boot = ?4 "
            "AND seq = ?5",
            device,
            subject,
            said.boot,
            said.seq + 1,
        )
        if row is None:
            return
        fold.run(
            "DELETE FROM parked "
            "WHERE kitchen = ?1 AND device = ?2 AND subject = ?3 AND boot = ?4 AND seq = ?5",
            device,
            subject,
            said.boot,
            said.seq + 1,
        )
        event = read_event(row[0].encode(), fold.registry)
        said = _report_of(event, said.boot, said.seq + 1, said)
        _apply(fold, device, subject, event, said)


def _apply(fold: Fold, device: str, subject: str, event: Event, said: DeviceReport) -> None:
    data = event.data
    request = data.request if isinstance(data, ExecutionData) else None
    _set_position(fold, device, subject, request, said)
    publish(fold, event.envelope.type, subject, event.raw.decode())
    # Without a subject of its own an event names the device, which is no reference to an execution.
    named = subject if event.envelope.subject is not None else None
    executions.reported(fold, device, named, request, said=said, at=_utc(event.envelope.time))


def _unnumbered(fold: Fold, device: str, event: Event) -> None:
    """An execution event without a number counts on arrival (ruling E1), after what is known already."""
    subject = event.subject
    row = fold.one(
        "SELECT boot, seq, report FROM subject WHERE kitchen = ?1 AND device = ?2 AND subject = ?3",
        device,
        subject,
    )
    before = _REPORT.decode(row[2]) if row else None
    said = _report_of(event, row[0] if row else "", row[1] if row else -1, before)
    _apply(fold, device, subject, event, said)


def _set_position(fold: Fold, device: str, subject: str, request: str | None, said: DeviceReport) -> None:
    fold.run(
        "INSERT INTO subject (kitchen, device, subject, boot, seq, request, open, report) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET boot = excluded.boot, "
        "seq = excluded.seq, request = coalesce(excluded.request, subject.request), open = excluded.open, "
        "report = excluded.report",
        device,
        subject,
        said.boot,
        said.seq,
        request,
        int(said.state not in FINAL),
        to_text(said),
    )
    if said.state in FINAL:
        executions.close_question(fold, device, subject)


def _report_of(event: Event, boot: str, seq: int, before: DeviceReport | None) -> DeviceReport:
    data = event.data
    assert isinstance(data, ExecutionData)
    state = data.state or _STATE_OF_TYPE.get(event.envelope.type) or (before.state if before else "accepted")
    return DeviceReport(
        state=state,
        seq=seq,
        boot=boot,
        step=within_bounds(data.step),
        refusal=data.refusal,
        human_needed=data.human_needed,
    )


def _question(fold: Fold, device: str, event: Event) -> None:
    data = event.data
    nonce = getattr(data, "x_nonce", None)
    if nonce is None:
        return
    subject = event.envelope.subject or device
    expires = _utc(data.expires_at) if data.expires_at else _utc(event.envelope.time)
    row = fold.one(
        "SELECT expires_at, nonce FROM question WHERE kitchen = ?1 AND device = ?2 AND subject = ?3",
        device,
        subject,
    )
    if row is not None and (row[0], row[1]) >= (expires, nonce):
        return
    fold.run(
        "INSERT INTO question (kitchen, device, subject, nonce, expires_at, why, open) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET nonce = excluded.nonce, "
        "expires_at = excluded.expires_at, why = excluded.why, open = excluded.open",
        device,
        subject,
        nonce,
        expires,
        data.message.get("en") or next(iter(data.message.values()), "is anybody there?"),
        int(not _over(fold, device, subject)),
    )


def _over(fold: Fold, device: str, subject: str) -> bool:
    """Whether an execution of a device has ended, so that what it asked for came to nothing."""
    row = fold.one(
        "SELECT open FROM subject WHERE kitchen = ?1 AND device = ?2 AND subject = ?3", device, subject
    )
    if row is not None and not row[0]:
        return True
    found = executions.attempt_of(fold, device, None, subject)
    return found is not None and executions.load(fold, found[0]).final


def _utc(time: str) -> str:
    return format_date_time(parse_date_time(time))
