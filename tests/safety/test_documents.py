"""Recipes, capabilities, limits: read strictly, and all that is public is read (Core §2; rulings D1, D3)."""

import copy
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.canonical import document_hash
from events.documents import DocumentError, from_plain, parse, read
from safety.device_documents import Capabilities, SafetyLimits
from safety.documents import Recipe
from safety.vocabulary import DEFAULT_LIMITS_RESOURCE, VOCABULARY_RESOURCE, Vocabulary

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "cookwala"
RECIPES = ("shakshuka", "lentil-soup", "koshari", "salata-baladi")
DEVICES = ("robot-arm", "demo-hob-robot", "demo-hob-robot-basic", "demo-oven")


@pytest.mark.parametrize("name", RECIPES)
def test_every_sample_recipe_is_read_and_keeps_its_published_hash(name: str, samples: dict[str, Any]) -> None:
    raw = json.dumps(samples["recipes"][name], ensure_ascii=False).encode()
    recipe = read(Recipe, raw)
    assert recipe.process.nodes
    assert document_hash(parse(raw)) == samples["expected"]["hashes"][name] == recipe.hash


@pytest.mark.parametrize("name", DEVICES)
def test_every_sample_device_is_read(name: str, samples: dict[str, Any]) -> None:
    assert read(Capabilities, json.dumps(samples["devices"][name]).encode()).capabilities.ops


@pytest.mark.reference
@pytest.mark.skipif(not REFERENCE.is_dir(), reason="public example devices are not beside the checkout")
def test_every_public_example_device_and_pack_is_read() -> None:
    paths = sorted((REFERENCE / "examples" / "capabilities").glob("*.json"))
    assert len(paths) == 6
    for path in paths:
        read(Capabilities, path.read_bytes())
    read(SafetyLimits, (REFERENCE / "profiles" / "core" / "safety-limits.default.json").read_bytes())


def test_our_own_data_files_are_valid_documents() -> None:
    pack = read(SafetyLimits, files("safety").joinpath(DEFAULT_LIMITS_RESOURCE).read_bytes())
    assert {"max_temp", "pressure", "unattended", "smoke_or_fire", "stop"} <= {
        limit.kind for limit in pack.limits
    }
    assert Vocabulary.from_bytes(files("safety").joinpath(VOCABULARY_RESOURCE).read_bytes()).operations


@pytest.mark.reference
@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the public vocabulary is not beside the checkout")
def test_our_vocabulary_holds_every_public_operation_with_its_figures(vocabulary: Vocabulary) -> None:
    public = json.loads((REFERENCE / "vocab" / "ops.json").read_bytes())["entries"]
    assert set(vocabulary.operations) == {entry["id"] for entry in public}
    for entry in public:
        ours = vocabulary.operations[entry["id"]]
        assert ours.executable == entry.get("executable", True)
        theirs = entry.get("envelope")
        assert (ours.envelope is None) == (theirs is None)
        if ours.envelope is not None:
            band = ours.envelope.temp_c
            assert ({"min": band.min, "max": band.max} if band else None) == theirs.get("tempC")
            assert ours.envelope.ladder == theirs["sensorLadder"]
            assert (ours.envelope.unattended, ours.envelope.attention, ours.envelope.medium) == (
                theirs["unattended"],
                theirs["attention"],
                theirs["medium"],
            )
    units = json.loads((REFERENCE / "vocab" / "units.json").read_bytes())["entries"]
    levels = {e["id"].removeprefix("cw.heat."): e["surfaceTempC"] for e in units if "surfaceTempC" in e}
    assert {n: {"min": b.min, "max": b.max} for n, b in vocabulary.heat_levels.items()} == levels


@pytest.mark.parametrize("version", ["0.1.0", "0.1.9", "0.2.0", "0.2.31"])
def test_both_format_versions_are_read(version: str, samples: dict[str, Any]) -> None:
    assert from_plain(Recipe, {**samples["recipes"]["shakshuka"], "cookwala": version}).cookwala == version


