"""Whether a device takes a request: its own objections, the very recipe, its own dry run (Core §3, §6)."""

from collections.abc import Awaitable, Callable, Sequence

from adapters.documents import ExecuteRequest, Refusal, RefusalReason
from events import documents
from events.canonical import read_document_hash
from events.catalogue import InventoryItem
from events.documents import DocumentError
from events.seams import Clock
from events.versions import SPOKEN, speaks
from mandates.keys import read_time
from safety.advice.sensor_trust import trusted_sensors
from safety.allergens import AllergenFacts, why_blocked
from safety.device_documents import Capabilities, SafetyLimits
from safety.documents import Recipe
from safety.dryrun import dry_run
from safety.recalls import refuses
from safety.vocabulary import Vocabulary
from sim.dish import Dish
from sim.presence import FRESH_S
from sim.withdrawn import Withdrawn

Fetch = Callable[[str], Awaitable[bytes]]
"""Gets a recipe from the hub by its hash; raises `RecipeUnavailable` or `HubSilent`. Bounded in time."""


class RecipeUnavailable(Exception):
    """The hub did not give the recipe."""


class HubSilent(Exception):
    """The hub did not answer for the recipe at all, or is just starting: it may give it later."""


class Rejected(Exception):
    """A call that is wrong in form or comes at the wrong moment; nothing was changed.

    Attributes:
        status: the HTTP status that says so.
        title: a short name for it.
        detail: what was found.
    """

    def __init__(self, status: int, title: str, detail: str = "") -> None:
        super().__init__(detail or title)
        self.status = status
        self.title = title
        self.detail = detail


class Acceptance:
    """The judgement of one device. It changes nothing."""

    def __init__(
        self,
        *,
        capabilities: Capabilities,
        limits: SafetyLimits,
        vocabulary: Vocabulary,
        clock: Clock,
        fetch: Fetch,
        withdrawn: Withdrawn,
        stock: Callable[[], Sequence[InventoryItem]],
        allergens: AllergenFacts,
        altitude_m: float = 0.0,
    ) -> None:
        """
        Args:
            withdrawn: the recalls it knows.
            stock: what is in store in it at the moment.
        """
        self._capabilities = capabilities
        self._limits = limits
        self._vocabulary = vocabulary
        self._clock = clock
        self._fetch = fetch
        self._withdrawn = withdrawn
        self._stock = stock
        self._allergens = allergens
        self._altitude_m = altitude_m

    def objection(self, request: ExecuteRequest, *, busy: bool) -> Refusal | None:
        """What speaks against a request before its recipe is looked at."""
        if not speaks(request.core):
            return _refuse("unsupported_version", f"this device reads Core {SPOKEN}, not {request.core[:40]}")
        recalled = self._recalled(request.recipe, request.recipe_hash)
        if recalled is not None:
            return recalled
        mandate = request.mandate
        if mandate is not None:
            expires = read_time(mandate.expires)
            if "start_cooking" not in mandate.scopes:
                return _refuse("mandate_scope", "the mandate does not let the agent start cooking")
            if expires is None or expires <= self._clock.wall():
                return _refuse("mandate_scope", "the mandate has expired")
        # The names and the store first: for these no recipe is needed.
        blocked = self._blocked(request, None)
        if blocked is not None:
            return blocked
        if busy:
            return _refuse("busy", "another dish is on this device")
        return None

    async def recipe(self, request: ExecuteRequest) -> Recipe | Refusal:
        """Exactly the revision that was asked for, from the hub (ruling X2)."""
        wanted = request.recipe_hash
        try:
            raw = await self._fetch(wanted)
            found = read_document_hash(raw)
        except HubSilent as error:
            # A hub that died while its start was under way sends it again; a refusal would stand for ever.
            raise Rejected(503, "hub_silent", f"the hub does not answer for {wanted}: {error}") from None
        except RecipeUnavailable as error:
            return _refuse("recipe_hash_mismatch", f"the hub did not give {wanted}: {error}")
        except DocumentError as error:
            return _refuse("recipe_hash_mismatch", f"what the hub gave cannot be read: {error}")
        if found != wanted:
            return _refuse("recipe_hash_mismatch", f"the hub gave {found}")
        try:
            return documents.read_part(Recipe, raw)
        except DocumentError as error:
            return _refuse("unsupported_version", f"this device cannot read the recipe: {error}")

    def rehearse(
        self, request: ExecuteRequest, recipe: Recipe | Refusal
    ) -> tuple[Refusal | None, Dish | None]:
        """The device's own dry run, by what it knows itself of a person being there."""
        if isinstance(recipe, Refusal):
            return recipe, None
        # Once more by the recipe's own id: a request may name it otherwise, and a recall may have come since.
        held_back = self._recalled(recipe.id, request.recipe_hash) or self._blocked(request, recipe)
        if held_back is not None:
            return held_back, None
        now = self._clock.wall()
        word = request.x_presence
        answer = dry_run(
            recipe,
            self._capabilities,
            self._vocabulary,
            human_present=word is not None and word.age_s <= FRESH_S,
            limits=self._limits,
            now=now,
            altitude_m=self._altitude_m,
        )
        if answer.refusal is not None:
            refused = answer.refusal
            return Refusal(reason=refused.reason, node=refused.node, detail=refused.detail[:500]), None
        sensors = trusted_sensors(self._capabilities, now)
        return None, Dish(recipe, answer.plan, self._vocabulary, sensors, self._altitude_m)

    def _recalled(self, recipe: str, recipe_hash: str) -> Refusal | None:
        recall = self._withdrawn.strictest(recipe=recipe, recipe_hash=recipe_hash)
        if recall is None or not refuses(recall):
            return None
        return _refuse("recipe_recalled", f"{recall.issuer} recalled it for {recall.reason}: {recall.id}")

    def _blocked(self, request: ExecuteRequest, recipe: Recipe | None) -> Refusal | None:
        """What of the recipe or of its own store the diners must not meet; nothing is substituted."""
        stock = {"this device": self._stock()}
        why = why_blocked(request.allergen_blocks or (), recipe, stock, self._allergens)
        return None if why is None else _refuse("allergen_block", why)


def _refuse(reason: RefusalReason, detail: str) -> Refusal:
    return Refusal(reason=reason, detail=detail[:500])
