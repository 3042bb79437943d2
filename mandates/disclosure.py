"""Selective disclosure: a signed document bears a digest where a sensitive value would stand (Core §5).

The digest is `sha256` over the canonical JSON of `[salt, value]`. Who holds salt and value shows them to whom
he likes; the document signed over the digest stays the same. A salt hides a value only while nobody can guess
it and it stands beside no other value, so both are checked here.
"""

import copy
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from events.canonical import canonical, digest, document_hash
from events.documents import DocumentError
from events.seams import Ids

SALT_CHARACTERS: Final = 22
"""Of base64url at least: 128 random bits need that many."""
_SALT: Final = re.compile(rf"[A-Za-z0-9_-]{{{SALT_CHARACTERS},256}}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")

DisclosureReason = Literal["ok", "unreadable", "short_salt", "salt_reused", "digest_mismatch"]


class DisclosureError(ValueError):
    """Something that cannot be concealed or revealed; the text says what and why."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What its holder keeps of one concealed value.

    Attributes:
        path: where in the document, as a JSON Pointer (RFC 6901).
        digest: what stands there instead.
        salt: at least 128 random bits, base64url.
        value: plain JSON values.
    """

    path: str
    digest: str
    salt: str
    value: Any


@dataclass(frozen=True, slots=True)
class Concealed:
    """A document that can be shown and signed, and the openings that its holder keeps."""

    document: dict[str, Any]
    openings: tuple[Opening, ...]


