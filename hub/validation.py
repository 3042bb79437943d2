"""Full reports on documents: every problem with its place, from our schema, from our strict reader, and what
no schema can say: the version, the calendar, and of a recipe what it means."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from events.documents import DocumentError, parse, read
from events.envelope import read_event
from events.versions import SPOKEN, other_version
from hub.calendar import impossible_times
from hub.document_kinds import EVENT, KINDS, kind_of
from hub.event_types import event_registry
from hub.schema_bundle import schema_of
from hub.vocabularies import own_vocabulary
from safety.documents import Recipe
from safety.recipe_semantics import recipe_problems


class ValidatorMissing(ImportError):
    """The extra `validate` is not installed."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        path: where, as `$.member[0].member`.
        reason: a reason of `DocumentError`, `unknown_kind`, `unsupported_version` of another Core, `bad_time`
            for what no calendar has, the keyword of JSON Schema that does not hold, or one of
            `safety.recipe_semantics`.
        detail: in words; quotes nothing of the document's values.
        source: who found it: the guards of JSON `text`, the `schema`, the strict `reader`, or who asked what
            it means, its `meaning`.
    """

    path: str
    reason: str
    detail: str
    source: Literal["text", "schema", "reader", "meaning"]


@dataclass(frozen=True, slots=True)
class Report:
    """What was found; valid if there is no problem. `kind` is `None` where it could not be told."""

    kind: str | None
    problems: tuple[Problem, ...]


def validate(raw: bytes, kind: str | None = None) -> Report:
    """Everything that is wrong with the document in `raw`, a `kind` (told from the document where `None`).

    Raises:
        ValidatorMissing: jsonschema-rs is not installed.
        KeyError: there is no such kind.
    """
    try:
        plain = parse(raw)
    except DocumentError as error:
        return Report(kind, (Problem(error.path, error.reason, error.detail, "text"),))
    kind = kind or kind_of(plain)
    if kind is None:
        known = ", ".join(KINDS)
        return Report(None, (Problem("$", "unknown_kind", f"name one with --kind: {known}", "text"),))
    problems = [*_by_schema(plain, kind), *_by_calendar(plain, kind)]
    read_problem = _by_reader(raw, kind)
    if read_problem is not None and not any(_same(read_problem, one) for one in problems):
        problems.append(read_problem)
    problems.extend(_by_version(plain, kind, problems))
    if kind == "Recipe" and not problems:
        problems.extend(_by_meaning(raw, plain))
    return Report(kind, tuple(problems))


def _by_schema(plain: Any, kind: str) -> Iterator[Problem]:
    try:
        import jsonschema_rs
    except ImportError:
        raise ValidatorMissing("jsonschema-rs is not installed") from None
    validator = jsonschema_rs.validator_for(schema_of(kind), mask="the value")
    found = {
        Problem(_path(error.instance_path), str(error.schema_path[-1]), error.message, "schema")
        for error in validator.iter_errors(plain)
    }
    yield from sorted(found, key=lambda one: (one.path, one.reason, one.detail))


def _by_reader(raw: bytes, kind: str) -> Problem | None:
    try:
        if kind == EVENT:
            read_event(raw, event_registry())
        else:
            read(KINDS[kind], raw)
    except DocumentError as error:
        return Problem(error.path, error.reason, error.detail, "reader")
    return None


def _by_version(plain: Any, kind: str, before: Sequence[Problem]) -> Iterator[Problem]:
    """A version of Core that is not read here; text that is no version at all has been told before."""
    names_core = any(member.encode_name == "core" for member in msgspec.structs.fields(KINDS[kind]))
    if names_core and other_version(plain) is not None and not any(one.path == "$.core" for one in before):
        yield Problem("$.core", "unsupported_version", f"only Core {SPOKEN} is read", "meaning")


def _by_calendar(plain: Any, kind: str) -> Iterator[Problem]:
    found = impossible_times(plain, KINDS[kind])
    if kind == EVENT and isinstance(plain, dict) and isinstance(plain.get("type"), str):
        event_type = event_registry().lookup(plain["type"])
        if event_type is not None and event_type.data is not None:
            found += [("data", *steps) for steps in impossible_times(plain.get("data"), event_type.data)]
    for steps in found:
        yield Problem(_path(steps), "bad_time", "no calendar has it", "meaning")


def _by_meaning(raw: bytes, plain: Any) -> Iterator[Problem]:
    for found in recipe_problems(read(Recipe, raw), plain, own_vocabulary()):
        yield Problem(found.path, found.reason, found.detail, "meaning")


_MEMBER = re.compile(r"field `([^`]+)`")
_SOME_STEP = r"(?:\.[A-Za-z0-9_@$-]+|\[[^\]]*\])"


def _same(ours: Problem, theirs: Problem) -> bool:
    """Whether the reader tells again what was told: the same place, and the same member if it names one."""
    named = _MEMBER.search(ours.detail)
    if _at(ours.path, theirs.path):
        return named is None or _quotes(theirs.detail, named[1])
    # The one names an object and says which member of it is wrong, where the other names the member.
    holder, _, member = theirs.path.rpartition(".")
    if _at(ours.path, holder):
        return named is None and re.search(rf"\b{re.escape(member)}\b", ours.detail) is not None
    holder, _, member = ours.path.rpartition(".")
    return holder == theirs.path and _quotes(theirs.detail, member)


def _at(ours: str, theirs: str) -> bool:
    """Whether the reader's path, which names no key of a map, may be that path."""
    return re.fullmatch(_SOME_STEP.join(map(re.escape, ours.split("[...]"))), theirs) is not None


def _quotes(detail: str, name: str) -> bool:
    return f"'{name}'" in detail or f'"{name}"' in detail


_PLAIN_NAME = re.compile(r"[A-Za-z0-9_@$-]+")


def _path(steps: Any) -> str:
    path = "$"
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if _PLAIN_NAME.fullmatch(step) else f"[{step!r}]"
    return path
