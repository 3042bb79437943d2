"""Taking an order: from a request's bytes to an execution accepted or refused (DESIGN §4; T1, T5, X5).

Everything that can be judged is judged before the transaction; what must hold at the moment of acceptance
(idempotency, the request's id) is judged once more inside it. Only the commit makes an order.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec

from adapters.documents import CORE_VERSION, ExecuteRequest, Id, PresenceWord, Refusal, RefusalReason
from events.canonical import digest
from events.documents import DocumentError, OpenDocument, from_plain, parse
from events.versions import SPOKEN, speaks
from hub.directory import RecipeEntry, read_recalls
from hub.entries import ExecutionAsked, PersonPresent
from hub.executions.view import HubStatus
from hub.incident_notes import note_orders_in
from hub.kitchen import Kitchen
from hub.recorder import Recording
from hub.stock import blocked_by
from hub.store.rings import REFUSALS
from mandates.authority import check_mandate
from mandates.tokens import Actor
from safety.choice import Candidate, choose
from safety.recalls import RecallBook, refuses

_STATUS: Final = msgspec.json.Decoder(HubStatus)
FIRST_ANSWER: Final = (
    "SELECT body_hash, answer FROM idempotency WHERE kitchen = ?1 AND principal = ?2 AND key = ?3"
)
"""The first answer to a principal's key; see `replayed`."""
_BUSY: Final = (
    "SELECT DISTINCT attempt.device FROM attempt JOIN execution ON execution.kitchen = attempt.kitchen "
    "AND execution.id = attempt.execution WHERE attempt.kitchen = ?1 AND attempt.phase <> 'closed' "
    "AND execution.open = 1"
)


class OrderError(Exception):
    """The request itself is not one that an execution can come of.

    Attributes:
        status: the HTTP status that says so.
        title: what is wrong, in a word.
        detail: what was found and what to do.
        seq: the execution's present seq, where the caller's was another.
    """

    def __init__(self, status: int, title: str, detail: str, seq: int | None = None) -> None:
        super().__init__(f"{title}: {detail}")
        self.status = status
        self.title = title
        self.detail = detail
        self.seq = seq