@dataclass(frozen=True, slots=True)
class Disclosed:
    """One disclosure found in a document. `opened`: salt and value stand beside the digest."""

    path: str
    opened: bool
    reason: DisclosureReason

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong with it; of one that is not opened nothing more is known."""
        return self.reason == "ok"


def disclosure_digest(salt: str, value: Any) -> str:
    """`sha256:<hex>` over the canonical JSON of `[salt, value]`.

    Raises:
        DocumentError: the value has no canonical JSON.
    """
    return digest(canonical([salt, value]))


def verify_disclosure(claimed: object, salt: object, value: object) -> DisclosureReason:
    """Whether `salt` and `value` are what `claimed` was made of."""
    if not isinstance(claimed, str) or not _DIGEST.fullmatch(claimed) or not isinstance(salt, str):
        return "unreadable"
    if not _SALT.fullmatch(salt):
        return "short_salt"
    try:
        found = disclosure_digest(salt, value)
    except (DocumentError, RecursionError, TypeError, ValueError, AttributeError):
        # Values that no JSON text could have given have no digest.
        return "unreadable"
    return "ok" if found == claimed else "digest_mismatch"


def conceal(
    document: Mapping[str, Any], paths: Sequence[str], ids: Ids, *, used: Collection[str] = ()
) -> Concealed:
    """`document` with a digest in the place of each value at `paths`; to be signed afterwards.

    Args:
        document: plain JSON values, unsigned; its `hash`, if it states one, is made to fit.
        paths: JSON Pointers; none may lie inside another.
        ids: where the salts come from.
        used: salts that were given out before; none of them is used again.

    Raises:
        DisclosureError: a signed document, a path that is not there or inside another, or a salt that is too
            short or was used before: then the source of chance is broken and nothing may be made with it.
        DocumentError: no canonical JSON.
    """
    if "signature" in document:
        raise DisclosureError("the document is signed; conceal first, sign then")
    if not paths:
        raise DisclosureError("nothing to conceal: name at least one path")
    split = [_pointer(path) for path in paths]
    _refuse_overlap(paths, split)
    concealed = copy.deepcopy(dict(document))
    given_out = set(used)
    openings: list[Opening] = []
    for path, steps in zip(paths, split, strict=True):
        holder, key = _place(concealed, path, steps)
        salt = ids.secret()
        if not _SALT.fullmatch(salt):
            raise DisclosureError("the salt has less than 128 bits")
        if salt in given_out:
            raise DisclosureError("the salt was used before; a salt hides one value only")
        given_out.add(salt)
        opening = Opening(path, disclosure_digest(salt, holder[key]), salt, holder[key])
        holder[key] = {"digest": opening.digest}
        openings.append(opening)
    if "hash" in concealed:
        concealed["hash"] = document_hash(concealed)
    return Concealed(concealed, tuple(openings))


def reveal(document: Mapping[str, Any], openings: Sequence[Opening]) -> dict[str, Any]:
    """A copy of `document` with salt and value beside the digest of each of `openings`.

    The copy's signature is that of `signed_form`.

    Raises:
        DisclosureError: an opening that belongs to no digest there, or does not open it.
    """
    disclosed = copy.deepcopy(dict(document))
    for opening in openings:
        holder, key = _place(disclosed, opening.path, _pointer(opening.path))
        there = holder[key]
        if not isinstance(there, dict) or there.get("digest") != opening.digest:
            raise DisclosureError(f"{opening.path}: another digest, or none, stands there")
        reason = verify_disclosure(opening.digest, opening.salt, opening.value)
        if reason != "ok":
            raise DisclosureError(f"{opening.path}: the opening does not fit its digest ({reason})")
        holder[key] = {**there, "salt": opening.salt, "value": opening.value}
    return disclosed


def signed_form(document: Mapping[str, Any]) -> dict[str, Any]:
    """`document` as it was signed: every opened disclosure closed again."""
    closed = _closed(document)
    assert isinstance(
        closed, dict
    )  # a closed document is one still, `_is_opened` being asked of members only
    return closed


def disclosures(document: Mapping[str, Any]) -> list[Disclosed]:
    """Every disclosure in `document`, in its order, each with what is wrong with it."""
    found: list[Disclosed] = []
    salts: set[str] = set()
    for path, one in _walk(document, ""):
        if not _is_opened(one):
            readable = isinstance(one["digest"], str) and _DIGEST.fullmatch(one["digest"]) is not None
            found.append(Disclosed(path, False, "ok" if readable else "unreadable"))
            continue
        reason = verify_disclosure(one["digest"], one["salt"], one["value"])
        if reason == "ok" and one["salt"] in salts:
            reason = "salt_reused"
        if isinstance(one["salt"], str):
            salts.add(one["salt"])
        found.append(Disclosed(path, True, reason))
    return found


def _is_disclosure(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and "digest" in value
        and all(name in ("digest", "salt", "value") or name.startswith("x-") for name in value)
    )


def _is_opened(value: object) -> bool:
    return _is_disclosure(value) and isinstance(value, Mapping) and "salt" in value and "value" in value


def _closed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: {inner: what for inner, what in member.items() if inner not in ("salt", "value")}
            if _is_opened(member)
            else _closed(member)
            for name, member in value.items()
        }
    if isinstance(value, list):
        # A list's element closes like a member's value.
        return [_closed({"": element})[""] for element in value]
    return value


def _walk(value: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    members: Sequence[tuple[str, Any]] = ()
    if isinstance(value, Mapping):
        members = [
            (name.replace("~", "~0").replace("/", "~1"), member)
            for name, member in value.items()
            if path or name != "signature"
        ]
    elif isinstance(value, list):
        members = [(str(index), element) for index, element in enumerate(value)]
    for name, member in members:
        if _is_disclosure(member):
            yield f"{path}/{name}", member
        else:
            yield from _walk(member, f"{path}/{name}")


def _pointer(path: str) -> list[str]:
    """The steps of a JSON Pointer to a member."""
    if not path.startswith("/") or re.search(r"~(?![01])", path):
        raise DisclosureError(f"{path!r} is no path; write for example /guest/name")
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


def _refuse_overlap(paths: Sequence[str], split: Sequence[list[str]]) -> None:
    for one, steps in zip(paths, split, strict=True):
        if steps[0] in ("hash", "signature", "kind"):
            raise DisclosureError(f"{one} cannot be concealed: whoever checks the document reads it")
        inside = [other for other, its in zip(paths, split, strict=True) if its[: len(steps)] == steps]
        if len(inside) > 1:
            raise DisclosureError(f"{inside[1]} lies inside {one}, or is named twice")


def _place(document: dict[str, Any], path: str, steps: list[str]) -> tuple[Any, Any]:
    """The object or list that holds what `path` leads to, and the name or index there."""
    holder: Any = document
    for depth, step in enumerate(steps):
        key: Any = step
        if isinstance(holder, list) and re.fullmatch(r"0|[1-9][0-9]{0,8}", step) and int(step) < len(holder):
            key = int(step)
        elif not isinstance(holder, dict) or step not in holder:
            raise DisclosureError(f"{path}: nothing stands there")
        if depth == len(steps) - 1:
            return holder, key
        holder = holder[key]
    raise DisclosureError(f"{path!r} leads nowhere")
