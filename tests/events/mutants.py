"""Mutants of valid documents, for fuzzing (ruling Q2): most still parse, some are still acceptable."""

import copy
import json
import random as chance
from collections.abc import Callable, Mapping
from typing import Any

Place = tuple[Any, Any]
"""A container and the key or index of one of its values."""


def mutant(valid: Mapping[str, Any], random: chance.Random) -> bytes:
    """`valid` with one to three changes, written as JSON text."""
    document = copy.deepcopy(dict(valid))
    draw = random.random()
    if draw < 0.35:
        for _ in range(random.randint(1, 2)):
            random.choice(HARMLESS)(document, random)
        return _written(document, random)
    if draw < 0.75:
        for _ in range(random.randint(1, 3)):
            random.choice(CHANGES)(document, random)
        return _written(document, random)
    return random.choice(SPOILS)(_written(document, random), random)


def _written(document: Any, random: chance.Random) -> bytes:
    return json.dumps(
        document,
        ensure_ascii=random.random() < 0.5,
        indent=random.choice((None, None, 1)),
        separators=random.choice((None, (",", ":"))),
    ).encode(errors="surrogatepass")


def _places(value: Any) -> list[Place]:
    found: list[Place] = []
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        found.append((value, key))
        found.extend(_places(child))
    return found


def _objects(document: Any) -> list[dict[str, Any]]:
    return [document, *(holder[key] for holder, key in _places(document) if isinstance(holder[key], dict))]


def _shuffle(document: dict[str, Any], random: chance.Random) -> None:
    members = list(document.items())
    random.shuffle(members)
    document.clear()
    document.update(members)


def _add_extension(document: dict[str, Any], random: chance.Random) -> None:
    # In an event the data is the place for it: the envelope is closed.
    within = document["data"] if isinstance(document.get("data"), dict) else document
    within[f"x-vendor-{random.randint(0, 9)}"] = random.choice((1, "a:b", None, [], {"x-y": {"k": 2.5}}))


def _replace(document: dict[str, Any], random: chance.Random) -> None:
    holder, key = random.choice(_places(document))
    holder[key] = random.choice(
        (0, -1, 1.5, 2**53, 2**70, True, "", "x", "2026-02-30T00:00:00Z", "\x00", [], {}, [1], {"a": 1})
    )


def _cut(document: dict[str, Any], random: chance.Random) -> None:
    texts = [place for place in _places(document) if isinstance(place[0][place[1]], str)]
    if texts:
        holder, key = random.choice(texts)
        holder[key] = holder[key][:-1]


def _append(document: dict[str, Any], random: chance.Random) -> None:
    texts = [place for place in _places(document) if isinstance(place[0][place[1]], str)]
    if texts:
        holder, key = random.choice(texts)
        holder[key] += random.choice((" ", "\n", "é", "😀", "a" * 300))


def _drop(document: dict[str, Any], random: chance.Random) -> None:
    holder, key = random.choice(_places(document))
    del holder[key]
    if not document:
        document["id"] = "left"


def _rename(document: dict[str, Any], random: chance.Random) -> None:
    within = random.choice([one for one in _objects(document) if one])
    name = random.choice(list(within))
    within[random.choice((name + "-x", name.upper(), name + "2", "x-" + name))] = within.pop(name)


def _add_unknown(document: dict[str, Any], random: chance.Random) -> None:
    random.choice(_objects(document))[random.choice(("extra", "dataref", "Extra", "a-b"))] = "1"


def _duplicate(raw: bytes, random: chance.Random) -> bytes:
    name = next(iter(json.loads(raw)))
    again = random.choice((json.dumps(name), f'"\\u{ord(name[0]):04x}{name[1:]}"'))
    return raw.rstrip()[:-1] + b"," + again.encode() + b":1}"


def _insert_member(value: bytes) -> Callable[[bytes, chance.Random], bytes]:
    return lambda raw, random: raw.rstrip()[:-1] + b',"x-extra":' + value + b"}"


def _truncate(raw: bytes, random: chance.Random) -> bytes:
    return raw[: random.randrange(len(raw))]


def _flip(raw: bytes, random: chance.Random) -> bytes:
    at = random.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ (1 << random.randrange(8))]) + raw[at + 1 :]


def _splice(raw: bytes, random: chance.Random) -> bytes:
    at = random.randrange(len(raw))
    return raw[:at] + random.choice((b"\x00", b'"', b"}", b",", b"\\", b"\xff", b"\xed\xa0\x80")) + raw[at:]


def _mark_order(raw: bytes, random: chance.Random) -> bytes:
    return b"\xef\xbb\xbf" + raw


def _pad(raw: bytes, random: chance.Random) -> bytes:
    return raw + b" " * 1_100_000


HARMLESS: tuple[Callable[[dict[str, Any], chance.Random], None], ...] = (_shuffle, _add_extension)
CHANGES = (_replace, _replace, _cut, _append, _drop, _rename, _add_unknown, _shuffle, _add_extension)
SPOILS = (
    _duplicate,
    _duplicate,
    _insert_member(b'"\\ud83d"'),
    _insert_member(b"1e999"),
    _insert_member(b"[" * 80 + b"]" * 80),
    _insert_member(b"[" * 5000 + b"]" * 5000),
    _truncate,
    _flip,
    _flip,
    _splice,
    _mark_order,
    _pad,
)
