"""What waits for a person, and what she says and does (rulings P1, P2, X7)."""

from dataclasses import dataclass
from typing import Final, Literal

import anyio

from adapters.protocol import DeviceError, DeviceUnreachable
from events.documents import Document
from hub.brigade import Brigade
from hub.entries import DeviceRead, PersonPresent, QuestionClosed, ResumeAnswered, ResumeAsked
from hub.executions.model import DeviceReport
from hub.executions.view import HubStatus, view
from hub.kitchen import Kitchen
from hub.orders import FIRST_ANSWER, OrderError, replayed
from hub.projections import executions
from hub.recorder import Recording
from hub.store.database import StoreFailed

_Outcome = Literal["answered", "too_late", "unreachable"]
_SHOWN_S: Final = 180.0
"""A question is shown for so long, on the monotonic clock: its device's wall clock may be an hour from the
hub's. Whether an answer counts is the device's judgement."""


class Need(Document, frozen=True):
    """One thing that waits for a person."""

    kind: Literal["resume", "presence", "handoff"]
    why: str
    what: str
    device: str | None = None
    execution: str | None = None
    seq: int | None = None
    nonce: str | None = None
    expires_at: str | None = None


class NeedList(Document, frozen=True):
    needs: list[Need]


@dataclass(frozen=True, slots=True)
class _Question:
    device: str
    subject: str
    nonce: str
    expires_at: str
    why: str


