"""The fold itself: which entry changes what."""

import sqlite3
from typing import Final

from events.envelope import Event
from events.registry import Registry
from hub import entries
from hub.entries import Payload
from hub.executions.model import Execution
from hub.projections import conditions, enrolment, events, executions, precautions
from hub.projections.fold import Fold
from hub.records.log import chain

TABLES: Final = (
    "person",
    "token",
    "mandate",
    "recipe",
    "device",
    "execution",
    "attempt",
    "idempotency",
    "request",
    "subject",
    "parked",
    "condition",
    "question",
    "device_log",
    "forward",
    "recall",
    "inventory",
    "incident_report",
    "incident_delivery",
)
"""The projection tables, which hold nothing of when or in what order events arrived."""


class Projector:
    """Folds a kitchen's entries into its tables; the same on replay as live."""

    def __init__(self, kitchen: str, registry: Registry) -> None:
        self._kitchen = kitchen
        self._registry = registry

    def replay(self, connection: sqlite3.Connection, entry: chain.Entry) -> None:
        """Fold an entry as it stands in the log.

        Raises:
            msgspec.MsgspecError: it is not one of this version's entries.
        """
        self.apply(connection, entry.seq, entry.at, entries.decode(entry.payload))

    def fold(
        self,
        connection: sqlite3.Connection,
        seq: int,
        at: str,
        touched: dict[str, tuple[int, Execution]] | None = None,
    ) -> Fold:
        """The fold of an entry of this kitchen."""
        noted = {} if touched is None else touched
        return Fold(connection, self._kitchen, seq, at, self._registry, noted)

    def apply(
        self,
        connection: sqlite3.Connection,
        seq: int,
        at: str,
        payload: Payload,
        *,
        event: Event | None = None,
        touched: dict[str, tuple[int, Execution]] | None = None,
    ) -> None:
        """Fold one entry.

        Args:
            event: an `EventTaken`'s own event, where it has been read already.
            touched: where to note the executions that change.
        """
        fold = self.fold(connection, seq, at, touched)
        match payload:
            case entries.EventTaken():
                events.taken(fold, payload, event)
            case entries.DeviceRead():
                events.device_read(fold, payload)
            case entries.ExecutionAsked():
                executions.asked(fold, payload)
            case entries.StartSending():
                executions.start_sending(fold, payload)
            case entries.StartRefused():
                executions.start_refused(fold, payload)
            case entries.StartGivenUp():
                executions.start_given_up(fold, payload)
            case entries.StopAsked():
                executions.stop_asked(fold, payload)
            case entries.StopSent():
                executions.stop_sent(fold, payload)
            case entries.StopLanded():
                executions.stop_landed(fold, payload)
            case entries.ResumeAnswered():
                executions.resume_answered(fold, payload)
            case entries.DeviceLife():
                executions.device_life(fold, payload)
            case entries.DeviceRhythm():
                executions.device_rhythm(fold, payload)
            case entries.LogCollected():
                executions.log_collected(fold, payload)
            case entries.QuestionClosed():
                events.question_closed(fold, payload)
            case entries.ConditionEnded():
                conditions.ended(fold, payload)
            case entries.PersonEnrolled():
                enrolment.person_enrolled(fold, payload)
            case entries.PersonRemoved():
                enrolment.person_removed(fold, payload)
            case entries.MandateRegistered():
                enrolment.mandate_registered(fold, payload)
            case entries.MandateRevoked():
                enrolment.mandate_revoked(fold, payload)
            case entries.RecipeAdded():
                enrolment.recipe_added(fold, payload)
            case entries.DeviceRegistered():
                enrolment.device_registered(fold, payload)
            case entries.DeviceRemoved():
                enrolment.device_removed(fold, payload)
            case entries.TelemetrySampled():
                pass  # a trace for people who look back
            case entries.RecallLearned():
                precautions.recall_learned(fold, payload)
            case entries.IncidentQueued():
                precautions.incident_queued(fold, payload)
            case entries.IncidentAccepted():
                precautions.incident_accepted(fold, payload)
            case entries.ResumeAsked() | entries.PersonPresent() | entries.DamageAccepted():
                pass  # who said what, for the record: no table holds it
