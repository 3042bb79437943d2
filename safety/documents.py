"""The documents of cooking: recipes (Core §2, §3), and what the other documents of this room share with them.

What a dry run, a device or a hub decides by is typed; what nobody here decides by is only held to its JSON
kind. Unknown members are refused with their path wherever the public schema closes an object that is typed
here. All of these travel as the bytes they came in (ruling D3): keep those beside the decoded document.
"""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from events.documents import Document
from events.times import DATE_TIME_PATTERN, DURATION_PATTERN
from mandates.documents import Signature

DateTime = Annotated[str, Meta(pattern=DATE_TIME_PATTERN)]
Duration = Annotated[str, Meta(pattern=DURATION_PATTERN)]
FormatVersion = Annotated[str, Meta(pattern=r"^0\.[12]\.[0-9]+$(?!\n)")]
"""The version of the recipe or capabilities format itself: 0.1.x and 0.2.x are read (ruling D1)."""
CoreVersion = Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$(?!\n)")]
Version = Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$(?!\n)")]
Hash = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$(?!\n)")]
LocalRef = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$(?!\n)")]
VocabId = Annotated[str, Meta(pattern=r"^(cw|x-[a-z0-9-]+)\.[a-z0-9_.-]+$(?!\n)")]
LangMap = dict[str, str]
Loose = dict[str, Any]
"""An object of the public schema that nothing here decides by."""
Unit = Literal[
    "g", "kg", "mg", "ml", "l", "tsp", "tbsp", "cup", "pinch", "dash", "pcs",
    "degC", "W", "kW", "mm", "cm", "rpm", "Pa", "kPa", "pct", "s",
]  # fmt: skip
Severity = Literal["info", "low", "medium", "high", "critical"]
Attention = Literal["none", "periodic", "monitor", "continuous"]
FailureAction = Literal["retry", "extend", "ask_human", "handoff_human", "skip_optional", "abort_safe"]
OnSensorMissing = Literal["estimate", "time", "human", "refuse"]
Number = float | Annotated[str, Meta(pattern=r"^\{[a-z_]+\}$(?!\n)")]
"""A number, or the name of a parameter in braces that stands for one."""


# --- Recipe -----------------------------------------------------------------------------------------------


class Quantity(Document, frozen=True):
    """How much of something."""

    value: Annotated[float, Meta(ge=0)]
    unit: Unit
    tolerance: Annotated[float, Meta(ge=0, le=1)] | None = None
    tolerance_abs: Annotated[float, Meta(ge=0)] | None = None
    pieces: Annotated[float, Meta(ge=0)] | None = None
    mass_per_piece: "Quantity | None" = None
    density_g_per_ml: Annotated[float, Meta(gt=0)] | None = None


class Dish(Document, frozen=True):
    """What is cooked."""

    names: LangMap
    local_name: str | None = None
    cuisine: list[str] | None = None
    course: str | None = None
    tags: list[str] | None = None
    difficulty: str | None = None
    wikidata: str | None = None
    images: list[Loose] | None = None


class Yield(Document, frozen=True):
    """How much comes of it."""

    servings: Annotated[float, Meta(gt=0)]
    total_mass: Quantity | None = None
    scaling: Loose | None = None


class Ingredient(Document, frozen=True):
    """One ingredient; `allergens` adds to what the recipe declares as a whole."""

    ref: LocalRef
    ingredient_id: VocabId
    qty: Quantity
    legacy_id: str | None = None
    display: LangMap | None = None
    prep: Loose | None = None
    start_temp: str | None = None
    scaling: str | None = None
    to_taste: bool | None = None
    optional: bool | None = None
    substitutions: list[Loose] | None = None
    gtin: list[str] | None = None
    allergens: list[str] | None = None
    economy: Loose | None = None
    certifications: list[Loose] | None = None


class Equipment(Document, frozen=True):
    """A vessel, tool or source of heat that the recipe names."""

    ref: LocalRef
    class_: VocabId = field(name="class")
    optional: bool | None = None
    constraints: Loose | None = None


class Condition(Document, frozen=True):
    """When a step is finished: either a comparison (one of `sensor` and `vision`) or a combination.

    The public schema has two types here that it tells apart by their members; one type that refuses a
    mixture reads the same documents.
    """

    all: "list[Condition] | None" = None
    any: "list[Condition] | None" = None
    not_: "Condition | None" = field(default=None, name="not")
    min_time: Duration | None = None
    max_time: Duration | None = None
    nominal_time: Duration | None = None
    on_sensor_missing: OnSensorMissing | None = None
    sensor: VocabId | None = None
    vision: VocabId | None = None
    target: str | None = None
    gte: Number | None = None
    lte: Number | None = None
    eq: Any = None
    between: Annotated[list[Number], Meta(min_length=2, max_length=2)] | None = None
    unit: Unit | None = None
    hold_for: Duration | None = None
    confidence: Annotated[float, Meta(ge=0, le=1)] | None = None
    optional: bool | None = None
    human_confirm: bool | None = None

    @property
    def compares(self) -> bool:
        """Whether this is a comparison of one sensor or vision cue."""
        return self.sensor is not None or self.vision is not None

    def __post_init__(self) -> None:
        combines = any(getattr(self, name) is not None for name in _COMBINATION)
        if self.sensor is not None and self.vision is not None:
            raise ValueError("a comparison reads a sensor or a vision cue, not both")
        if self.compares and combines:
            raise ValueError("a comparison cannot also combine conditions or set times")
        if not self.compares and any(getattr(self, name) is not None for name in _COMPARISON):
            raise ValueError("a comparison needs a sensor or a vision cue")


