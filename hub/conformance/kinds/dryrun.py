"""`dryrun`: would this device cook these steps, and who would do each (Core §3)."""

import functools
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from events.documents import Document, from_plain
from events.times import parse_date_time
from mandates.documents import DateTime
from safety.device_documents import Capabilities, SafetyLimits
from safety.documents import Recipe
from safety.dryrun import dry_run
from safety.vocabulary import VOCABULARY_RESOURCE, Vocabulary

# Vectors hold only what the answer hangs on. The rest is filled in, so that the same strict readers read them
# that read real documents; nothing in here decides anything.
_RECIPE: Final = {
    "cookwala": "0.2.0",
    "id": "vector",
    "revision": 1,
    "verification": {"level": "V0"},
    "dish": {"names": {"en": "vector"}},
    "yield": {"servings": 1},
    "ingredients": [{"ref": "i1", "ingredientId": "cw.ing.water", "qty": {"value": 1, "unit": "g"}}],
    "equipment": [],
    "safety": {
        "hazards": [],
        "allergens": {},
        "supervision": {"default": "presence_required"},
        "abort": {"steps": ["heat_off"]},
    },
    "text": {},
    "license": "CC0-1.0",
}
_CAPABILITIES: Final = {
    "cookwala": "0.2.0",
    "actor": {"kind": "robot", "id": "vector"},
    "roles": ["executor"],
    "safety": {"certifications": [], "presenceDetection": False, "emergencyStop": "physical"},
    "interfaces": {},
}
_LIMITS: Final = {
    "core": "0.2.0",
    "kind": "SafetyLimits",
    "id": "vector",
    "version": "0.1.0",
    "disclaimer": "",
}
_LIMIT: Final = {"action": "refuse_start", "source": "vector"}
_NOW: Final = "2026-10-05T00:00:00Z"
"""Where a vector does not say when it is: the day the public ones say."""


class Question(Document, frozen=True):
    """A dry run's question; the documents are read once they are whole."""

    recipe: dict[str, Any]
    capabilities: dict[str, Any]
    human_present: bool
    allow_model: bool = True
    limits: dict[str, Any] | None = None
    now: DateTime = _NOW
    altitude_m: float = 0.0


def answer(given: Any) -> Mapping[str, Any]:
    """`{state, reason, by}`: `by` names who does each step, as far as the plan goes.

    Raises:
        DocumentError: not such a question.
    """
    question = from_plain(Question, given)
    limits = None
    if question.limits is not None:
        pack = {**_LIMITS, **question.limits}
        if isinstance(pack.get("limits"), list):
            pack["limits"] = [
                {**_LIMIT, **limit} if isinstance(limit, dict) else limit for limit in pack["limits"]
            ]
        limits = from_plain(SafetyLimits, pack)
    done = dry_run(
        from_plain(Recipe, {**_RECIPE, **question.recipe}),
        from_plain(Capabilities, {**_CAPABILITIES, **question.capabilities}),
        _vocabulary(),
        human_present=question.human_present,
        allow_model=question.allow_model,
        limits=limits,
        now=parse_date_time(question.now),
        altitude_m=question.altitude_m,
    )
    return {
        "state": done.state,
        "reason": None if done.refusal is None else done.refusal.reason,
        "by": [step.by for step in done.plan],
    }


@functools.cache
def _vocabulary() -> Vocabulary:
    return Vocabulary.from_bytes(files("safety").joinpath(VOCABULARY_RESOURCE).read_bytes())
