"""The documents of cooking: recipes (Core §2, §3), and what the other documents of this room share with them.

What a dry run, a device or a hub decides by is typed; what nobody here decides by is only held to its JSON
kind. Unknown members are refused with their path wherever the public schema closes an object that is typed
here. All of these travel as the bytes they came in (ruling D3): keep those beside the decoded document.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import UNSET, Meta, field

from events.documents import Document
from events.texts import Date, LangMap, LangTag, Name, UntrustedText
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
    """How much of something; a relative tolerance only on a scale with a true zero (Core §4; ruling D2)."""

    value: Annotated[float, Meta(ge=0)]
    unit: Unit
    tolerance: Annotated[float, Meta(ge=0, le=1)] | None = None
    tolerance_abs: Annotated[float, Meta(ge=0)] | None = None
    pieces: Annotated[float, Meta(ge=0)] | None = None
    mass_per_piece: "Quantity | None" = None
    density_g_per_ml: Annotated[float, Meta(gt=0)] | None = None

    json_schema: ClassVar[Mapping[str, Any]] = {
        "not": {"required": ["tolerance", "toleranceAbs"]},
        "if": {"required": ["tolerance"]},
        "then": {"properties": {"unit": {"not": {"const": "degC"}}}},
    }

    def __post_init__(self) -> None:
        if self.tolerance is not None and self.tolerance_abs is not None:
            raise ValueError("a tolerance is relative or absolute, not both")
        if self.tolerance is not None and self.unit == "degC":
            raise ValueError("a relative tolerance has no meaning on degC: write toleranceAbs")


class Target(Document, frozen=True):
    """What a sensor is to show; `tolerance` is absolute, in the unit of `value` (ruling D2)."""

    sensor: VocabId
    value: float
    unit: Unit
    tolerance: Annotated[float, Meta(ge=0)] | None = None
    target: Name | None = None


class Dish(Document, frozen=True):
    """What is cooked."""

    names: LangMap
    local_name: UntrustedText | None = None
    cuisine: list[Name] | None = None
    course: Name | None = None
    tags: list[Name] | None = None
    difficulty: Name | None = None
    wikidata: Name | None = None
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
    legacy_id: Name | None = None
    display: LangMap | None = None
    prep: Loose | None = None
    start_temp: Name | None = None
    scaling: Name | None = None
    to_taste: bool | None = None
    optional: bool | None = None
    substitutions: list[Loose] | None = None
    gtin: list[Name] | None = None
    allergens: list[Name] | None = None
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
    target: Name | None = None
    gte: Number | None = None
    lte: Number | None = None
    eq: Any = UNSET
    """Any value, `null` too; `UNSET` without one."""
    between: Annotated[list[Number], Meta(min_length=2, max_length=2)] | None = None
    unit: Unit | None = None
    hold_for: Duration | None = None
    confidence: Annotated[float, Meta(ge=0, le=1)] | None = None
    optional: bool | None = None
    human_confirm: bool | None = None

    json_schema: ClassVar[Mapping[str, Any]] = {
        "if": {"anyOf": [{"required": ["sensor"]}, {"required": ["vision"]}]},
        "then": {
            "oneOf": [{"required": ["sensor"]}, {"required": ["vision"]}],
            "properties": dict.fromkeys(
                ("all", "any", "not", "minTime", "maxTime", "nominalTime", "onSensorMissing"), False
            ),
        },
        "else": {
            "properties": dict.fromkeys(
                (
                    "target",
                    "gte",
                    "lte",
                    "eq",
                    "between",
                    "unit",
                    "holdFor",
                    "confidence",
                    "optional",
                    "humanConfirm",
                ),
                False,
            )
        },
    }

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
        compared = self.eq is not UNSET or any(getattr(self, name) is not None for name in _COMPARISON)
        if compared and not self.compares:
            raise ValueError("a comparison needs a sensor or a vision cue")


_COMBINATION: Final = ("all", "any", "not_", "min_time", "max_time", "nominal_time", "on_sensor_missing")
_COMPARISON: Final = (
    "target", "gte", "lte", "between", "unit", "hold_for", "confidence", "optional", "human_confirm",
)  # fmt: skip


class Retry(Document, frozen=True):
    """How often a step may be tried again."""

    max: Annotated[int, Meta(ge=0)] | None = None
    extend_by: Duration | None = None


class Assignment(Document, frozen=True):
    """Who may do a step; without one, anybody."""

    allowed: list[Literal["human", "robot", "appliance", "any"]] | None = None
    preferred: Literal["human", "robot", "appliance"] | None = None
    reason: UntrustedText | None = None


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
    skill: Name | None = None
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

    json_schema: ClassVar[Mapping[str, Any]] = {
        "properties": {"until": {"properties": {"sensor": False, "vision": False}}}
    }

    def __post_init__(self) -> None:
        if self.until is not None and self.until.compares:
            raise ValueError("until combines comparisons (all, any, not); it is not one itself")


class Process(Document, frozen=True):
    """The steps, in the order they are written."""

    nodes: Annotated[list[Node], Meta(min_length=1)]
    edges: Literal["implicit-from-inputs"] | list[Loose] | None = None
    parallel_groups: list[list[Name]] | None = None
    active_time: Duration | None = None
    total_time: Duration | None = None
    make_ahead: list[Loose] | None = None


class Hazard(Document, frozen=True):
    """A danger that a step names by `id`."""

    id: LocalRef
    type: VocabId
    severity: Severity
    mitigation: list[UntrustedText] | None = None
    limits: Loose | None = None


class CriticalControlPoint(Document, frozen=True):
    """A point of food safety that is watched and recorded."""

    id: LocalRef
    hazard: Name
    node: LocalRef
    critical_limit: UntrustedText | Loose
    monitoring: list[UntrustedText]
    corrective: UntrustedText
    limit: Condition | None = None
    record: bool | None = None


class Allergens(Document, frozen=True):
    """Allergens a recipe declares, by list."""

    eu14: list[Name] | None = None
    us9: list[Name] | None = None
    may_contain: list[Name] | None = None


class Supervision(Document, frozen=True):
    """How closely the whole dish must be watched."""

    default: Literal["unattended_ok", "presence_required", "hands_on_required"]
    reasons: dict[Name, UntrustedText] | None = None


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
    never_leave: list[Name] | None = None


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
    reviewed_by: Name | None = None
    generated_by: Name | None = None
    notes: UntrustedText | None = None


class RecipeText(Document, frozen=True):
    """A recipe in words, in one language; no machine is steered by it."""

    title: UntrustedText | None = None
    intro: UntrustedText | None = None
    cultural_notes: UntrustedText | None = None
    steps: dict[Name, UntrustedText] | None = None
    tips: list[UntrustedText] | None = None
    legacy_steps: list[UntrustedText] | None = None


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
    text: dict[LangTag, RecipeText]
    license: Name
    schema_: Name | None = field(default=None, name="$schema")
    context: Any = field(default=None, name="@context")
    updated: Date | None = None
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
