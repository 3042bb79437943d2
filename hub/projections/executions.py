"""Executions, attempts and stops as projections: load, advance by the pure function, save."""

import msgspec

from hub.entries import (
    DeviceLife,
    DeviceRhythm,
    ExecutionAsked,
    LogCollected,
    ResumeAnswered,
    StartGivenUp,
    StartRefused,
    StartSending,
    StopAsked,
    StopLanded,
    StopSent,
)
from hub.executions import advance
from hub.executions.model import Attempt, DeviceReport, Execution, LogVerdict
from hub.executions.view import view
from hub.projections.fold import Fold, to_text
from hub.projections.outbox import publish_changes

_DECODER = msgspec.json.Decoder(Execution)


def read_execution(body: str | bytes) -> Execution:
    """An execution from its row."""
    return _DECODER.decode(body)


def load(fold: Fold, execution: str) -> Execution:
    """The execution called `execution`.

    Raises:
        LookupError: there is none; an entry about it cannot have been written.
    """
    row = fold.one("SELECT body FROM execution WHERE kitchen = ?1 AND id = ?2", execution)
    if row is None:
        raise LookupError(f"no execution {execution}")
    return read_execution(row[0])


def attempt_of(fold: Fold, device: str, request: str | None, subject: str | None) -> tuple[str, int] | None:
    """Which execution's attempt a device speaks of, by its request or by its own execution's id."""
    row = None
    if request is not None:
        row = fold.one(
            "SELECT execution, number FROM attempt WHERE kitchen = ?1 AND device = ?2 AND request = ?3",
            device,
            request,
        )
    if row is None and subject is not None:
        row = fold.one(
            "SELECT execution, number FROM attempt "
            "WHERE kitchen = ?1 AND device = ?2 AND device_execution = ?3",
            device,
            subject,
        )
    return (row[0], row[1]) if row else None


def asked(fold: Fold, entry: ExecutionAsked) -> None:
    attempts: tuple[Attempt, ...] = ()
    if entry.device is not None and entry.forward is not None:
        forward = entry.forward
        attempts = (Attempt(number=1, device=entry.device, request=forward.id, key=forward.idempotency_key),)
    execution = Execution(
        id=entry.execution,
        request=entry.request_id,
        principal=entry.principal,
        requested_by=entry.requested_by,
        recipe=entry.recipe,
        recipe_hash=entry.recipe_hash,
        state="accepted" if entry.refusal is None else "refused",
        updated_at=fold.at,
        refusal=entry.refusal,
        attempts=attempts,
    )
    _remember_answer(fold, entry.principal, entry.key, entry.body_hash, execution)
    fold.run(
        "INSERT INTO request (kitchen, id, principal, key) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        entry.request_id,
        entry.principal,
        entry.key,
    )
    save(fold, None, execution)
    if entry.forward is not None:
        fold.run(
            "INSERT INTO forward (kitchen, execution, attempt, body) VALUES (?1, ?2, 1, ?3)",
            entry.execution,
            to_text(entry.forward),
        )


def start_sending(fold: Fold, entry: StartSending) -> None:
    before = load(fold, entry.execution)
    save(fold, before, advance.sending(before, entry.attempt))


def start_refused(fold: Fold, entry: StartRefused) -> None:
    before = load(fold, entry.execution)
    detail = entry.refusal.detail or ""
    save(fold, before, advance.start_refused(before, entry.attempt, entry.refusal.reason, detail, fold.at))


def start_given_up(fold: Fold, entry: StartGivenUp) -> None:
    before = load(fold, entry.execution)
    save(fold, before, advance.start_given_up(before, entry.attempt, entry.delivered, fold.at))


def reported(
    fold: Fold, device: str, subject: str | None, request: str | None, *, said: DeviceReport, at: str
) -> None:
    """A device's report took its place in the order; let it take effect on the execution it belongs to.

    `subject` is the device's own id of the execution, where it gave one.
    """
    found = attempt_of(fold, device, request, subject)
    if found is None:
        return
    before = load(fold, found[0])
    save(fold, before, advance.report(before, found[1], subject, said, at))


def forgotten(fold: Fold, device: str, ref: str) -> None:
    """A device was read and does not know `ref`."""
    found = attempt_of(fold, device, ref, ref)
    if found is None:
        return
    before = load(fold, found[0])
    save(fold, before, advance.forgotten(before, found[1], fold.at))


