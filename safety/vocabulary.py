"""The vocabulary of operations: envelopes, ladders, heat levels (Core §3; ruling D4).

A vocabulary is a replaceable data file. This room does no I/O: whoever needs one reads the bytes, ours with
`importlib.resources.files("safety").joinpath(VOCABULARY_RESOURCE).read_bytes()`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from msgspec import field

from events.documents import Document, DocumentError, read
from safety.documents import Attention, VocabId

VOCABULARY_RESOURCE: Final = "data/vocabulary-0.2.json"
DEFAULT_LIMITS_RESOURCE: Final = "data/limits-default.json"
"""A SafetyLimits document for simulated devices; a maker of real ones brings limits of her own."""

FALLBACK_RUNGS: Final = frozenset({"model", "time", "human"})
"""The rungs of a ladder that are not sensors."""


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
    """What must hold while an operation runs, and how that can be verified, best first."""

    medium: str
    unattended: bool
    attention: Attention
    ladder: list[str]
    temp_c: Band | None = None
    pressure_kpa: Band | None = field(default=None, name="pressureKPa")

    def __post_init__(self) -> None:
        if self.attention == "continuous" and not self.unattended and "time" in self.ladder:
            raise ValueError("what needs constant attention never falls back to time (Core §3)")


class Operation(Document, frozen=True):
    """One operation. Without an envelope it is neither hot nor dangerous."""

    id: VocabId
    executable: bool = True
    """False for steps that only a person can do, whatever a device declares."""
    envelope: Envelope | None = None


class VocabularyFile(Document, frozen=True):
    """The data file."""

    vocabulary: str
    operations: list[Operation]
    heat_levels: dict[str, Band]
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
            DocumentError: not such a file, or an operation stands in it twice.
        """
        file = read(VocabularyFile, raw)
        operations = {operation.id: operation for operation in file.operations}
        if len(operations) != len(file.operations):
            raise DocumentError("invalid", "an operation stands twice in the vocabulary", "$.operations")
        return cls(file.vocabulary, MappingProxyType(operations), MappingProxyType(dict(file.heat_levels)))

    def operation(self, op: str) -> Operation | None:
        """The operation, or `None` when this vocabulary does not know it."""
        return self.operations.get(op)
