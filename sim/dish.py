"""The dish on an appliance: its present step, what came out of those before, and what the log will say."""

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from adapters.documents import (
    CORE_VERSION,
    Consent,
    Deviation,
    ExecutionLog,
    Intervention,
    LogDevice,
    LogPrivacy,
    LogStep,
    SafetyEvent,
    Step,
    VerifiedBy,
)
from safety.documents import Node, Recipe
from safety.dryrun import PlannedStep
from safety.enforcement import FiredLimit
from safety.vocabulary import Vocabulary
from sim.physics import Body
from sim.step import StepRun

Outcome = Literal["served", "partial", "aborted_safe", "refused", "failed"]
MAX_NOTES: Final = 500
"""Interventions and safety events that one log holds at most."""


class Dish:
    """One recipe on its way through its plan. Instants are physical seconds, `…_at` the text of wall time."""

    def __init__(
        self,
        recipe: Recipe,
        plan: Sequence[PlannedStep],
        vocabulary: Vocabulary,
        sensors: frozenset[str],
        altitude_m: float = 0.0,
    ) -> None:
        self.recipe: Final = recipe.id
        self._nodes: dict[str, Node] = {node.id: node for node in recipe.process.nodes}
        self._plan = tuple(plan)
        self._vocabulary = vocabulary
        self._sensors = sensors
        self._altitude_m = altitude_m
        self._index = -1
        self._outputs: dict[str, Body] = {}
        self._started_at = ""
        self._run: StepRun | None = None
        self.steps: list[LogStep] = []
        self.interventions: list[Intervention] = []
        self.safety_events: list[SafetyEvent] = []

    @property
    def run(self) -> StepRun:
        """The step it is at.

        Raises:
            LookupError: no step was entered yet.
        """
        if self._run is None:
            raise LookupError("no step was entered yet")
        return self._run

    @property
    def entered(self) -> bool:
        """Whether the first step was entered."""
        return self._run is not None

    @property
    def planned(self) -> PlannedStep:
        """Who does the present step, and how it is verified."""
        return self._plan[self._index]

    @property
    def last(self) -> bool:
        """Whether no step follows."""
        return self._index + 1 >= len(self._plan)

    @property
    def unfinished(self) -> bool:
        """Whether the present step has no line in the log yet."""
        return len(self.steps) <= self._index

    @property
    def attended(self) -> bool:
        """Whether the device may do the present step only while a person is there (Core §6.6)."""
        if self.planned.by == "human":
            return False
        operation = self._vocabulary.operation(self.planned.op)
        return operation is None or (operation.envelope is not None and not operation.envelope.unattended)

    def enter(self, at_s: float, started_at: str) -> None:
        """Go to the next step; nothing is heated yet."""
        self._index += 1
        self._started_at = started_at
        node = self._nodes[self.planned.node]
        names = [*(node.inputs or []), *([node.into] if node.into else [])]
        parts = [self._outputs[name] for name in names if name in self._outputs]
        self._run = StepRun(
            node,
            self._vocabulary,
            sensors=self._sensors,
            parts=parts,
            at_s=at_s,
            altitude_m=self._altitude_m,
        )

    def step(self, at_s: float) -> Step:
        """The present step as a status shows it."""
        run, planned = self.run, self.planned
        return Step(
            node=planned.node,
            op=planned.op,
            started_at=self._started_at,
            progress=run.progress(at_s) if run.active else None,
            verified_by=planned.verified_by,
            readings=run.readings(at_s) or None,
        )

    def leave(
        self, at_s: float, ended_at: str, *, verified_by: VerifiedBy, deviation: Deviation | None = None
    ) -> None:
        """The present step is over: heat off, its result set aside, its line written."""
        run, planned = self.run, self.planned
        summary = run.summary(at_s)
        run.halt(at_s)
        if deviation is None and not run.envelope_ok:
            deviation = Deviation(kind="temperature_excursion")
        if deviation is None and run.extensions:
            deviation = Deviation(kind="extended_time")
        if run.node.output is not None and run.body is not None:
            self._outputs[run.node.output] = run.body
        self.steps.append(
            LogStep(
                node=planned.node,
                op=planned.op,
                verified_by=verified_by,
                envelope_ok=run.envelope_ok,
                started_at=self._started_at,
                ended_at=ended_at,
                summary=summary or None,
                deviation=deviation,
            )
        )

    def helped(self, intervention: Intervention) -> None:
        """Note that a person acted."""
        if len(self.interventions) < MAX_NOTES:
            self.interventions.append(intervention)

    def fired(self, limit: FiredLimit, at: str) -> None:
        """Note that a local limit fired."""
        if len(self.safety_events) < MAX_NOTES:
            node = self.planned.node if self.entered else None
            self.safety_events.append(SafetyEvent(at=at, limit=limit.limit, action=limit.action, node=node))


def write_log(
    *,
    log_id: str,
    execution: str,
    request: str,
    recipe: str,
    recipe_hash: str,
    device: LogDevice,
    outcome: Outcome,
    started_at: str,
    ended_at: str,
    servings: float | None,
    dish: Dish | None,
) -> dict[str, Any]:
    """The ExecutionLog, unsigned, as plain values; it holds nothing personal (Core §8)."""
    log = ExecutionLog(
        core=CORE_VERSION,
        kind="ExecutionLog",
        id=log_id,
        recipe=recipe,
        recipe_hash=recipe_hash,
        device=device,
        started_at=started_at,
        ended_at=ended_at,
        outcome=outcome,
        servings=servings,
        steps=dish.steps if dish else [],
        safety_events=(dish.safety_events if dish else None) or None,
        human_interventions=(dish.interventions if dish else None) or None,
        consent=Consent(dataset="none"),
        privacy=LogPrivacy(personal_data="none"),
        x_execution=execution,
        x_request=request,
    )
    plain: dict[str, Any] = msgspec.to_builtins(log)
    return plain