@pytest.mark.parametrize("version", ["0.3.0", "1.0.0", "0.2", "0.20.0", "", 2])
def test_any_other_format_version_is_refused_with_its_path(version: Any, samples: dict[str, Any]) -> None:
    with pytest.raises(DocumentError) as caught:
        from_plain(Recipe, {**samples["recipes"]["shakshuka"], "cookwala": version})
    assert caught.value.path == "$.cookwala"


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ((), "$"),
        (("dish",), "$.dish"),
        (("yield",), "$.yield"),
        (("ingredients", 0), "$.ingredients[0]"),
        (("ingredients", 0, "qty"), "$.ingredients[0].qty"),
        (("process",), "$.process"),
        (("process", "nodes", 0), "$.process.nodes[0]"),
        (("process", "nodes", 0, "until"), "$.process.nodes[0].until"),
        (("safety",), "$.safety"),
        (("safety", "hazards", 0), "$.safety.hazards[0]"),
        (("safety", "abort"), "$.safety.abort"),
    ],
)
def test_an_unknown_member_is_refused_with_its_path_and_an_extension_is_not(
    place: tuple[str | int, ...], path: str, samples: dict[str, Any]
) -> None:
    for name, refused in (("turbo", True), ("x-acme-turbo", False)):
        plain = copy.deepcopy(samples["recipes"]["koshari"])
        spot: Any = plain
        for step in place:
            spot = spot[step]
        spot[name] = 1
        raw = json.dumps(plain).encode()
        if not refused:
            read(Recipe, raw)
            continue
        with pytest.raises(DocumentError) as caught:
            read(Recipe, raw)
        assert (caught.value.reason, caught.value.path) == ("unknown_field", path)


@pytest.mark.parametrize(
    "until",
    [
        {"sensor": "cw.sense.core_temp", "gte": 70},
        {"all": [{"sensor": "cw.sense.core_temp", "vision": "cw.sense.translucent"}]},
        {"all": [{"gte": 70}]},
        {"any": [{"sensor": "cw.sense.core_temp", "maxTime": "PT5M"}]},
        {"not": {"sensor": "cw.sense.core_temp", "between": [1]}},
        {"maxTime": "five minutes"},
        {"onSensorMissing": "guess"},
    ],
)
def test_a_malformed_condition_is_refused(until: dict[str, Any], samples: dict[str, Any]) -> None:
    plain = copy.deepcopy(samples["recipes"]["koshari"])
    plain["process"]["nodes"][0]["until"] = until
    with pytest.raises(DocumentError) as caught:
        from_plain(Recipe, plain)
    assert caught.value.reason == "invalid"
    assert caught.value.path.startswith("$.process.nodes[0]")


COMPARISON = st.fixed_dictionaries(
    {"sensor": st.sampled_from(["cw.sense.core_temp", "x-acme.depth"])},
    optional={
        "gte": st.floats(-50, 300) | st.just("{target}"),
        "between": st.lists(st.integers(0, 99), min_size=2, max_size=2),
        "eq": st.booleans() | st.text(max_size=5),
        "unit": st.sampled_from(["degC", "g", "pct"]),
        "holdFor": st.just("PT10S"),
        "confidence": st.floats(0, 1),
        "humanConfirm": st.booleans(),
    },
)
CONDITION = st.recursive(
    st.fixed_dictionaries({}, optional={"maxTime": st.just("PT1H2M3.5S"), "minTime": st.just("P1D")}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "all": st.lists(inner | COMPARISON, max_size=3),
            "any": st.lists(inner | COMPARISON, max_size=3),
            "not": inner | COMPARISON,
            "onSensorMissing": st.sampled_from(["estimate", "time", "human", "refuse"]),
        },
    ),
    max_leaves=8,
)
MUTATION = st.fixed_dictionaries(
    {"id": st.from_regex(r"\A[A-Za-z][A-Za-z0-9_-]{0,63}\Z"), "op": st.sampled_from(["cw.op.mix", "x-a.b"])},
    optional={
        "params": st.dictionaries(st.text(min_size=1, max_size=8), st.integers() | st.text(max_size=5)),
        "until": CONDITION,
        "onTimeout": st.sampled_from(["retry", "abort_safe"]),
        "retry": st.fixed_dictionaries({}, optional={"max": st.integers(0, 5), "extendBy": st.just("PT2M")}),
        "attention": st.sampled_from(["none", "continuous"]),
        "assignment": st.fixed_dictionaries({"allowed": st.lists(st.sampled_from(["human", "any"]))}),
        "timing": st.just({"canPause": True, "startAfter": "PT1M"}),
        "pre": st.just([{"of": "rice", "state": "dry"}]),
        "notes": st.just({"en": "stir"}),
        "sourceSteps": st.just([1, 2]),
        "x-acme-anything": st.integers() | st.just({"x": [1]}),
    },
)


