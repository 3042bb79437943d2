"""The vocabularies: operations with envelopes and ladders, heat levels, incident types, allergens (Core §3;
ruling D4).

A vocabulary is a replaceable data file with a version. This room does no I/O: whoever needs one reads the
bytes, ours with `importlib.resources.files("safety").joinpath(VOCABULARY_RESOURCE).read_bytes()`. Units have
a module of their own, `safety/units.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Final, Literal

from msgspec import Meta, field

from events.documents import Document, DocumentError, read
from events.texts import Name
from safety.documents import Attention, Version, VocabId

VOCABULARY_RESOURCE: Final = "data/vocabulary-0.2.json"
INCIDENTS_RESOURCE: Final = "data/incidents-0.1.json"
ALLERGENS_RESOURCE: Final = "data/allergens-0.2.json"
DEFAULT_LIMITS_RESOURCE: Final = "data/limits-default.json"
"""A SafetyLimits document for simulated devices; a maker of real ones brings limits of her own."""

FALLBACK_RUNGS: Final = frozenset({"model", "time", "human"})
"""The rungs of a ladder that are not sensors."""
DEEP_FRY: Final = "cw.op.deep_fry"
OIL_SENSOR: Final = "cw.sense.oil_temp"


class Band(Document, frozen=True):
    """A closed range of numbers."""

    min: float
    max: float

    def __post_init__(self) -> None:
        if not self.min <= self.max:
            raise ValueError("a band's min is above its max")

    def holds(self, value: float) -> bool:
        """Whether `value` lies in the band, ends included."""
        return self.min <= value <= self.max


class Envelope(Document, frozen=True):
    """What must hold while an operation runs, and how that can be verified, best first.

    `temp_c` is °C at sea level (`safety/advice/altitude.py` shifts it), `pressure_kpa` kPa gauge.
    """

    medium: Name
    unattended: bool
    attention: Attention
    ladder: Annotated[list[Name], Meta(min_length=1)]
    temp_c: Band | None = None
    pressure_kpa: Band | None = field(default=None, name="pressureKPa")
    agitation: Literal["none", "occasional", "frequent", "continuous"] | None = None
    lid: Literal["on", "off", "ajar", "any"] | None = None
    hazards: list[VocabId] | None = None

    def __post_init__(self) -> None:
        # Core names those that need constant attention; none that may not run unattended has time as a rung,
        # so a file that gives it to one is refused whatever attention it writes beside it.
        if not self.unattended and "time" in self.ladder:
            raise ValueError("what may not run unattended never falls back to time (Core §3)")


class Operation(Document, frozen=True):
    """One operation. Without an envelope it is neither hot nor dangerous."""

    id: VocabId
    executable: bool = True
    """False for steps that only a person can do, whatever a device declares."""
    envelope: Envelope | None = None
    deprecated: bool = False
    replaced_by: VocabId | None = None
    """What a deprecated operation is read as."""

    def __post_init__(self) -> None:
        if self.replaced_by is not None and not self.deprecated:
            raise ValueError("only a deprecated operation is replaced by another")
        if self.replaced_by is not None and self.envelope is not None:
            raise ValueError("what is read as another operation has no envelope of its own")
        if self.id == DEEP_FRY and (self.envelope is None or self.envelope.ladder != [OIL_SENSOR]):
            raise ValueError("deep frying is verified by its oil sensor and by nothing else (Core §3)")


class VocabularyFile(Document, frozen=True):
    """The data file of operations and heat levels."""

    vocabulary: Version
    operations: list[Operation]
    heat_levels: dict[Name, Band]
    """Pan surface in °C at steady state, by level."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Operations by id and heat levels by name."""

    version: str
    operations: Mapping[str, Operation]
    heat_levels: Mapping[str, Band]

    @classmethod
    def from_bytes(cls, raw: bytes) -> "Vocabulary":
        """Read a vocabulary file.

        Raises:
            DocumentError: not such a file, an operation stands in it twice, or one is replaced by something
                that is not there or, in a circle, by itself.
        """
        file = read(VocabularyFile, raw)
        operations = {operation.id: operation for operation in file.operations}
        if len(operations) != len(file.operations):
            raise DocumentError("invalid", "an operation stands twice in the vocabulary", "$.operations")
        vocabulary = cls(
            file.vocabulary, MappingProxyType(operations), MappingProxyType(dict(file.heat_levels))
        )
        for operation in file.operations:
            if vocabulary.operation(operation.id) is None:
                detail = f"{operation.id} is replaced by nothing that stands here"
                raise DocumentError("invalid", detail, "$.operations")
        return vocabulary

    def current(self, op: str) -> str:
        """The id that `op` is read as: its replacement where it is deprecated, else itself, known or not."""
        passed = {op}
        while (entry := self.operations.get(op)) is not None and entry.replaced_by is not None:
            op = entry.replaced_by
            if op in passed:
                break
            passed.add(op)
        return op

    def operation(self, op: str) -> Operation | None:
        """What `op` is read as, or `None` when this vocabulary does not know it (ruling D4)."""
        found = self.operations.get(self.current(op))
        return None if found is None or found.replaced_by is not None else found

    def names_of(self, op: str) -> frozenset[str]:
        """Every id that is read as the same operation as `op`, itself among them."""
        current = self.current(op)
        alike = (name for name in self.operations if self.current(name) == current)
        return frozenset({op, current}.union(alike))


# --- Incident types and allergens -------------------------------------------------------------------------


class IncidentTypes(Document, frozen=True):
    """The data file of what an incident can be."""

    incidents: Version
    types: list[VocabId]

    @classmethod
    def from_bytes(cls, raw: bytes) -> "IncidentTypes":
        """Read a file of incident types.

        Raises:
            DocumentError: not such a file.
        """
        return read(cls, raw)


class AllergenNames(Document, frozen=True):
    """The data file of allergens as recipes and households name them, in the European and the American list.

    `alike` groups names of the two lists that are kept apart by neither cook nor label: who blocks one of a
    group blocks all of it.
    """

    allergens: Version
    eu14: list[Name]
    us9: list[Name]
    alike: list[list[Name]]

    @classmethod
    def from_bytes(cls, raw: bytes) -> "AllergenNames":
        """Read a file of allergens.

        Raises:
            DocumentError: not such a file.
        """
        return read(cls, raw)

    def all_names_of(self, name: str) -> frozenset[str]:
        """`name` and every name that is taken for the same; a name that nobody knows stands for itself."""
        return frozenset({name}.union(*(group for group in self.alike if name in group)))