class PeopleDesk:
    """Where people look and answer."""

    def __init__(self, kitchen: Kitchen, brigade: Brigade) -> None:
        self._kitchen = kitchen
        self._brigade = brigade
        self._shown_since: dict[str, float] = {}

    async def needs(self) -> NeedList:
        """Everything that waits for a person."""
        found: list[Need] = []
        by_subject: dict[tuple[str, str], str] = {}
        for execution in self._kitchen.open_work.all():
            attempt = execution.attempt
            device = attempt.device if attempt else None
            if attempt is not None and attempt.device_execution is not None:
                by_subject[attempt.device, attempt.device_execution] = execution.id
            if execution.waiting is not None:
                found.append(
                    Need(
                        kind="handoff",
                        why=execution.waiting.why,
                        what=execution.waiting.what,
                        device=device,
                        execution=execution.id,
                        seq=execution.seq,
                    )
                )
            elif execution.state in ("needs_human", "paused"):
                human = execution.human_needed
                found.append(
                    Need(
                        kind="resume",
                        why=(human.why if human else None) or f"{device} is {execution.state}",
                        what=f"do it, then: aboyeur resume {execution.id}",
                        device=device,
                        execution=execution.id,
                        seq=execution.seq,
                        expires_at=human.by_when if human else None,
                    )
                )
        now = self._kitchen.clock.monotonic()
        questions = await self._questions()
        self._shown_since = {
            question.nonce: self._shown_since.get(question.nonce, now) for question in questions
        }
        for question in questions:
            if now - self._shown_since.get(question.nonce, now) > _SHOWN_S:
                continue
            found.append(
                Need(
                    kind="presence",
                    why=question.why,
                    what="if you are there: aboyeur here",
                    device=question.device,
                    execution=by_subject.get((question.device, question.subject)),
                    nonce=question.nonce,
                    expires_at=question.expires_at or None,
                )
            )
        return NeedList(
            needs=sorted(found, key=lambda need: (need.kind, need.execution or "", need.device or ""))
        )

    async def here(self, person: str, nonce: str | None) -> list[str]:
        """`person` says that she is there; answers the question `nonce`, or every open one.

        Returns:
            The nonces of the questions that their devices took the answer to.

        Raises:
            StoreFailed: it is not recorded; devices may have got the word all the same.
        """
        self._kitchen.presence.said(person)
        await self._kitchen.recorder.record(PersonPresent(id=person))
        asked = [one for one in await self._questions() if nonce is None or one.nonce == nonce]
        answered: list[str] = []
        failures: list[StoreFailed] = []

        async def answer(question: _Question) -> None:
            try:
                if await self._answer(person, question) == "answered":
                    answered.append(question.nonce)
            except StoreFailed as failure:
                failures.append(failure)

        # Beside each other: a device that hangs must not let another one's minute run out.
        async with anyio.create_task_group() as tasks:
            for question in asked:
                tasks.start_soon(answer, question)
        if failures:
            raise failures[0]
        return sorted(answered)

    async def _answer(self, person: str, question: _Question) -> _Outcome:
        outcome: _Outcome = "answered"
        adapter = self._brigade.adapter(question.device)
        word = self._kitchen.presence.answer(person, question.nonce)
        try:
            if adapter is None or word is None:
                outcome = "unreachable"
            else:
                await adapter.present(word)
        except DeviceError:
            outcome = "too_late"
        except DeviceUnreachable:
            outcome = "unreachable"
        if outcome == "unreachable":
            return outcome  # still open: the next word may get through
        entry = QuestionClosed(device=question.device, nonce=question.nonce, outcome=outcome, by=person)
        await self._kitchen.recorder.record(entry)
        return outcome

    async def _questions(self) -> list[_Question]:
        """The questions that devices asked and nobody has answered."""
        rows = await self._kitchen.store.read(
            lambda connection: connection.execute(
                "SELECT device, subject, nonce, expires_at, why FROM question WHERE kitchen = ? "
                "AND open = 1 ORDER BY device, subject",
                (self._kitchen.name,),
            ).fetchall()
        )
        return [_Question(*row) for row in rows]

    async def resume(
        self, person: str, execution: str, seq: int, key: str | None, body_hash: str
    ) -> HubStatus:
        """Go on after `person` did what was needed; `seq` is the hub's, as she saw it.

        Args:
            key: the request's Idempotency-Key, if it has one: the same again is answered as the first time.
            body_hash: of the request.

        Raises:
            OrderError: 404, 409, 412, 422, or 503 where the device does not answer.
        """
        if key is not None:
            first = await self._kitchen.store.read(
                lambda connection: connection.execute(
                    FIRST_ANSWER, (self._kitchen.name, person, key)
                ).fetchone()
            )
            if first is not None:
                return replayed(first, body_hash)
        entry = self._kitchen.open_work.get(execution)
        if entry is None:
            raise OrderError(409, "conflict", "the execution has ended: there is nothing to resume")
        now = entry.execution
        if now.seq != seq:
            raise OrderError(
                412, "precondition_failed", f"the execution is at seq {now.seq}: look again", seq=now.seq
            )
        attempt = now.attempt
        if now.state not in ("needs_human", "paused") or attempt is None or attempt.device_execution is None:
            raise OrderError(409, "conflict", f"the execution is {now.state}: there is nothing to resume")
        adapter = self._brigade.adapter(attempt.device)
        if adapter is None:
            raise OrderError(409, "conflict", f"{attempt.device} is no device of this kitchen any more")
        await self._kitchen.recorder.record(ResumeAsked(execution=execution, by=person))
        try:
            status = await adapter.resume(
                attempt.device_execution, attempt.seq, f"resume-{execution}-{seq}", person
            )
        except DeviceError as error:
            station = self._brigade.station(attempt.device)
            if station is not None:
                station.read(attempt.device_execution)
            raise OrderError(409, "conflict", f"{attempt.device} answered: {error}") from None
        except DeviceUnreachable as error:
            raise OrderError(
                503, "unreachable", f"{attempt.device} did not answer ({error}); look at the appliance"
            ) from None
        read = DeviceRead(
            device=attempt.device,
            ref=attempt.request,
            why="resume",
            device_execution=status.id,
            report=DeviceReport.of(status),
        )

        def work(recording: Recording) -> HubStatus:
            recording.record(read)
            if key is not None:
                first = recording.fold.one(FIRST_ANSWER, person, key)
                if first is not None:
                    return replayed(first, body_hash)
                recording.record(ResumeAnswered(execution=execution, by=person, key=key, body_hash=body_hash))
            return view(executions.load(recording.fold, execution))

        return await self._kitchen.recorder.commit(work)
