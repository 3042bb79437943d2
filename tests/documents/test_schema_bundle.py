"""Our JSON Schema bundle: complete, true, fetching nothing, the same for the same types (rulings D6, D7)."""

import json
import random
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import jsonschema
import jsonschema_rs
import pytest
import referencing
from click.testing import CliRunner

from events.documents import DocumentError, parse, read, write
from events.envelope import read_event
from events.texts import UNTRUSTED
from hub.cli.main import aboyeur, run
from hub.document_kinds import EVENT, KINDS
from hub.event_types import event_registry
from hub.records.log.mission import FOLLOWING
from hub.schema_bundle import bundle, bundle_bytes, schema_of
from hub.validation import validate
from tests.documents.fuzzing import text_of
from tests.documents.valid_documents import MANDATE, valid_documents
from tests.events import samples
from tests.events.mutants import mutant

PUBLIC = Path(__file__).parents[3] / "shared" / "reference" / "cookwala" / "schemas"
BASE = "https://cookwala.ai/v1/schemas/"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any, **_more: Any) -> NoReturn:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_the_bundle_is_a_schema_that_refers_to_nothing_outside() -> None:
    whole = bundle()
    jsonschema.Draft202012Validator.check_schema(whole)
    references = [part["$ref"] for part in _objects(whole) if "$ref" in part]
    assert len(references) > 100
    assert all(one.startswith("#/$defs/") and one[8:] in whole["$defs"] for one in references)
    assert set(KINDS) <= set(whole["$defs"])


def test_the_same_types_give_the_same_bytes() -> None:
    program = (
        "import sys; from hub.schema_bundle import bundle_bytes; sys.stdout.buffer.write(bundle_bytes())"
    )
    again = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert again.stdout == bundle_bytes() == bundle_bytes()


def test_objects_are_closed_but_for_extensions_and_free_text_is_marked() -> None:
    whole = bundle()
    for name, one in whole["$defs"].items():
        if one.get("additionalProperties") is False and name != "Envelope":
            assert one["patternProperties"] == {"^x-": {}}, name
    assert whole["$defs"]["Envelope"]["additionalProperties"] is False
    assert whole["$defs"]["IncidentReport"]["properties"]["description"][UNTRUSTED] is True
    assert whole["$defs"]["Node"]["properties"]["notes"][UNTRUSTED] is True
    assert {"type": "null"} not in list(_objects({name: whole["$defs"][name] for name in KINDS}))


def _objects(value: Any) -> Any:
    if isinstance(value, dict):
        yield value
        for child in value.values():
            yield from _objects(child)
    elif isinstance(value, list):
        for child in value:
            yield from _objects(child)


BEYOND_A_SCHEMA = (
    "bad_time",
    "bad_number",
    "control character",
    "in no calendar",
    "day is out of range",
    "RFC 3339",
)
"""What a pattern cannot say: the calendar, the range of a double."""


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_schema_and_reader_agree_on_every_mutant(kind: str) -> None:
    """The schema cannot see what is wrong with the text itself; of what parses, both say the same."""
    chance = random.Random(kind)
    valid = [*samples.ALL, samples.PRESENCE] if kind == EVENT else valid_documents()[kind]
    validator = jsonschema_rs.validator_for(schema_of(kind))
    registry = event_registry()
    verdicts = set()
    for _ in range(400):
        raw = mutant(chance.choice(valid), chance)
        try:
            plain = parse(raw)
        except DocumentError:
            continue
        try:
            read_event(raw, registry) if kind == EVENT else read(KINDS[kind], raw)
            accepted = True
        except DocumentError as error:
            accepted = False
            if any(words in str(error) for words in BEYOND_A_SCHEMA):
                continue
        verdicts.add(accepted)
        assert validator.is_valid(plain) == accepted, raw
    assert verdicts == {True, False}


@pytest.mark.parametrize("until", [{"eq": None}, {"eq": 1}, {"sensor": "cw.sense.lid", "eq": None}, {}])
def test_schema_and_reader_agree_on_a_comparison_with_null(until: dict[str, Any]) -> None:
    validator = jsonschema_rs.validator_for(schema_of("Condition"))
    try:
        read(KINDS["Condition"], text_of(until))
        accepted = True
    except DocumentError:
        accepted = False
    assert validator.is_valid(until) == accepted == ("sensor" in until or not until)