def stop_asked(fold: Fold, entry: StopAsked) -> None:
    before = load(fold, entry.execution)
    save(fold, before, advance.stop_asked(before, entry.by, fold.at))


def stop_sent(fold: Fold, entry: StopSent) -> None:
    before = load(fold, entry.execution)
    save(fold, before, advance.stop_sent(before, fold.at))


def stop_landed(fold: Fold, entry: StopLanded) -> None:
    before = load(fold, entry.execution)
    save(fold, before, advance.stop_landed(before, fold.at))


def resume_answered(fold: Fold, entry: ResumeAnswered) -> None:
    _remember_answer(fold, entry.by, entry.key, entry.body_hash, load(fold, entry.execution))


def device_life(fold: Fold, entry: DeviceLife) -> None:
    fold.run(
        "UPDATE device SET life = ?3 WHERE kitchen = ?1 AND name = ?2",
        entry.device,
        "alive" if entry.life == "returned" else entry.life,
    )
    if entry.life != "lost":
        return
    for (body,) in fold.all("SELECT body FROM execution WHERE kitchen = ?1 AND open = 1 ORDER BY id"):
        before = read_execution(body)
        save(fold, before, advance.device_lost(before, entry.device, fold.at))


def device_rhythm(fold: Fold, entry: DeviceRhythm) -> None:
    fold.run(
        "UPDATE device SET interval_s = ?3 WHERE kitchen = ?1 AND name = ?2", entry.device, entry.interval_s
    )


def log_collected(fold: Fold, entry: LogCollected) -> None:
    fold.run(
        "INSERT INTO device_log (kitchen, execution, attempt, verdict, document) VALUES (?1, ?2, ?3, ?4, ?5) "
        "ON CONFLICT DO UPDATE SET verdict = excluded.verdict, document = excluded.document",
        entry.execution,
        entry.attempt,
        entry.verdict,
        entry.document,
    )
    before = load(fold, entry.execution)
    if entry.attempt == len(before.attempts):
        verdict = LogVerdict(
            verdict=entry.verdict, outcome=entry.outcome, signed_at_unprotected=entry.signed_at_unprotected
        )
        save(fold, before, advance.log_collected(before, verdict))
    fold.run(
        "UPDATE attempt SET logged = 1 WHERE kitchen = ?1 AND execution = ?2 AND number = ?3",
        entry.execution,
        entry.attempt,
    )


def save(fold: Fold, before: Execution | None, after: Execution) -> None:
    """Put `after` in place of `before`, with its attempts, and have the changes published."""
    if after == before:
        return
    fold.touched[after.id] = (fold.seq, after)
    fold.run(
        "INSERT INTO execution (kitchen, id, open, body) VALUES (?1, ?2, ?3, ?4) "
        "ON CONFLICT DO UPDATE SET open = excluded.open, body = excluded.body",
        after.id,
        int(not after.final),
        to_text(after),
    )
    known = before.attempts if before else ()
    for attempt in after.attempts:
        if attempt not in known:
            _save_attempt(fold, after.id, attempt)
    if after.final and (before is None or not before.final):
        for attempt in after.attempts:
            if attempt.device_execution is not None:
                close_question(fold, attempt.device, attempt.device_execution)
    publish_changes(fold, before, after)


def _remember_answer(fold: Fold, principal: str, key: str, body_hash: str, execution: Execution) -> None:
    fold.run(
        "INSERT INTO idempotency (kitchen, principal, key, body_hash, execution, answer) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        principal,
        key,
        body_hash,
        execution.id,
        to_text(view(execution)),
    )


def close_question(fold: Fold, device: str, subject: str) -> None:
    """What a device asked about an execution of its own is over."""
    fold.run(
        "UPDATE question SET open = 0 WHERE kitchen = ?1 AND device = ?2 AND subject = ?3", device, subject
    )


def _save_attempt(fold: Fold, execution: str, attempt: Attempt) -> None:
    has_log = attempt.state in ("stopped", "completed", "failed")
    fold.run(
        "INSERT INTO attempt (kitchen, execution, number, device, request, device_execution, phase, logged) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET "
        "device_execution = excluded.device_execution, phase = excluded.phase, "
        "logged = max(attempt.logged, excluded.logged)",
        execution,
        attempt.number,
        attempt.device,
        attempt.request,
        attempt.device_execution,
        attempt.phase,
        int(attempt.phase == "closed" and not has_log),
    )
