"""Which device to ask first for a recipe (DESIGN §4: choose by advice).

Advice, not permission: the chosen device dry-runs the recipe itself, and its answer is the one that counts.
So advice always assumes that a person is there: presence never drops a device, and where nobody is, the
best-ranked device says so itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from safety.device_documents import Capabilities, SafetyLimits
from safety.documents import Recipe
from safety.dryrun import DryRun, DryRunRefusal, dry_run
from safety.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Appliance:
    """What is known of a device that could be asked.

    Attributes:
        busy: whether it has a dish on already; one dish at a time per appliance.
        limits: the pack it says is in force, where it was read.
    """

    name: str
    capabilities: Capabilities
    busy: bool
    limits: SafetyLimits | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device that by its own documents could cook the recipe with a person there."""

    name: str
    busy: bool
    human_steps: int
    """Steps a person does by hand."""
    time_steps: int
    """Steps the device does that end on time alone."""
    dry_run: DryRun

    @property
    def rank(self) -> tuple[bool, int, int, str]:
        """Free before busy, little work for people, little left to time alone, then the name."""
        return (self.busy, self.human_steps, self.time_steps, self.name)


@dataclass(frozen=True, slots=True)
class Choice:
    """Candidates, best first; `refusal` exactly when there is none."""

    candidates: tuple[Candidate, ...]
    refusal: DryRunRefusal | None


def choose(
    recipe: Recipe,
    appliances: Sequence[Appliance],
    vocabulary: Vocabulary,
    *,
    allow_model: bool = True,
    now: datetime,
    altitude_m: float = 0.0,
) -> Choice:
    """Rank `appliances` for `recipe`. The order they are given in makes no difference.

    Args:
        altitude_m: the kitchen's height above the sea in metres; shifts the bands of water and steam.

    When none can cook it, the refusal is that of the device that would have come furthest, by name where
    two came equally far.
    """
    candidates: list[Candidate] = []
    refused: list[tuple[int, str, DryRunRefusal]] = []
    for appliance in appliances:
        answer = dry_run(
            recipe,
            appliance.capabilities,
            vocabulary,
            human_present=True,
            allow_model=allow_model,
            limits=appliance.limits,
            now=now,
            altitude_m=altitude_m,
        )
        if answer.refusal is not None:
            refused.append((-len(answer.plan), appliance.name, answer.refusal))
            continue
        by_hand = sum(step.by == "human" for step in answer.plan)
        by_time = sum(step.verified_by == "time" for step in answer.plan)
        candidates.append(Candidate(appliance.name, appliance.busy, by_hand, by_time, answer))
    if candidates:
        return Choice(tuple(sorted(candidates, key=lambda candidate: candidate.rank)), None)
    if not refused:
        return Choice((), DryRunRefusal("missing_equipment", None, "this kitchen has no device to ask"))
    return Choice((), min(refused, key=lambda entry: entry[:2])[2])
