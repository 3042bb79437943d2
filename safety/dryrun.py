"""The dry run: could this device cook every step of this recipe? Nothing runs (Core §3).

A device asks it of itself before it starts anything. A hub asks it as advice, to choose a device; the
device's own answer is the one that counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from safety.advice.altitude import check_altitude
from safety.advice.figures import Unreadable, figures_of, heat_floor, outside_envelope
from safety.advice.ladder import choose_rung
from safety.advice.limits import asks_for_a_person, broken_limit, governing
from safety.advice.sensor_trust import trusted_sensors
from safety.device_documents import Capabilities, SafetyLimit, SafetyLimits
from safety.documents import Node, Recipe
from safety.vocabulary import Envelope, Vocabulary

DryRunReason = Literal[
    "missing_equipment",
    "missing_capability",
    "missing_sensor_no_fallback",
    "envelope_out_of_range",
    "safety_limit",
    "needs_human_present",
]
"""The refusal reasons of Core that a dry run, or a choice built on it, can come to."""
VerifiedBy = Literal["sensor", "model", "time", "human"]
WarningKind = Literal["critical_point_without_sensor", "deprecated_operation", "unknown_operation"]


@dataclass(frozen=True, slots=True)
class DryRunRefusal:
    """Why a recipe cannot be cooked; `node` is the step, `detail` is for people (at most 500 characters)."""

    reason: DryRunReason
    node: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class DryRunWarning:
    """Something a person should know of a step that is not refused for it."""

    kind: WarningKind
    node: str
    detail: str


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """Who does a step and how its end is verified.

    Attributes:
        rung: the rung of the ladder: a sensor or vision cue by its id, `model`, `time` or `human`. An
            operation without a ladder ends on `time`; so does one that the vocabulary does not know.
    """

    node: str
    op: str
    by: Literal["device", "human"]
    verified_by: VerifiedBy
    rung: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """The answer: the whole plan, or the plan up to the first step that is refused."""

    state: Literal["accepted", "refused"]
    plan: tuple[PlannedStep, ...]
    refusal: DryRunRefusal | None = None
    warnings: tuple[DryRunWarning, ...] = ()


def dry_run(
    recipe: Recipe,
    capabilities: Capabilities,
    vocabulary: Vocabulary,
    *,
    human_present: bool,
    allow_model: bool = True,
    limits: SafetyLimits | None = None,
    now: datetime,
    altitude_m: float = 0.0,
    demoted: frozenset[str] = frozenset(),
) -> DryRun:
    """Plan `recipe` on the device of `capabilities`, step by step, and stop at the first refusal.

    Args:
        human_present: whether a responsible person is there (Core §6.6).
        allow_model: whether the device may verify a step by a logged estimate.
        limits: the pack in force; a stricter limit wins over an envelope, a looser one changes nothing.
        now: aware; decides which calibrations still hold.
        altitude_m: how high the kitchen stands.
        demoted: sensors that contradict each other right now, and so do not count.

    Raises:
        ValueError: no kitchen stands at `altitude_m`.
    """
    room = _Room(
        capabilities=capabilities,
        vocabulary=vocabulary,
        human_present=human_present,
        allow_model=allow_model,
        limits=limits,
        sensors=trusted_sensors(capabilities, now) - demoted,
        altitude_m=check_altitude(altitude_m),
    )
    plan: list[PlannedStep] = []
    warnings: list[DryRunWarning] = []
    for node in recipe.process.nodes:
        step = _place(node, room)
        if isinstance(step, DryRunRefusal):
            return DryRun("refused", tuple(plan), step, tuple(warnings))
        plan.append(step)
        warnings.extend(_warnings(node, step, vocabulary))
    return DryRun("accepted", tuple(plan), None, tuple(warnings))


@dataclass(frozen=True, slots=True)
class _Room:
    """What stays the same from step to step."""

    capabilities: Capabilities
    vocabulary: Vocabulary
    human_present: bool
    allow_model: bool
    limits: SafetyLimits | None
    sensors: frozenset[str]
    altitude_m: float

    def device_may(self, node: Node) -> bool:
        """Whether the device declares the operation, a machine may run it and the recipe lets this one."""
        operation = self.vocabulary.operation(node.op)
        if operation is not None and not operation.executable:
            return False
        asked = self.vocabulary.current(node.op)
        declared = self.capabilities.capabilities.ops or ()
        return any(self.vocabulary.current(entry.op) == asked for entry in declared) and _allows(
            node, self.capabilities.actor.kind
        )

    def person_may(self, node: Node) -> bool:
        """Whether a person who is there can do the step by hand.

        An operation newer than the vocabulary goes only to a device that declares it (ruling D4).
        """
        return (
            self.human_present and _allows(node, "human") and self.vocabulary.operation(node.op) is not None
        )


def _allows(node: Node, who: str) -> bool:
    allowed = node.assignment.allowed if node.assignment else None
    return allowed is None or "any" in allowed or who in allowed


def _place(node: Node, room: _Room) -> PlannedStep | DryRunRefusal:
    if not room.device_may(node):
        if room.person_may(node):
            return PlannedStep(node.id, node.op, "human", "human", "human")
        return _refuse(
            node, "missing_capability", f"the device cannot do {node.op}, and nobody else who may is there"
        )
    operation = room.vocabulary.operation(node.op)
    envelope = operation.envelope if operation else None
    limits = governing(room.limits, node.op, envelope.medium if envelope else None, room.vocabulary)
    broken = _check_figures(node, envelope, limits, room)
    if broken is not None:
        return broken
    attended_only = operation is None or (envelope is not None and not envelope.unattended)
    if not room.human_present and (attended_only or asks_for_a_person(limits)):
        why = "may not run unattended" if operation else "is not known here and so may not run unattended"
        return _refuse(node, "needs_human_present", f"{node.op} {why}")
    if envelope is None:
        return PlannedStep(node.id, node.op, "device", "time", "time")
    rung = choose_rung(
        envelope,
        room.sensors,
        human_present=room.human_present,
        allow_model=room.allow_model,
        on_sensor_missing=node.until.on_sensor_missing if node.until else None,
    )
    if rung is None:
        return _refuse(node, "missing_sensor_no_fallback", f"the device has no way left to verify {node.op}")
    return PlannedStep(node.id, node.op, "device", _verified_by(rung), rung)


def _check_figures(
    node: Node, envelope: Envelope | None, limits: tuple[SafetyLimit, ...], room: _Room
) -> DryRunRefusal | None:
    """The first number of the step that breaks its envelope or a local limit."""
    params: Mapping[str, Any] = node.params or {}
    figures = figures_of(params)
    if isinstance(figures, Unreadable):
        return _refuse(node, "envelope_out_of_range", figures.detail)
    if envelope is not None:
        detail = outside_envelope(figures, envelope, room.vocabulary, altitude_m=room.altitude_m)
        if detail is not None:
            return _refuse(node, "envelope_out_of_range", f"{detail} for {node.op}")
    detail = broken_limit(limits, figures, heat_floor(figures, envelope, room.vocabulary))
    return None if detail is None else _refuse(node, "safety_limit", detail)


def _warnings(node: Node, step: PlannedStep, vocabulary: Vocabulary) -> list[DryRunWarning]:
    found: list[DryRunWarning] = []
    read_as = vocabulary.current(node.op)
    if read_as != node.op:
        detail = f"{node.op} is deprecated and read as {read_as}"
        found.append(DryRunWarning("deprecated_operation", node.id, detail))
    if vocabulary.operation(node.op) is None:
        detail = f"{node.op} is not known here; the device declares it, and says itself what holds"
        found.append(DryRunWarning("unknown_operation", node.id, detail[:500]))
    says = node.until.on_sensor_missing if node.until else None
    if node.ccp is not None and says is None and step.verified_by in ("model", "time"):
        # The public schema lets such a step default to refuse; here only what the recipe writes narrows.
        detail = f"{node.op} guards {node.ccp} and is verified by {step.verified_by} only"
        found.append(DryRunWarning("critical_point_without_sensor", node.id, detail))
    return found


def _verified_by(rung: str) -> VerifiedBy:
    fallbacks: dict[str, VerifiedBy] = {"model": "model", "time": "time", "human": "human"}
    return fallbacks.get(rung, "sensor")


def _refuse(node: Node, reason: DryRunReason, detail: str) -> DryRunRefusal:
    return DryRunRefusal(reason, node.id, detail[:500])