_COMBINATION: Final = ("all", "any", "not_", "min_time", "max_time", "nominal_time", "on_sensor_missing")
_COMPARISON: Final = (
    "target", "gte", "lte", "eq", "between", "unit", "hold_for", "confidence", "optional", "human_confirm",
)  # fmt: skip


class Retry(Document, frozen=True):
    """How often a step may be tried again."""

    max: Annotated[int, Meta(ge=0)] | None = None
    extend_by: Duration | None = None


class Assignment(Document, frozen=True):
    """Who may do a step; without one, anybody."""

    allowed: list[Literal["human", "robot", "appliance", "any"]] | None = None
    preferred: Literal["human", "robot", "appliance"] | None = None
    reason: str | None = None


class Node(Document, frozen=True):
    """One step of the process graph. `params` stay plain: each operation has its own."""

    id: LocalRef
    op: VocabId
    inputs: list[LocalRef] | None = None
    output: LocalRef | None = None
    into: LocalRef | None = None
    equipment: list[LocalRef] | None = None
    params: Loose | None = None
    until: Condition | None = None
    on_timeout: FailureAction | None = None
    on_fail: FailureAction | None = None
    retry: Retry | None = None
    attention: Attention | None = None
    assignment: Assignment | None = None
    human_optional: bool | None = None
    timing: Loose | None = None
    hazards: list[LocalRef] | None = None
    ccp: LocalRef | None = None
    optional: bool | None = None
    variants: list[Loose] | None = None
    skill: str | None = None
    notes: LangMap | None = None
    source_steps: list[int] | None = None
    energy: Loose | None = None
    alternatives: list[Loose] | None = None
    pre: list[Loose] | None = None
    post: list[Loose] | None = None
    pause: Loose | None = None
    failure_modes: list[Loose] | None = None
    affordances: Loose | None = None
    space: Loose | None = None

    def __post_init__(self) -> None:
        if self.until is not None and self.until.compares:
            raise ValueError("until combines comparisons (all, any, not); it is not one itself")


class Process(Document, frozen=True):
    """The steps, in the order they are written."""

    nodes: Annotated[list[Node], Meta(min_length=1)]
    edges: Literal["implicit-from-inputs"] | list[Loose] | None = None
    parallel_groups: list[list[str]] | None = None
    active_time: Duration | None = None
    total_time: Duration | None = None
    make_ahead: list[Loose] | None = None


class Hazard(Document, frozen=True):
    """A danger that a step names by `id`."""

    id: LocalRef
    type: VocabId
    severity: Severity
    mitigation: list[str] | None = None
    limits: Loose | None = None


class CriticalControlPoint(Document, frozen=True):
    """A point of food safety that is watched and recorded."""

    id: LocalRef
    hazard: str
    node: LocalRef
    critical_limit: str | Loose
    monitoring: list[str]
    corrective: str
    limit: Condition | None = None
    record: bool | None = None


class Allergens(Document, frozen=True):
    """Allergens a recipe declares, by list."""

    eu14: list[str] | None = None
    us9: list[str] | None = None
    may_contain: list[str] | None = None


class Supervision(Document, frozen=True):
    """How closely the whole dish must be watched."""

    default: Literal["unattended_ok", "presence_required", "hands_on_required"]
    reasons: dict[str, str] | None = None


class Abort(Document, frozen=True):
    """What a device does when it gives the dish up."""

    steps: list[
        Literal[
            "heat_off",
            "lid_on",
            "vent_on",
            "move_pan_to_cool_zone_if_capable",
            "retract_arm",
            "stop_motion",
            "unlock_doors",
            "alert_user",
            "alert_emergency_contact",
            "call_emergency_services_if_fire",
        ]
    ]
    never_leave: list[str] | None = None


class Safety(Document, frozen=True):
    """The safety layer of a recipe."""

    hazards: list[Hazard]
    allergens: Allergens
    supervision: Supervision
    abort: Abort
    ccps: list[CriticalControlPoint] | None = None
    dietary: list[Loose] | None = None
    environment: Loose | None = None


class Verification(Document, frozen=True):
    """How far somebody has checked the recipe."""

    level: Literal["V0", "V1", "V2", "V3"]
    evidence: Loose | None = None
    reviewed_by: str | None = None
    generated_by: str | None = None
    notes: str | None = None


class Recipe(Document, frozen=True):
    """One revision of a recipe, as far as dry run, devices and hub decide by it (Core §2, §3)."""

    cookwala: FormatVersion
    id: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{1,63}$(?!\n)")]
    revision: Annotated[int, Meta(ge=1)]
    verification: Verification
    dish: Dish
    yield_: Yield = field(name="yield")
    ingredients: Annotated[list[Ingredient], Meta(min_length=1)]
    equipment: list[Equipment]
    process: Process
    safety: Safety
    text: dict[str, Loose]
    license: str
    schema_: str | None = field(default=None, name="$schema")
    context: Any = field(default=None, name="@context")
    updated: str | None = None
    hash: Hash | None = None
    signature: Signature | None = None
    legacy: Loose | None = None
    requires: Loose | None = None
    nutrition: Loose | None = None
    cost: Loose | None = None
    storage: Loose | None = None
    bindings: Loose | None = None
    source: Loose | None = None
    text_sidecars: Loose | None = None
    meta: Loose | None = None
    identity: Loose | None = None
    sensory: list[Loose] | None = None
    formula: Loose | None = None
    prep: Loose | None = None
    service: Loose | None = None
    acceptance: list[Loose] | None = None
    layers: Loose | None = None

    def allergens(self) -> frozenset[str]:
        """Every allergen the recipe declares, may contain, or has in an ingredient (Core §6.7)."""
        declared = self.safety.allergens
        lists = [declared.eu14, declared.us9, declared.may_contain]
        lists.extend(ingredient.allergens for ingredient in self.ingredients)
        return frozenset(name for names in lists for name in names or ())