@pytest.mark.reference
@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the public schemas are not beside the checkout")
@settings(max_examples=200)
@given(nodes=st.lists(MUTATION, min_size=1, max_size=4), servings=st.floats(0.1, 100))
def test_whatever_the_public_schema_accepts_is_read(
    nodes: list[dict[str, Any]], servings: float, samples: dict[str, Any], recipe_schema: Any
) -> None:
    plain = copy.deepcopy(samples["recipes"]["shakshuka"])
    plain["process"]["nodes"] = nodes
    plain["yield"]["servings"] = servings
    recipe_schema.validate(plain)
    assert len(read(Recipe, json.dumps(plain).encode()).process.nodes) == len(nodes)


@pytest.fixture(scope="session")
def recipe_schema() -> Any:
    """The public recipe schema with its neighbours at hand; nothing is fetched."""
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource

    pairs = []
    for path in (REFERENCE / "schemas").glob("*.json"):
        schema = json.loads(path.read_bytes())
        if "$id" in schema:
            pairs.append((schema["$id"], Resource.from_contents(schema)))
    registry: Registry[Any] = Registry().with_resources(pairs)
    schema = json.loads((REFERENCE / "schemas" / "recipe.schema.json").read_bytes())
    return Draft202012Validator(schema, registry=registry)


def test_a_device_publishes_its_keys_and_how_long_it_knows_a_start(samples: dict[str, Any]) -> None:
    key = {"kid": "k1", "alg": "ES256", "publicKey": "AAAA", "validFrom": "2026-01-01T00:00:00Z"}
    plain = {
        **samples["devices"]["robot-arm"],
        "x-aboyeur-keys": [key],
        "x-aboyeur-start-dedup-h": 24,
        "x-other": 1,
    }
    capabilities = read(Capabilities, json.dumps(plain).encode())
    assert capabilities.x_keys is not None and capabilities.x_keys[0].kid == "k1"
    assert capabilities.x_start_dedup_h == 24
    with pytest.raises(DocumentError):
        from_plain(Capabilities, {**plain, "x-aboyeur-keys": [{"kid": "k1"}]})


def test_allergens_are_those_declared_possible_and_in_ingredients(samples: dict[str, Any]) -> None:
    plain = copy.deepcopy(samples["recipes"]["salata-baladi"])
    plain["safety"]["allergens"] = {"eu14": ["milk"], "us9": ["wheat"], "mayContain": ["nuts"]}
    plain["ingredients"][0]["allergens"] = ["celery"]
    assert {"milk", "wheat", "nuts", "celery"} <= from_plain(Recipe, plain).allergens()


@pytest.mark.parametrize(
    "broken",
    [
        b"{}",
        b'{"vocabulary":"1","operations":[{"id":"cw.op.a"},{"id":"cw.op.a"}],"heatLevels":{}}',
        b'{"vocabulary":"1","operations":[],"heatLevels":{"low":{"min":2,"max":1}}}',
        b'{"vocabulary":"1","operations":[{"id":"cw.op.sear","envelope":{"medium":"oil","unattended":false,'
        b'"attention":"continuous","ladder":["time"]}}],"heatLevels":{}}',
    ],
)
def test_a_vocabulary_that_would_loosen_the_ladder_or_contradicts_itself_is_refused(broken: bytes) -> None:
    with pytest.raises(DocumentError):
        Vocabulary.from_bytes(broken)
