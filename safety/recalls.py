"""Which recalls concern a recipe revision, and what they ask for (Core §6.8).

What cannot be told counts as concerned: a target is matched by its hash or by the recipe's id, whatever
catalogue its reference names, because a request may name the same recipe by another one.
"""

from collections.abc import Iterable
from typing import Final, Literal

from safety.feed_documents import Recall, RecallTarget

Action = Literal["block", "block_and_stop_running", "warn"]
_STRICTEST: Final[tuple[Action, ...]] = ("block_and_stop_running", "block", "warn")


def id_of(ref: str) -> str:
    """The recipe's own id at the end of a reference: `koshari` of `cw:cookwala.ai:koshari`."""
    return ref.rsplit("#", 1)[-1].rsplit(":", 1)[-1]


def concerns(recall: Recall, *, recipe: str, recipe_hash: str) -> bool:
    """Whether `recall` withdraws the revision `recipe_hash` of the recipe of that id or reference."""
    return any(_hits(target, id_of(recipe), recipe_hash) for target in recall.targets)


def strictest(recalls: Iterable[Recall], *, recipe: str, recipe_hash: str) -> Recall | None:
    """Of the recalls that concern the revision the one that asks for most; None when none does."""
    found = [one for one in recalls if concerns(one, recipe=recipe, recipe_hash=recipe_hash)]
    return min(found, key=lambda one: (_STRICTEST.index(one.action), one.issuer, one.id), default=None)


def refuses(recall: Recall) -> bool:
    """Whether what it concerns may not be started."""
    return recall.action != "warn"


def stops(recall: Recall) -> bool:
    """Whether what it concerns is stopped where it runs."""
    return recall.action == "block_and_stop_running"


class RecallBook:
    """Many recalls, found quickly; never changes once made."""

    __slots__ = ("_by_hash", "_by_id")

    def __init__(self, recalls: Iterable[Recall] = ()) -> None:
        self._by_hash: dict[str, list[Recall]] = {}
        self._by_id: dict[str, list[Recall]] = {}
        for recall in recalls:
            for target in recall.targets:
                self._by_id.setdefault(id_of(target.ref), []).append(recall)
                if target.hash is not None:
                    self._by_hash.setdefault(target.hash, []).append(recall)

    def strictest(self, *, recipe: str, recipe_hash: str) -> Recall | None:
        """As the function of that name."""
        near = (*self._by_hash.get(recipe_hash, ()), *self._by_id.get(id_of(recipe), ()))
        return strictest(near, recipe=recipe, recipe_hash=recipe_hash)


def _hits(target: RecallTarget, recipe: str, recipe_hash: str) -> bool:
    if target.hash is not None and target.hash == recipe_hash:
        return True
    # A target that names neither a hash nor all revisions means the recipe as a whole.
    whole = target.all_revisions or target.hash is None
    return whole and id_of(target.ref) == recipe