# --- against the public schemas ---------------------------------------------------------------------------


def _public() -> referencing.Registry[Any]:
    """The public schemas. What they refer to and is not among them cannot be resolved, and fails."""
    schemas = [json.loads(path.read_bytes()) for path in sorted(PUBLIC.glob("*.schema.json"))]
    # Of the schema of a Mission only the definitions are there; they refer to the state that it has itself.
    mission = json.loads((PUBLIC / "mission-defs.json").read_bytes())
    assert mission.keys() == {"$defs"}
    schemas.append(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"{BASE}mission.schema.json",
            "properties": {"state": {"enum": list(FOLLOWING)}},
            **mission,
        }
    )
    registry: referencing.Registry[Any] = referencing.Registry()
    return registry.with_resources((one["$id"], referencing.Resource.from_contents(one)) for one in schemas)


@pytest.mark.reference
@pytest.mark.parametrize("kind", sorted(set(KINDS) - {EVENT}))
def test_what_we_accept_and_write_is_valid_by_the_public_schemas(kind: str) -> None:
    if not PUBLIC.is_dir():
        pytest.skip(f"the public schemas are not there: {PUBLIC}")
    whole = {"Recipe": "recipe.schema.json", "Capabilities": "capabilities.schema.json"}
    common = (
        "AgentMandate",
        "KeyRecord",
        "Disclosure",
        "Signature",
        "Money",
        "Quantity",
        "Target",
        "Condition",
    )
    other = {"ConformanceReport": "conformance", "MissionEvent": "mission", "Checkpoint": "mission"}
    file = "common" if kind in common else other.get(kind, "core")
    schema = {"$ref": BASE + whole.get(kind, f"{file}.schema.json#/$defs/{kind}")}
    validator = jsonschema.Draft202012Validator(_opened(schema), registry=_public())
    for plain in valid_documents()[kind]:
        written = parse(write(read(KINDS[kind], text_of(plain))))
        assert [error.message for error in validator.iter_errors(written)] == []


def _opened(schema: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


# --- the commands -----------------------------------------------------------------------------------------


def test_every_problem_is_reported_with_its_path() -> None:
    recipe = valid_documents()["Recipe"][0]
    recipe["turbo"] = 1
    recipe["ingredients"][0]["qty"] = {"value": -1, "unit": "degF"}
    recipe["process"]["nodes"][2]["op"] = 7
    recipe["revision"] = "one"
    report = validate(text_of(recipe))
    assert report.kind == "Recipe"
    assert {problem.path for problem in report.problems} == {
        "$",
        "$.ingredients[0].qty.value",
        "$.ingredients[0].qty.unit",
        "$.process.nodes[2].op",
        "$.revision",
    }
    assert [one.reason for one in validate(b'{"a":1,"a":2}').problems] == ["duplicate_key"]
    assert [one.reason for one in validate(b'{"a":1}').problems] == ["unknown_kind"]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (
            # what the reader finds first lies beside what the schema finds
            {**samples.SMOKE, "id": "a\x07b", "data": {**samples.SMOKE["data"], "smell": 1}},
            {("$", "invalid"), ("$.data", "additionalProperties")},
        ),
        ({**samples.SMOKE, "id": "a\x07b", "subject": ""}, {("$.subject", "minLength")}),
        ({**samples.SMOKE, "dataref": "1"}, {("$", "additionalProperties")}),
        ({"amount": "1", "currency": "XXZ"}, {("$.currency", "enum")}),
        ({**MANDATE, "spendCap": {"amount": "1"}}, {("$.spendCap", "required")}),
        ({**valid_documents()["IncidentReport"][0], "date": "2026-02-30"}, {("$.date", "bad_time")}),
    ],
)
def test_what_the_reader_finds_is_told_unless_it_was_told(
    document: dict[str, Any], told: set[tuple[str, str]]
) -> None:
    assert {(one.path, one.reason) for one in validate(text_of(document)).problems} == told


