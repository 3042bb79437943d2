"""Whether a report tells who, where or exactly when (Core §6.9): only its day and what happened may be in it.

A check, not a promise: it finds what has the form of a name, an id, an address or a time of day. So a person
reads every report before it leaves the house.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from safety.feed_documents import IncidentReport

Identifying = Literal["name", "id", "address", "exact_time", "extension"]
_OWN_ID: Final = re.compile(r"inc-[A-Za-z0-9]{4,40}")
_SHORTEST_NAME: Final = 3


@dataclass(frozen=True, slots=True)
class Trace:
    """Something that could tell who reports: where it stands, what it is, and what to do about it."""

    path: str
    kind: Identifying
    detail: str


def traces(report: IncidentReport, plain: Mapping[str, Any], known: Iterable[str] = ()) -> tuple[Trace, ...]:
    """Everything in a report that could tell who sent it; empty when nothing was found.

    Args:
        plain: the report as plain JSON values, for members beyond the types.
        known: what is called by name in this household: people, agents, devices, the kitchen.
    """
    found: list[Trace] = []
    if not _OWN_ID.fullmatch(report.id):
        found.append(Trace("$.id", "id", "the id is drawn for this report alone: inc- and random signs"))
    for name in plain:
        if name.startswith("x-"):
            found.append(Trace(f"$.{name}", "extension", "nobody can tell what it would say; leave it out"))
    words = _household_words(known)
    for path, text in _texts(plain):
        if path in ("$.core", "$.kind", "$.id", "$.date"):
            continue
        free = path == "$.description"
        found.extend(Trace(path, kind, detail) for kind, detail in _in_text(text, words, free=free))
    return tuple(found)


def _texts(value: Any, path: str = "$") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{path}[{number}]")


def _household_words(known: Iterable[str]) -> frozenset[str]:
    """Each name, and each part of an id such as `person:anna`, that is long enough to mean somebody."""
    words: set[str] = set()
    for name in known:
        folded = _folded(name)
        words.add(folded)
        kind, mark, own = folded.rpartition(":")
        words.add(own if mark and kind else folded)
    return frozenset(word for word in words if len(word) >= _SHORTEST_NAME)


_TIMES: Final = (
    r"\b([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?\b",
    r"\b(0?\d|1[0-2])\s?(?:a\.?m\.?|p\.?m\.?)(?!\w)",
    r"\b([01]?\d|2[0-3])(?:[.h][0-5]\d)?\s?(?:uhr|o'clock)\b",
    r"\b\d{4}-\d{2}-\d{2}[t ]\d{2}",
    r"الساعه\s*\d",
)
_DATES: Final = (
    r"\b\d{4}-\d{2}-\d{2}\b",
    r"\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b",
)
_ADDRESSES: Final = (
    r"[\w.+-]+@[\w-]+\.\w+",
    r"\b(?:https?|mqtts?|cookwala)://\S+",
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b",
    r"\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b",
    r"(?:\+|\b00)\d[\d ()/-]{6,}\d",
    r"\b\d{3,5}[ /-]\d{3,}[ /-]?\d{2,}\b",
    r"\b\w+(?:stra(?:ss|ß)e|str\.|weg|gasse|platz)\s*\d+",
    r"\b\d+\s+\w+\s+(?:street|road|avenue|lane|drive|square)\b",
    r"\b\d{5}\s+[a-zäöü]{3,}\b",
    r"شارع\s+\S+",
    r"\.(?:local|lan|home)\b",
)
_IDS: Final = (
    r"\b(?:exe|order|req|log|ex|mandate|kid|session|task)-[a-z0-9-]{4,}",
    r"\bsha256:[0-9a-f]{8,}",
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
    r"\b(?:person|agent|household|device|user|account):\S+",
    r"\bdid:[a-z]+:\S+",
    r"\b(?:serial|seriennummer|s/n|imei|account|konto|kundennummer)\s*(?:no\.?|nr\.?|number|:)?\s*[a-z]*\d",
    r"\b(?=[a-z0-9-]*\d)(?=[a-z0-9-]*[a-z])[a-z0-9]{12,}\b",
)
_NAMES: Final = (
    r"\b(?i:mr|mrs|ms|dr|prof|herr|frau|sir|madam)\.?\s+[A-ZÄÖÜ]\w+",
    r"(?i:my name is|i am called|ich hei(?:ss|ß)e|mein name ist|signed by|gez\.|اسمي)\s+\S+",
)


def _in_text(text: str, words: frozenset[str], *, free: bool) -> Iterator[tuple[Identifying, str]]:
    folded = _folded(text)
    pieces = set(re.findall(r"\w+(?:[-:]\w+)*", folded)) | set(re.findall(r"\w+", folded))
    for word in sorted(words):
        if word in pieces or (not word.isalnum() and word in folded):
            yield "name", "it names somebody or something of this household"
            break
    # References, models and categories have figures and dots of their own; only words in them can tell.
    if not free:
        for pattern in (*_ADDRESSES[:1], *_IDS[:2], *_IDS[3:5]):
            if re.search(pattern, folded):
                yield "id", "an id of this household or of somebody"
                return
        return
    if any(re.search(pattern, text) for pattern in _NAMES):
        yield "name", "a person's name: say what happened, not to whom"
    checks: tuple[tuple[Identifying, tuple[str, ...], str], ...] = (
        ("address", _ADDRESSES, "an address, a number or a place on the net: leave it out"),
        ("id", _IDS, "an id or a serial number: the model is enough"),
        ("exact_time", (*_TIMES, *_DATES), "a time or another day: only the date of the report may be told"),
    )
    for kind, patterns, detail in checks:
        if any(re.search(pattern, folded) for pattern in patterns):
            yield kind, detail


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("ة", "ه")
    return "".join(sign for sign in folded if unicodedata.category(sign) != "Cf")
