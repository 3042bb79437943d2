"""Every kind of document that is read here, by name, and how a document of unknown kind is told (Core §2)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from adapters.documents import ExecuteRequest, ExecutionLog, ExecutionStatus, StopRequest
from events.envelope import Envelope
from hub.records.log.mission import Checkpoint, MissionEvent
from mandates.documents import AgentMandate, ConformanceReport, Disclosure, KeyRecord, Money, Signature
from safety.device_documents import Capabilities, SafetyLimits
from safety.documents import Condition, Quantity, Recipe, Target
from safety.feed_documents import IncidentReport, Recall

EVENT: Final = "Event"

KINDS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "Recipe": Recipe,
        "Capabilities": Capabilities,
        "ExecuteRequest": ExecuteRequest,
        "ExecutionStatus": ExecutionStatus,
        "StopRequest": StopRequest,
        "ExecutionLog": ExecutionLog,
        "SafetyLimits": SafetyLimits,
        "Recall": Recall,
        "IncidentReport": IncidentReport,
        "ConformanceReport": ConformanceReport,
        "AgentMandate": AgentMandate,
        "KeyRecord": KeyRecord,
        "Disclosure": Disclosure,
        "MissionEvent": MissionEvent,
        "Checkpoint": Checkpoint,
        EVENT: Envelope,
        "Signature": Signature,
        "Money": Money,
        "Quantity": Quantity,
        "Target": Target,
        "Condition": Condition,
    }
)
"""The type of each kind. Of an event it is the envelope; its data has a type of its own."""

_TELLING: Final[tuple[tuple[str, frozenset[str]], ...]] = (
    (EVENT, frozenset({"specversion"})),
    ("Recipe", frozenset({"cookwala", "process"})),
    ("Recipe", frozenset({"cookwala", "dish"})),
    ("Capabilities", frozenset({"cookwala", "capabilities"})),
    ("Capabilities", frozenset({"cookwala", "interfaces"})),
    ("AgentMandate", frozenset({"principal", "agent"})),
    ("KeyRecord", frozenset({"kid", "publicKey"})),
    ("Checkpoint", frozenset({"mission", "head"})),
    ("MissionEvent", frozenset({"mission", "prev"})),
    ("Signature", frozenset({"kid", "sig"})),
    ("Disclosure", frozenset({"digest"})),
    ("Money", frozenset({"amount", "currency"})),
)
"""Members that tell a kind which does not name itself."""


def kind_of(plain: Any) -> str | None:
    """The kind of the document `plain`: the one it names, else the one that its members tell."""
    if not isinstance(plain, dict):
        return None
    named = plain.get("kind")
    if isinstance(named, str) and "core" in plain and named in KINDS:
        return named
    return next((kind for kind, members in _TELLING if members <= plain.keys()), None)