NAMING_CORE = sorted(kind for kind, many in valid_documents().items() if "core" in many[0])


@pytest.mark.parametrize("version", ["9.9.9", "0.1.0", "0.20.0"])
@pytest.mark.parametrize("kind", NAMING_CORE)
def test_a_document_of_another_core_is_not_valid(kind: str, version: str) -> None:
    document = valid_documents()[kind][0]
    assert validate(text_of(document), kind).problems == ()
    (problem,) = validate(text_of({**document, "core": version})).problems
    assert (problem.path, problem.reason) == ("$.core", "unsupported_version")
    (problem,) = validate(text_of({**document, "core": "next"})).problems
    assert (problem.path, problem.reason) == ("$.core", "pattern")


@pytest.mark.parametrize(
    ("kind", "path", "members"),
    [
        ("ExecuteRequest", "$.serveBy", {"serveBy": "2026-02-30T10:00:00Z"}),
        ("ExecuteRequest", "$.mandate.expires", {"mandate": {**MANDATE, "expires": "2025-02-29T10:00:00Z"}}),
        (
            "ExecutionLog",
            "$.steps[0].startedAt",
            {
                "steps": [
                    {
                        "node": "n1",
                        "op": "cw.op.simmer",
                        "verifiedBy": "time",
                        "envelopeOk": True,
                        "startedAt": "2026-04-31T10:00:00Z",
                    }
                ]
            },
        ),
        ("ExecutionStatus", "$.updatedAt", {"updatedAt": "0001-01-01T00:00:00+23:00"}),
        ("IncidentReport", "$.date", {"date": "2026-02-30"}),
        ("ConformanceReport", "$.date", {"date": "2026-11-31"}),
    ],
)
def test_a_time_that_no_calendar_has_is_not_valid(kind: str, path: str, members: dict[str, Any]) -> None:
    document = {**valid_documents()[kind][0], **members}
    found = {(one.path, one.reason) for one in validate(text_of(document)).problems}
    assert (path, "bad_time") in found


def test_a_time_in_the_data_of_an_event_is_held_against_the_calendar() -> None:
    question = {**samples.QUESTION, "data": {**samples.QUESTION["data"], "expiresAt": "2026-02-30T12:00:00Z"}}
    assert ("$.data.expiresAt", "bad_time") in {
        (one.path, one.reason) for one in validate(text_of(question)).problems
    }


def test_the_command_says_valid_or_what_is_wrong_and_exits_1(tmp_path: Path, capsys: Any) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_bytes(text_of(valid_documents()["Money"][0]))
    bad.write_bytes(text_of({"amount": "1", "currency": "XXZ"}))
    assert run(["validate", str(good)]) == 0
    assert "valid (Money)" in capsys.readouterr().out
    assert run(["validate", "--json", str(good), str(bad)]) == 1
    files = json.loads(capsys.readouterr().out)["files"]
    assert files[0]["problems"] == []
    assert files[1]["problems"][0]["path"] == "$.currency"
    assert run(["validate", "--kind", "Nonsense", str(good)]) == 2
    assert run(["validate", str(tmp_path / "none.json")]) == 2


def test_without_the_extra_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    good = tmp_path / "good.json"
    good.write_bytes(text_of(valid_documents()["Money"][0]))
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    assert run(["validate", str(good)]) == 1
    assert "aboyeur[validate]" in capsys.readouterr().err


def test_the_bundle_is_printed_or_written(tmp_path: Path) -> None:
    out = tmp_path / "bundle.json"
    assert CliRunner().invoke(aboyeur, ["schema", "bundle"]).stdout_bytes == bundle_bytes()
    assert CliRunner().invoke(aboyeur, ["schema", "bundle", "--out", str(out)]).exit_code == 0
    assert out.read_bytes() == bundle_bytes()


def test_the_bundle_does_not_overwrite_a_file(tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "mine.json"
    out.write_bytes(b"mine")
    assert run(["schema", "bundle", "--out", str(out)]) == 2
    assert "not overwritten" in capsys.readouterr().err
    assert out.read_bytes() == b"mine"
