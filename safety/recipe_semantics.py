"""What a recipe means beyond its form: references, order, times, targets, tolerances (Core §3, §4).

The strict reader has passed the recipe before. Every problem is told, each with its place.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from events.times import parse_duration_s
from safety.advice.figures import Unreadable, figures_of, outside_envelope
from safety.documents import Condition, Node, Recipe
from safety.vocabulary import Vocabulary

SemanticReason = Literal[
    "duplicate_ref",
    "unknown_ref",
    "cycle",
    "target_outside_envelope",
    "figure_unreadable",
    "tolerance_not_allowed",
    "times_out_of_order",
    "bad_duration",
    "range_empty",
    "ccp_without_hazard",
    "ccp_elsewhere",
    "nobody_may",
]


@dataclass(frozen=True, slots=True)
class SemanticProblem:
    """One thing that is wrong: where (`$.process.nodes[3].inputs[0]`), which kind, and in words."""

    path: str
    reason: SemanticReason
    detail: str


def recipe_problems(
    recipe: Recipe, plain: Mapping[str, Any], vocabulary: Vocabulary
) -> tuple[SemanticProblem, ...]:
    """Everything that is wrong with `recipe`, in the order of its members.

    Args:
        plain: the same recipe as plain JSON values, for what it holds beyond the types.
    """
    return (
        *_unique_refs(recipe),
        *_references(recipe),
        *_acyclic(recipe),
        *_critical_points(recipe),
        *_figures(recipe, vocabulary),
        *_times(recipe),
        *_tolerances(plain),
    )


# --- Names ----------------------------------------------------------------------------------------


def _unique_refs(recipe: Recipe) -> Iterator[SemanticProblem]:
    nodes = recipe.process.nodes
    lists: tuple[tuple[str, str, Sequence[str | None]], ...] = (
        ("$.ingredients", "ref", [one.ref for one in recipe.ingredients]),
        ("$.equipment", "ref", [one.ref for one in recipe.equipment]),
        ("$.process.nodes", "id", [one.id for one in nodes]),
        ("$.process.nodes", "output", [one.output for one in nodes]),
        ("$.safety.hazards", "id", [one.id for one in recipe.safety.hazards]),
        ("$.safety.ccps", "id", [one.id for one in recipe.safety.ccps or ()]),
    )
    for place, member, names in lists:
        seen: dict[str, int] = {}
        for number, name in enumerate(names):
            if name is None:
                continue
            if name in seen:
                detail = f"{name} is also the {member} of [{seen[name]}]"
                yield SemanticProblem(f"{place}[{number}].{member}", "duplicate_ref", detail)
            else:
                seen[name] = number
    ingredients = {one.ref for one in recipe.ingredients}
    for number, node in enumerate(nodes):
        if node.output in ingredients:
            detail = f"{node.output} is an ingredient already"
            yield SemanticProblem(f"$.process.nodes[{number}].output", "duplicate_ref", detail)


def _references(recipe: Recipe) -> Iterator[SemanticProblem]:
    nodes = recipe.process.nodes
    ingredients = {one.ref for one in recipe.ingredients}
    outputs = {node.output for node in nodes if node.output is not None}
    equipment = {one.ref for one in recipe.equipment}
    hazards = {one.id for one in recipe.safety.hazards}
    points = {one.id for one in recipe.safety.ccps or ()}
    ids = {node.id for node in nodes}
    for number, node in enumerate(nodes):
        at = f"$.process.nodes[{number}]"
        yield from _missing(f"{at}.inputs", node.inputs, ingredients | outputs, "an ingredient or an output")
        if node.into is not None and node.into not in ingredients | outputs | equipment:
            yield SemanticProblem(f"{at}.into", "unknown_ref", f"{node.into} is nothing of this recipe")
        yield from _missing(f"{at}.equipment", node.equipment, equipment, "equipment of this recipe")
        yield from _missing(f"{at}.hazards", node.hazards, hazards, "a hazard of this recipe")
        if node.ccp is not None and node.ccp not in points:
            yield SemanticProblem(f"{at}.ccp", "unknown_ref", f"{node.ccp} is no critical control point")
        if node.assignment is not None and node.assignment.allowed == []:
            yield SemanticProblem(f"{at}.assignment.allowed", "nobody_may", "nobody may do this step")
    for number, edge in enumerate(_written_edges(recipe)):
        for end in ("from", "to"):
            if edge.get(end) not in ids:
                detail = f"{edge.get(end)} is no step"
                yield SemanticProblem(f"$.process.edges[{number}].{end}", "unknown_ref", detail)
    for number, group in enumerate(recipe.process.parallel_groups or ()):
        yield from _missing(f"$.process.parallelGroups[{number}]", group, ids, "a step")
    yield from _missing("$.safety.abort.neverLeave", recipe.safety.abort.never_leave, ids, "a step")
    for name in recipe.safety.supervision.reasons or ():
        if name not in ids:
            yield SemanticProblem(f"$.safety.supervision.reasons.{name}", "unknown_ref", f"{name} is no step")
    for language, text in recipe.text.items():
        for name in text.steps or ():
            if name not in ids:
                path = f"$.text.{language}.steps.{name}"
                yield SemanticProblem(path, "unknown_ref", f"{name} is no step")


def _missing(
    place: str, names: Sequence[str] | None, known: set[str], what: str
) -> Iterator[SemanticProblem]:
    for number, name in enumerate(names or ()):
        if name not in known:
            yield SemanticProblem(f"{place}[{number}]", "unknown_ref", f"{name} is not {what}")


# --- Order ----------------------------------------------------------------------------------------


def _acyclic(recipe: Recipe) -> Iterator[SemanticProblem]:
    """A circle of steps that wait for each other, by their inputs or by written edges."""
    nodes = recipe.process.nodes
    maker = {node.output: node.id for node in nodes if node.output is not None}
    waits: dict[str, set[str]] = {node.id: set() for node in nodes}
    for node in nodes:
        for name in (*(node.inputs or ()), *(filter(None, [node.into]))):
            source = maker.get(name)
            # What a step works on further may keep its name: `into` its own output is no wait.
            if source is not None and (source != node.id or name in (node.inputs or ())):
                waits[node.id].add(source)
    for edge in _written_edges(recipe):
        start, end = edge.get("from"), edge.get("to")
        # Only such an edge makes one step wait for the end of another.
        if edge.get("type", "finish_to_start") == "finish_to_start" and start in waits and end in waits:
            waits[end].add(start)
    free = [name for name, others in waits.items() if not others]
    blocked = {name: set(others) for name, others in waits.items() if others}
    while free:
        done = free.pop()
        for name in [name for name, others in blocked.items() if done in others]:
            blocked[name].discard(done)
            if not blocked[name]:
                del blocked[name]
                free.append(name)
    circle = _only_in_circles(blocked)
    for number, node in enumerate(nodes):
        if node.id in circle:
            detail = f"{node.id} waits, over {', '.join(sorted(circle)[:8])}, for itself"
            yield SemanticProblem(f"$.process.nodes[{number}]", "cycle", detail)


def _only_in_circles(blocked: Mapping[str, set[str]]) -> set[str]:
    """Without the steps that only wait for a circle and are in none."""
    left = dict(blocked)
    while True:
        needed = {other for others in left.values() for other in others}
        idle = [name for name in left if name not in needed]
        if not idle:
            return set(left)
        for name in idle:
            del left[name]


def _written_edges(recipe: Recipe) -> list[dict[str, Any]]:
    edges = recipe.process.edges
    return edges if isinstance(edges, list) else []


# --- Critical control points ----------------------------------------------------------------------


def _critical_points(recipe: Recipe) -> Iterator[SemanticProblem]:
    nodes = {node.id: node for node in recipe.process.nodes}
    hazards = {one.id for one in recipe.safety.hazards}
    guarded = {point.id: point.node for point in recipe.safety.ccps or ()}
    for number, point in enumerate(recipe.safety.ccps or ()):
        at = f"$.safety.ccps[{number}]"
        if point.node not in nodes:
            yield SemanticProblem(f"{at}.node", "unknown_ref", f"{point.node} is no step")
        # A hazard is named by its class (toxin.bacillus_cereus) or by the id of one of the recipe's own.
        if not point.hazard.strip():
            yield SemanticProblem(f"{at}.hazard", "ccp_without_hazard", "it names no hazard that it guards")
        elif "." not in point.hazard and point.hazard not in hazards:
            detail = "neither a class of hazard nor one of this recipe"
            yield SemanticProblem(f"{at}.hazard", "unknown_ref", detail)
    for number, node in enumerate(recipe.process.nodes):
        if node.ccp is None:
            continue
        at = f"$.process.nodes[{number}]"
        if node.ccp in guarded and guarded[node.ccp] != node.id:
            detail = f"{node.ccp} is written for the step {guarded[node.ccp]}"
            yield SemanticProblem(f"{at}.ccp", "ccp_elsewhere", detail)


# --- Targets and tolerances -----------------------------------------------------------------------


def _figures(recipe: Recipe, vocabulary: Vocabulary) -> Iterator[SemanticProblem]:
    for number, node in enumerate(recipe.process.nodes):
        at = f"$.process.nodes[{number}]"
        yield from _figures_of(f"{at}.params", node.op, node.params, vocabulary)
        for place, others in (("variants", node.variants), ("alternatives", node.alternatives)):
            for which, other in enumerate(others or ()):
                op = other.get("op", node.op)
                yield from _figures_of(
                    f"{at}.{place}[{which}].params", str(op), other.get("params"), vocabulary
                )


def _figures_of(path: str, op: str, params: Any, vocabulary: Vocabulary) -> Iterator[SemanticProblem]:
    if not isinstance(params, dict):
        return
    operation = vocabulary.operation(op)
    figures = figures_of(params)
    if isinstance(figures, Unreadable):
        yield SemanticProblem(path, "figure_unreadable", figures.detail)
    elif operation is not None and operation.envelope is not None:
        detail = outside_envelope(figures, operation.envelope, vocabulary)
        if detail is not None:
            yield SemanticProblem(path, "target_outside_envelope", f"{detail} for {op}")


def _tolerances(plain: Any) -> Iterator[SemanticProblem]:
    """Quantities and targets wherever they stand, also where no type reaches them."""
    for path, value in _objects(plain):
        if "value" not in value or "unit" not in value:
            continue
        celsius = value["unit"] == "degC"
        if "sensor" in value:
            if "toleranceAbs" in value:
                detail = "the tolerance of a target is absolute already and written as tolerance"
                yield SemanticProblem(f"{path}.toleranceAbs", "tolerance_not_allowed", detail)
        elif "tolerance" in value and celsius:
            detail = "a relative tolerance has no meaning on degC: write toleranceAbs"
            yield SemanticProblem(f"{path}.tolerance", "tolerance_not_allowed", detail)
        elif "tolerance" in value and "toleranceAbs" in value:
            detail = "a tolerance is relative or absolute, not both"
            yield SemanticProblem(f"{path}.toleranceAbs", "tolerance_not_allowed", detail)


def _objects(plain: Any, path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(plain, dict):
        yield path, plain
        for name, inner in plain.items():
            if not name.startswith("x-"):
                yield from _objects(inner, f"{path}.{name}")
    elif isinstance(plain, list):
        for number, inner in enumerate(plain):
            yield from _objects(inner, f"{path}[{number}]")


# --- Times ----------------------------------------------------------------------------------------


def _times(recipe: Recipe) -> Iterator[SemanticProblem]:
    process = recipe.process
    yield from _in_order(
        "$.process", (("activeTime", process.active_time), ("totalTime", process.total_time))
    )
    for number, node in enumerate(process.nodes):
        at = f"$.process.nodes[{number}]"
        if node.until is not None:
            yield from _condition_times(f"{at}.until", node.until, None)
        yield from _retry_times(at, node)
        for name in ("startAfter", "nextWithin"):
            written = (node.timing or {}).get(name)
            if written is not None and _seconds(written) is None:
                detail = "no duration of days, hours, minutes and seconds"
                yield SemanticProblem(f"{at}.timing.{name}", "bad_duration", detail)


def _retry_times(at: str, node: Node) -> Iterator[SemanticProblem]:
    extend = node.retry.extend_by if node.retry is not None else None
    if extend is not None and _seconds(extend) in (None, 0.0):
        yield SemanticProblem(f"{at}.retry.extendBy", "bad_duration", "an extension of no length")


def _condition_times(path: str, condition: Condition, most: str | None) -> Iterator[SemanticProblem]:
    if not condition.compares:
        yield from _in_order(
            path,
            (
                ("minTime", condition.min_time),
                ("nominalTime", condition.nominal_time),
                ("maxTime", condition.max_time),
            ),
        )
        most = condition.max_time or most
    hold = _seconds(condition.hold_for) if condition.hold_for is not None else None
    longest = _seconds(most) if most is not None else None
    if hold is not None and longest is not None and hold > longest:
        detail = f"it is to hold for {condition.hold_for}, longer than the step's maxTime {most}"
        yield SemanticProblem(f"{path}.holdFor", "times_out_of_order", detail)
    low, high = (condition.between or (None, None))[:2]
    if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
        yield SemanticProblem(f"{path}.between", "range_empty", "its first number is above its second")
    if (
        isinstance(condition.gte, int | float)
        and isinstance(condition.lte, int | float)
        and condition.gte > condition.lte
    ):
        yield SemanticProblem(path, "range_empty", "gte is above lte: nothing lies between")
    inner: list[tuple[str, Condition]] = []
    for name, parts in (("all", condition.all), ("any", condition.any)):
        inner.extend((f"{path}.{name}[{number}]", part) for number, part in enumerate(parts or ()))
    if condition.not_ is not None:
        inner.append((f"{path}.not", condition.not_))
    for place, part in inner:
        yield from _condition_times(place, part, most)


def _in_order(path: str, times: Iterable[tuple[str, str | None]]) -> Iterator[SemanticProblem]:
    """Each duration can be read and is no shorter than the one before it."""
    before: tuple[str, float] | None = None
    for name, text in times:
        if text is None:
            continue
        length = _seconds(text)
        if length is None:
            yield SemanticProblem(f"{path}.{name}", "bad_duration", "no duration that can be reckoned with")
            continue
        if before is not None and length < before[1]:
            detail = f"{name} is shorter than {before[0]}"
            yield SemanticProblem(f"{path}.{name}", "times_out_of_order", detail)
        before = (name, length)


def _seconds(text: Any) -> float | None:
    try:
        return parse_duration_s(text) if isinstance(text, str) else None
    except ValueError:
        return None