@dataclass(frozen=True, slots=True)
class Order:
    """The answer to an order.

    Attributes:
        status: the first answer, also when the request was repeated.
        device: which device is to be rung, when this call accepted it.
    """

    status: HubStatus
    device: str | None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request, read."""

    id: str
    requested_by: str
    key: str
    recipe: str
    recipe_hash: str
    request: ExecuteRequest | None
    """`None` for another version of Core, of which nothing more is understood."""
    mandate: Any
    plain: Any = None
    """The whole of it as plain values."""


class OrderDesk:
    """Takes orders."""

    def __init__(self, kitchen: Kitchen) -> None:
        self._kitchen = kitchen

    async def ask(self, actor: Actor, body: bytes, header_key: str | None) -> Order:
        """Take the order that `body` makes for the caller `actor`.

        Raises:
            OrderError: no execution can come of it.
            StoreFailed: it is not on disk; asking again with the same key is safe.
        """
        asked = _read(body, header_key)
        body_hash = digest(body)
        first = await self._kitchen.store.read(
            lambda connection: connection.execute(
                FIRST_ANSWER, (self._kitchen.name, actor.id, asked.key)
            ).fetchone()
        )
        if first is not None:
            return Order(replayed(first, body_hash), None)
        await self._is_who_it_says(actor, asked)
        present = actor.role != "agent" and asked.request is not None and asked.request.x_human_present
        if present:
            self._kitchen.presence.said(actor.id)
        judged = await self._judge(actor, asked)
        word = self._kitchen.presence.latest()

        def work(recording: Recording) -> Order:
            fold = recording.fold
            first = fold.one(FIRST_ANSWER, actor.id, asked.key)
            if first is not None:
                return Order(replayed(first, body_hash), None)
            _still_known(recording, actor)
            if present:
                recording.record(PersonPresent(id=actor.id))
            outcome: Refusal | str
            if isinstance(judged, Refusal):
                outcome = judged
            elif fold.one("SELECT 1 FROM request WHERE kitchen = ?1 AND id = ?2", asked.id) is not None:
                outcome = _refusal(
                    "not_authorized",
                    f"the request id {asked.id} was used before under another key or by another",
                )
            else:
                outcome = self._meanwhile(recording, asked) or _first_of(recording, judged)
            note_orders_in(recording, asked.plain, f"a request of {actor.id}")
            recording.record(self._entry(actor, asked, body, outcome, word))
            if isinstance(outcome, Refusal):
                recording.turn_away(REFUSALS, outcome.reason, actor.id, outcome.detail or "")
            answer = fold.one(FIRST_ANSWER, actor.id, asked.key)
            assert answer is not None
            return Order(_STATUS.decode(answer[1]), outcome if isinstance(outcome, str) else None)

        return await self._kitchen.recorder.commit(work)

    async def _is_who_it_says(self, actor: Actor, asked: _Asked) -> None:
        problem = None
        if actor.role not in ("owner", "person", "agent"):
            problem = f"a {actor.role} orders nothing"
        elif asked.requested_by != actor.id:
            problem = f"the token is {actor.id}'s, the request {asked.requested_by}'s"
        if problem is not None:
            await self.turn_away(actor, "not_authorized", problem)
            raise OrderError(403, "not_authorized", problem)

    async def turn_away(self, actor: Actor, reason: str, detail: str) -> None:
        """Record that `actor` was refused something that made no execution."""
        await self._kitchen.recorder.commit(
            lambda recording: recording.turn_away(REFUSALS, reason, actor.id, detail)
        )

    async def _judge(self, actor: Actor, asked: _Asked) -> Refusal | tuple[Candidate, ...]:
        """Why the hub refuses, or else the devices that could be asked."""
        request = asked.request
        if request is None:
            return _refusal("unsupported_version", f"this hub speaks Core {SPOKEN}")
        recipe = self._recipe(asked)
        if isinstance(recipe, Refusal):
            return recipe
        directory = self._kitchen.directory
        recalled = _recalled(directory.recall_book, recipe)
        if recalled is not None:
            return recalled
        if actor.role == "agent":
            verdict = check_mandate(
                asked.mandate,
                requested_by=asked.requested_by,
                token_actor=actor.id,
                now=self._kitchen.clock.wall(),
                keys=directory.keys,
                enrolled=directory.enrolled,
                token_mandate=actor.mandate_hash,
            )
            if not verdict.ok and verdict.refusal is None:
                await self.turn_away(actor, "not_authorized", f"{verdict.reason}: {verdict.detail}")
                raise OrderError(403, "not_authorized", verdict.detail)
            if verdict.refusal is not None:
                return _refusal(verdict.refusal, f"{verdict.reason}: {verdict.detail}")
        blocked = await self._kitchen.store.read(
            lambda connection: blocked_by(connection, self._kitchen, request.allergen_blocks, recipe.recipe)
        )
        if blocked is not None:
            return _refusal("allergen_block", blocked)
        choice = choose(
            recipe.recipe,
            directory.appliances(),
            self._kitchen.vocabulary,
            now=self._kitchen.clock.wall(),
            altitude_m=self._kitchen.settings.place.altitude_m,
        )
        if choice.refusal is not None:
            why = choice.refusal
            return Refusal(reason=why.reason, node=why.node, detail=why.detail[:500])
        return choice.candidates

    def _meanwhile(self, recording: Recording, asked: _Asked) -> Refusal | None:
        """What came to be known between the judgement and the commit: a recall, another inventory."""
        recipe = self._recipe(asked)
        if isinstance(recipe, Refusal) or asked.request is None:
            return None
        fold = recording.fold
        known = self._kitchen.directory
        count = fold.one("SELECT count(*) FROM recall WHERE kitchen = ?1")
        book = known.recall_book
        if count is not None and count[0] != len(known.recalls):
            entries = read_recalls(fold.connection, self._kitchen.name, known)
            book = RecallBook(entry.recall for entry in entries.values())
        recalled = _recalled(book, recipe)
        if recalled is not None:
            return recalled
        blocks = asked.request.allergen_blocks
        blocked = blocked_by(fold.connection, self._kitchen, blocks, recipe.recipe)
        return None if blocked is None else _refusal("allergen_block", blocked)

    def _recipe(self, asked: _Asked) -> RecipeEntry | Refusal:
        known = self._kitchen.directory.recipes.get(asked.recipe_hash)
        if known is None:
            return _refusal(
                "recipe_hash_mismatch", "this hub holds no recipe of that hash; add it: aboyeur recipes add"
            )
        named = asked.recipe.rsplit("#", 1)[-1].rsplit(":", 1)[-1]
        if named != known.recipe.id:
            return _refusal(
                "recipe_hash_mismatch", f"that hash is of {known.recipe.id}, the request names {named}"
            )
        return known

    def _entry(
        self, actor: Actor, asked: _Asked, body: bytes, outcome: Refusal | str, word: PresenceWord | None
    ) -> ExecutionAsked:
        """The entry of an order that was refused, or goes to the device `outcome`."""
        execution = self._kitchen.ids.new("exe")
        forward = None
        request = asked.request
        if isinstance(outcome, str) and request is not None:
            forward = ExecuteRequest(
                core=CORE_VERSION,
                kind="ExecuteRequest",
                id=f"{execution}.1",
                recipe=request.recipe,
                recipe_hash=request.recipe_hash,
                requested_by=request.requested_by,
                idempotency_key=self._kitchen.ids.new("start"),
                servings=request.servings,
                serve_by=request.serve_by,
                mandate=request.mandate,
                allergen_blocks=request.allergen_blocks,
                operating_mode=request.operating_mode,
                x_presence=word,
            )
        return ExecutionAsked(
            execution=execution,
            request=body.decode(),
            request_id=asked.id,
            principal=actor.id,
            requested_by=asked.requested_by,
            recipe=asked.recipe,
            recipe_hash=asked.recipe_hash,
            key=asked.key,
            body_hash=digest(body),
            device=outcome if isinstance(outcome, str) else None,
            forward=forward,
            refusal=outcome if isinstance(outcome, Refusal) else None,
        )


def _still_known(recording: Recording, actor: Actor) -> None:
    """What let the caller in holds at the moment of the commit too.

    Raises:
        OrderError: 401: removed or revoked since.
    """
    known = recording.fold.one(
        "SELECT 1 FROM token WHERE kitchen = ?1 AND actor = ?2 AND mandate IS ?3",
        actor.id,
        actor.mandate_hash,
    )
    if known is None:
        raise OrderError(401, "unauthorized", f"{actor.id} has no token here any more")


def _first_of(recording: Recording, judged: tuple[Candidate, ...]) -> Refusal | str:
    """The device that gets the work, of those still registered at the moment of the commit."""
    fold = recording.fold
    registered = {row[0] for row in fold.all("SELECT name FROM device WHERE kitchen = ?1")}
    busy = {row[0] for row in fold.all(_BUSY)}
    there = [one for one in judged if one.name in registered]
    if not there:
        return _refusal("missing_equipment", "the devices that could cook this were removed just now")
    return min(there, key=lambda one: (one.name in busy, one.human_steps, one.time_steps, one.name)).name


def _recalled(book: RecallBook, recipe: RecipeEntry) -> Refusal | None:
    """Why a recipe may not be started any more; one that is only warned of may."""
    recall = book.strictest(recipe=recipe.recipe.id, recipe_hash=recipe.hash)
    if recall is None or not refuses(recall):
        return None
    return _refusal("recipe_recalled", f"{recall.issuer} recalled it for {recall.reason}: {recall.id}")


def _refusal(reason: RefusalReason, detail: str) -> Refusal:
    return Refusal(reason=reason, detail=detail[:500])


def replayed(first: tuple[Any, ...], body_hash: str) -> HubStatus:
    """A row of `FIRST_ANSWER` as the answer to the same request again (ruling X5).

    Raises:
        OrderError: 422: it is not the same request.
    """
    if first[0] != body_hash:
        raise OrderError(
            422, "idempotency_key_reused", "this key came before with another body: use a new key"
        )
    return _STATUS.decode(first[1])


def _read(body: bytes, header_key: str | None) -> _Asked:
    """The request, strictly; of another version of Core only who asks and under which key.

    Raises:
        OrderError: 400.
    """
    try:
        plain = parse(body)
        asked = _asked(plain)
    except DocumentError as error:
        raise OrderError(400, error.reason, f"{error.path}: {error.detail}") from None
    if header_key is not None and header_key != asked.key:
        raise OrderError(
            400, "idempotency_key_mismatch", "the Idempotency-Key header and the body's key differ"
        )
    return asked


class _AnyVersion(OpenDocument, frozen=True):
    id: Id
    requested_by: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    idempotency_key: Annotated[str, msgspec.Meta(min_length=8, max_length=128)]
    recipe: str = ""
    recipe_hash: str = ""


def _asked(plain: Any) -> _Asked:
    if isinstance(plain, dict) and isinstance(plain.get("core"), str):
        core = plain["core"]
        if not speaks(core):
            other = from_plain(_AnyVersion, plain)
            return _Asked(
                other.id,
                other.requested_by,
                other.idempotency_key,
                other.recipe,
                other.recipe_hash,
                None,
                None,
                plain,
            )
    request = from_plain(ExecuteRequest, plain)
    return _Asked(
        request.id,
        request.requested_by,
        request.idempotency_key,
        request.recipe,
        request.recipe_hash,
        request,
        plain.get("mandate"),
        plain,
    )
