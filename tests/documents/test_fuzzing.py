"""Whatever comes, a reader accepts it or names the problem (rulings Q2, Q7)."""

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from events.documents import DocumentError, read
from events.envelope import read_event
from hub.conformance.runner import run_suite
from hub.conformance.vectors import Suite, read_folder, read_vectors
from hub.document_kinds import EVENT, KINDS
from hub.event_types import event_registry
from mandates.key_addresses import KeySourceError
from mandates.key_sources import read_published
from tests.documents.fuzzing import TEXT_REASONS, fuzz
from tests.documents.valid_documents import valid_documents
from tests.events import samples

DOCUMENTS = sorted(set(KINDS) - {EVENT})
EVENT_REASONS = {
    *TEXT_REASONS,
    *("unknown_field", "invalid", "bad_attribute_name", "attribute_not_string"),
    *("bad_time", "unknown_type", "bad_data"),
}
FEW = 1500
MANY = [FEW, pytest.param(100_000, marks=pytest.mark.soak)]
SLOW = {"Recipe": FEW // 2}
"""Kinds that the short suite reads less often."""
EVENTS = [*samples.ALL, samples.PRESENCE]
VECTORS = Path(__file__).parents[1] / "conformance" / "vectors"


@pytest.mark.parametrize("times", MANY)
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_a_mutated_document_is_read_or_its_problem_named(kind: str, times: int) -> None:
    fuzz(
        lambda raw: read(KINDS[kind], raw),
        valid_documents()[kind],
        SLOW.get(kind, times) if times == FEW else times,
        {*TEXT_REASONS, "unknown_field", "invalid"},
    )


@pytest.mark.parametrize("times", MANY)
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event["type"])
def test_a_mutated_event_is_read_or_its_problem_named(event: dict[str, object], times: int) -> None:
    registry = event_registry()
    fuzz(lambda raw: read_event(raw, registry), [event], times, EVENT_REASONS)


def test_every_kind_of_event_data_is_among_the_mutated() -> None:
    registry = event_registry()
    known = {one.data for one in registry if one.data is not None}
    assert {read_event(samples.raw_of(one), registry).event_type.data for one in EVENTS} - {None} == known


PUBLIC_KEY = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
DID = "did:web:bakery.example"
JWK = {"kty": "OKP", "crv": "Ed25519", "x": PUBLIC_KEY}
KEY_RECORD = {"kid": "k1", "alg": "EdDSA", "publicKey": PUBLIC_KEY, "validFrom": "2026-01-01T00:00:00Z"}
SOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "catalogue": (
        "https://cookwala.example/.well-known/cookwala.json",
        {"name": "a catalogue", "keys": [{**JWK, "kid": "k1", "use": "sig"}, {**KEY_RECORD, "kid": "k2"}]},
    ),
    "did": (
        DID,
        {
            "id": DID,
            "verificationMethod": [
                {"id": "#k1", "type": "JsonWebKey2020", "controller": DID, "publicKeyJwk": JWK},
                {
                    "id": f"{DID}#k2",
                    "type": "Multikey",
                    "controller": DID,
                    "publicKeyMultibase": "z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw",
                },
            ],
        },
    ),
    "device": ("http://hob.home:9101", {"roles": ["executor"], "x-aboyeur-keys": [KEY_RECORD]}),
    "file": ("keys.json", KEY_RECORD),
}


@pytest.mark.parametrize("times", MANY)
@pytest.mark.parametrize("kind", SOURCES)
def test_a_mutated_source_of_keys_is_read_or_its_problem_named(kind: str, times: int) -> None:
    source, valid = SOURCES[kind]
    whole = read_published(samples.raw_of(valid), source=source)
    assert (whole.kind, whole.skipped) == (kind, ())
    assert whole.records

    def keys(raw: bytes) -> None:
        try:
            found = read_published(raw, source=source)
        except KeySourceError as error:
            raise DocumentError("no_keys", str(error)) from None
        if found.skipped:
            raise DocumentError("skipped", found.skipped[0].why)

    fuzz(keys, [valid], times, {"no_keys", "skipped"})


@functools.cache
def _vectors() -> tuple[dict[str, Any], ...]:
    return tuple(
        vector for path in sorted(VECTORS.rglob("*.json")) for vector in json.loads(path.read_bytes())
    )


@pytest.mark.parametrize("times", MANY)
def test_a_mutated_vector_is_run_or_its_problem_named(times: int) -> None:
    assert len(_vectors()) == sum(len(suite.vectors) for suite in read_folder(VECTORS))

    def vectors(raw: bytes) -> None:
        run_suite(Suite("mutated", read_vectors(b"[" + raw + b"]")))

    reasons = {*TEXT_REASONS, "unknown_field", "invalid"} - {"too_large"}
    fuzz(vectors, _vectors(), times, reasons)
