"""Each verb: what it asks of a hub, what a person reads, what a script gets."""

import json
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from config.paths import DataFolder, write_private
from events.documents import from_plain
from events.seams import SystemClock, SystemIds
from events.times import parse_date_time
from hub.cli.client import HubClient
from hub.cli.errors import CommandError
from hub.cli.invocation import Invocation
from hub.keyfiles import make_key, read_key, read_record
from mandates.documents import AgentMandate
from mandates.keys import KeyRing
from mandates.signature import verify_document

HASH = "sha256:" + "ab" * 32
OTHER_HASH = "sha256:" + "cd" * 32
RECIPES = {
    "recipes": [
        {"id": "cw:samples:koshari", "hash": HASH, "names": {"ar": "كشري", "en": "Koshari"}},
        {"id": "cw:samples:lentil-soup", "hash": OTHER_HASH, "names": {"de": "Linsensuppe"}},
    ]
}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Invocation, "pause", lambda self, seconds: None)


def status(state: str, **more: Any) -> dict[str, Any]:
    return {
        "core": "0.2.0",
        "kind": "ExecutionStatus",
        "id": "exec-1",
        "request": "req-1",
        "state": state,
        "seq": 3,
        "updatedAt": "2026-05-01T18:00:00Z",
        **more,
    }


# --- lists


LISTS = [
    (("devices", "list"), "/v1/devices", "devices", "aboyeur devices add"),
    (("people", "list"), "/v1/people", "people", "aboyeur people add"),
    (("mandate", "list"), "/v1/mandates", "mandates", "aboyeur mandate new"),
    (("recipes", "list"), "/v1/recipes", "recipes", "aboyeur recipes add"),
    (("executions",), "/v1/executions?state=open", "executions", "aboyeur cook"),
    (("executions", "--all"), "/v1/executions?state=all", "executions", "aboyeur cook"),
    (("needs",), "/v1/needs", "needs", "Nothing waits"),
]


@pytest.mark.parametrize(("words", "path", "name", "hint"), LISTS)
def test_an_empty_list_says_what_to_do(
    aboyeur: Callable[..., Any], hub: Any, words: tuple[str, ...], path: str, name: str, hint: str
) -> None:
    hub.on("GET", path, {name: []})
    ended = aboyeur(*words, url=hub.url)
    assert ended.code == 0
    assert hint in ended.out
    assert aboyeur(*words, "--json", url=hub.url).json() == {name: []}


ROWS: dict[str, dict[str, Any]] = {
    "devices": {
        "name": "demo-hob-robot-with-a-long-name",
        "url": "http://192.168.1.20:9101",
        "liveness": "alive",
        "boot": "b-1",
        "busyWith": "exec-0123456789abcdef0123",
        "model": "Demo Hob Robot of the second series",
        "ops": ["cw.op.boil"],
    },
    "people": {"id": "person:anna", "role": "owner", "keys": ["key-0123456789abcdef0123"]},
    "mandates": {
        "hash": HASH,
        "agent": "agent:planner",
        "principal": "person:anna",
        "expires": "2026-05-01T18:00:00.000Z",
    },
    "recipes": RECIPES["recipes"][0],
    "executions": status(
        "running",
        step={"node": "n14", "progress": 0.42},
        **{
            "x-aboyeur-recipe": "cw:samples:koshari",
            "x-aboyeur-device": "demo-hob-robot",
            "x-aboyeur-unreachable": True,
            "id": "exec-0123456789abcdef0123",
        },
    ),
    "needs": {
        "execution": "exec-0123456789abcdef0123",
        "device": "demo-hob-robot",
        "kind": "resume",
        "why": "add the onions",
        "what": "add them and let it go on",
    },
}


@pytest.mark.parametrize(("words", "path", "name", "hint"), LISTS)
def test_a_list_fits_eighty_columns_and_its_names_can_be_copied(
    aboyeur: Callable[..., Any], hub: Any, words: tuple[str, ...], path: str, name: str, hint: str
) -> None:
    row = ROWS[name]
    hub.on("GET", path, {name: [row] * 3})
    ended = aboyeur(*words, url=hub.url)
    assert ended.code == 0
    assert [line for line in ended.out.splitlines() if len(line) > 80] == []
    key = str(row.get("execution") or row.get("name") or row.get("id") or row["hash"])
    assert ended.out.count(key[:19] if key.startswith("sha256:") else key) >= 3
    assert aboyeur(*words, "--json", url=hub.url).json() == {name: [row] * 3}


def test_an_address_or_an_id_is_never_broken_however_long(aboyeur: Callable[..., Any], hub: Any) -> None:
    lasagne = "https://kitchen.example/of/somebody/with/a/long/address/recipes#lasagne-al-forno-della-nonna"
    oven = {**ROWS["devices"], "url": "http://an-appliance-with-a-long-name.kitchen.home.example:9101"}
    hub.on("GET", "/v1/devices", {"devices": [oven]})
    hub.on("GET", "/v1/recipes", {"recipes": [{**RECIPES["recipes"][0], "id": lasagne}]})
    devices = aboyeur("devices", "list", url=hub.url).out
    assert f"  address: {oven['url']}\n" in devices and oven["busyWith"] in devices
    assert lasagne in aboyeur("recipes", "list", url=hub.url).out
    near = {**ROWS["devices"], "name": "oven", "model": "An oven of many words " * 4, "busyWith": None}
    hub.on("GET", "/v1/devices", {"devices": [near]})
    folded = aboyeur("devices", "list", url=hub.url).out.splitlines()
    assert folded[0].split() == ["device", "heard", "cooks", "model", "address"]
    assert [line for line in folded if near["url"] in line] and max(map(len, folded)) <= 80


def test_a_dish_is_named_in_a_language_it_has(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.on("GET", "/v1/recipes", RECIPES)
    out = aboyeur("recipes", "list", url=hub.url).out
    assert "Koshari" in out and "Linsensuppe" in out


def test_a_running_execution_is_told_with_step_progress_and_silence(
    aboyeur: Callable[..., Any], hub: Any
) -> None:
    hub.on("GET", "/v1/executions?state=open", {"executions": [ROWS["executions"]]})
    out = " ".join(aboyeur("executions", url=hub.url).out.split())
    assert "running, n14 42%" in out
    assert "not heard" in out


def test_one_execution_is_told_in_full(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.on("GET", "/v1/executions/exec-1", status("needs_human", humanNeeded={"why": "add the onions"}))
    ended = aboyeur("executions", "exec-1", url=hub.url)
    assert "add the onions" in ended.out and "aboyeur resume exec-1" in ended.out


def test_needs_say_how_to_answer(aboyeur: Callable[..., Any], hub: Any) -> None:
    question = {
        "execution": "exec-2",
        "device": "hob",
        "kind": "presence",
        "why": "?",
        "what": "",
        "nonce": "n",
    }
    hub.on("GET", "/v1/needs", {"needs": [ROWS["needs"], question]})
    out = aboyeur("needs", url=hub.url).out
    assert "aboyeur resume exec-0123456789abcdef0123" in out
    assert "aboyeur here" in out


# --- devices and people


def test_a_new_device_is_asked_for_and_its_pairing_written_once_and_privately(
    aboyeur: Callable[..., Any], hub: Any, tmp_path: Path
) -> None:
    pairing = {"kitchen": "home", "device": "hob", "token": "device-secret", "hubToken": "hub-secret"}
    hub.on("POST", "/v1/devices", pairing, 201)
    out = tmp_path / "hob.json"
    ended = aboyeur("devices", "add", "hob", "http://hob:9101", "--out", str(out), url=hub.url)
    assert ended.code == 0
    assert hub.only("POST", "/v1/devices").json() == {"name": "hob", "url": "http://hob:9101"}
    assert json.loads(out.read_bytes()) == pairing
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert "device-secret" not in ended.out + ended.err


def test_without_a_file_the_pairing_is_printed_exactly_once(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.on("POST", "/v1/devices", {"device": "hob", "token": "device-secret"}, 201)
    ended = aboyeur("devices", "add", "hob", "http://hob:9101", url=hub.url)
    assert (ended.out + ended.err).count("device-secret") == 1
    assert ended.json()["device"] == "hob"


@pytest.mark.parametrize("where", ["there.json", "missing/hob.json"])
def test_a_place_that_cannot_take_the_secret_is_refused_before_the_hub_makes_it(
    aboyeur: Callable[..., Any], hub: Any, tmp_path: Path, where: str
) -> None:
    (tmp_path / "there.json").write_text("precious")
    ended = aboyeur("devices", "add", "hob", "http://h", "--out", str(tmp_path / where), url=hub.url)
    assert ended.code == 2
    assert hub.asked == []
    assert (tmp_path / "there.json").read_text() == "precious"


def test_a_secret_whose_file_fails_after_all_is_printed_rather_than_lost(
    aboyeur: Callable[..., Any], hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hub.cli.once.write_private", full)
    hub.on("POST", "/v1/devices", {"device": "hob", "token": "device-secret"}, 201)
    ended = aboyeur("devices", "add", "hob", "http://h", "--out", str(tmp_path / "hob.json"), url=hub.url)
    assert ended.code == 1
    assert "device-secret" in ended.out
    assert "No space left" in ended.err


def test_a_device_with_work_is_not_removed(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.problem("DELETE", "/v1/devices/hob", 409, "busy", "it cooks exec-1; stop that first")
    ended = aboyeur("devices", "remove", "hob", url=hub.url)
    assert ended.code == 1
    assert "stop that first" in ended.err
    hub.answers["DELETE", "/v1/devices/hob"] = lambda asked: (204, b"", "application/json")
    assert aboyeur("devices", "remove", "hob", url=hub.url).code == 0


def test_a_person_is_enrolled_with_the_key_that_lies_here(
    aboyeur: Callable[..., Any], hub: Any, folder: DataFolder
) -> None:
    hub.on("POST", "/v1/people", {"token": "ben-secret-token"}, 201)
    assert aboyeur("keys", "new", "person:ben").code == 0
    ended = aboyeur("people", "add", "person:ben", "--keep", url=hub.url)
    assert ended.code == 0
    body = hub.only("POST", "/v1/people").json()
    assert (body["id"], body["role"]) == ("person:ben", "person")
    assert body["publicKey"] == json.loads(folder.public_key("person:ben").read_bytes())
    assert folder.token("person:ben").read_text().strip() == "ben-secret-token"
    assert "ben-secret-token" not in ended.out + ended.err


def test_a_person_can_be_enrolled_without_a_key_and_the_token_is_printed_once(
    aboyeur: Callable[..., Any], hub: Any
) -> None:
    hub.on("POST", "/v1/people", {"token": "guest-secret-token"}, 201)
    ended = aboyeur("people", "add", "person:guest", url=hub.url)
    assert hub.only("POST", "/v1/people").json() == {"id": "person:guest", "role": "person"}
    assert (ended.out + ended.err).count("guest-secret-token") == 1


def test_a_removed_persons_token_does_not_stay_behind(
    aboyeur: Callable[..., Any], hub: Any, folder: DataFolder
) -> None:
    write_private(folder.token("person:ben"), b"ben-secret-token")
    hub.problem("DELETE", "/v1/people/person:ben", 409, "conflict", "the only owner")
    assert aboyeur("--as", "person:anna", "people", "remove", "person:ben", url=hub.url).code == 1
    assert folder.token("person:ben").exists()
    hub.answers["DELETE", "/v1/people/person:ben"] = lambda asked: (204, b"", "application/json")
    assert aboyeur("--as", "person:anna", "people", "remove", "person:ben", url=hub.url).code == 0
    assert not folder.token("person:ben").exists()


def test_somebody_elses_key_enrols_nobody(aboyeur: Callable[..., Any], hub: Any, folder: DataFolder) -> None:
    make_key(folder, "person:ben", SystemClock(), SystemIds())
    key = str(folder.public_key("person:ben"))
    assert aboyeur("people", "add", "person:mallory", "--key", key, url=hub.url).code == 2
    assert hub.asked == []


# --- keys


def test_a_key_is_made_once_kept_private_and_only_its_public_part_is_shown(
    aboyeur: Callable[..., Any], folder: DataFolder
) -> None:
    assert aboyeur("keys", "new", "person:anna").code == 0
    private = folder.key("person:anna")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    before = private.read_bytes()
    assert b"PRIVATE KEY" in before
    again = aboyeur("keys", "new", "person:anna")
    assert again.code == 1 and "has a key already" in again.err
    assert private.read_bytes() == before
    shown = aboyeur("keys", "show")
    record = shown.json()
    assert record["actor"] == "person:anna"
    assert record["kid"] == read_key(folder, "person:anna").kid
    assert "PRIVATE" not in shown.out and before.split()[3].decode() not in shown.out


def test_two_keys_that_do_not_belong_together_are_not_used(folder: DataFolder) -> None:
    from hub.keyfiles import KeyFileError

    for person in ("person:anna", "person:ben"):
        make_key(folder, person, SystemClock(), SystemIds())
    folder.public_key("person:anna").write_bytes(folder.public_key("person:ben").read_bytes())
    with pytest.raises(KeyFileError, match="not of one key"):
        read_key(folder, "person:anna")


# --- mandates


def test_a_mandate_is_really_signed_and_its_pass_written_once(
    aboyeur: Callable[..., Any], hub: Any, folder: DataFolder, tmp_path: Path
) -> None:
    record = make_key(folder, "person:anna", SystemClock(), SystemIds())
    hub.on("POST", "/v1/mandates", {"mandate": HASH, "token": "agent-secret-token"}, 201)
    out = tmp_path / "planner.json"
    options = ("--agent", "agent:planner", "--scope", "start_cooking", "--scope", "stop_cooking")
    ended = aboyeur("mandate", "new", *options, "--expires", "2h", "--out", str(out), url=hub.url)
    assert ended.code == 0, ended.err
    sent = hub.only("POST", "/v1/mandates").json()
    mandate = from_plain(AgentMandate, sent)
    assert (mandate.principal, mandate.agent) == ("person:anna", "agent:planner")
    assert mandate.scopes == ["start_cooking", "stop_cooking"]
    left = parse_date_time(mandate.expires) - datetime.now(UTC)
    assert timedelta(minutes=118) < left <= timedelta(hours=2)
    assert verify_document(sent, KeyRing([record])).ok
    agent_pass = json.loads(out.read_bytes())
    assert agent_pass == {
        "agent": "agent:planner",
        "token": "agent-secret-token",
        "hash": HASH,
        "mandate": sent,
    }
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert "agent-secret-token" not in ended.out + ended.err


def test_a_mandate_needs_the_key_of_its_person(aboyeur: Callable[..., Any], hub: Any) -> None:
    ended = aboyeur("mandate", "new", "--agent", "agent:x", "--scope", "start_cooking", url=hub.url)
    assert ended.code == 1
    assert "has no key here" in ended.err
    assert hub.asked == []


@pytest.mark.parametrize(
    "expires", ["soon", "0h", "2020-01-01T00:00:00Z", "2030-01-01T00:00:00", "-1h", "1y"]
)
def test_a_mandate_that_does_not_end_in_the_future_is_wrong_usage(
    aboyeur: Callable[..., Any], hub: Any, folder: DataFolder, expires: str
) -> None:
    make_key(folder, "person:anna", SystemClock(), SystemIds())
    options = ("--agent", "agent:x", "--scope", "start_cooking", f"--expires={expires}")
    assert aboyeur("mandate", "new", *options, url=hub.url).code == 2
    assert hub.asked == []


def test_a_mandate_is_revoked_by_the_beginning_of_its_hash(aboyeur: Callable[..., Any], hub: Any) -> None:
    row = {"agent": "agent:planner", "principal": "person:anna", "expires": "2030-01-01T00:00:00Z"}
    hub.on("GET", "/v1/mandates", {"mandates": [{**row, "hash": HASH}, {**row, "hash": OTHER_HASH}]})
    hub.answers["DELETE", f"/v1/mandates/{HASH}"] = lambda asked: (204, b"", "application/json")
    assert aboyeur("mandate", "revoke", HASH[:19], url=hub.url).code == 0
    assert hub.only("DELETE", f"/v1/mandates/{HASH}")
    unclear = aboyeur("mandate", "revoke", "sha256:", url=hub.url)
    assert unclear.code == 1 and "2 mandates begin" in unclear.err
    assert aboyeur("mandate", "revoke", "sha256:ff", url=hub.url).code == 1


def test_what_changes_the_household_tells_scripts_what_it_did(
    aboyeur: Callable[..., Any], hub: Any, folder: DataFolder, tmp_path: Path
) -> None:
    def told(*words: str) -> Any:
        ended = aboyeur("--as", "person:anna", *words, "--json", url=hub.url)
        assert ended.code == 0, ended.err
        return ended.json()

    made = told("keys", "new", "person:ben")
    assert made["record"] == json.loads(folder.public_key("person:ben").read_bytes())
    assert made["keyFile"] == str(folder.key("person:ben"))
    hub.on("POST", "/v1/people", {"token": "ben-secret-token"}, 201)
    person = {"id": "person:ben", "role": "person"}
    assert told("people", "add", "person:ben") == {**person, "token": "ben-secret-token"}
    out = tmp_path / "ben.token"
    assert told("people", "add", "person:ben", "--out", str(out)) == {**person, "tokenFile": str(out)}
    assert out.read_text() == "ben-secret-token\n"
    for words, path in (
        (("people", "remove", "person:ben"), "/v1/people/person:ben"),
        (("devices", "remove", "hob"), "/v1/devices/hob"),
    ):
        hub.answers["DELETE", path] = lambda asked: (204, b"", "application/json")
        assert told(*words) == {"removed": words[-1]}
    hub.on("GET", "/v1/mandates", {"mandates": [{"agent": "agent:planner", "hash": HASH}]})
    hub.answers["DELETE", f"/v1/mandates/{HASH}"] = lambda asked: (204, b"", "application/json")
    assert told("mandate", "revoke", HASH[:19]) == {"revoked": HASH, "agent": "agent:planner"}


# --- recipes and cooking


def test_recipes_travel_byte_for_byte_and_a_refused_one_keeps_none_out(
    aboyeur: Callable[..., Any], hub: Any, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("good.json", "bad.json", "fine.json")]
    for file in files:
        file.write_bytes(b'{ "spaces":  "kept", "n": 1.0 }\n')

    def judge(asked: Any) -> tuple[int, bytes, str]:
        if len(hub.asked) == 2:
            return (
                400,
                json.dumps({"title": "unknown_field", "detail": "$.x"}).encode(),
                "application/problem+json",
            )
        return 201, json.dumps({"hash": HASH, "id": "cw:k:good"}).encode(), "application/json"

    hub.answers["POST", "/v1/recipes"] = judge
    ended = aboyeur("recipes", "add", *map(str, files), url=hub.url)
    assert ended.code == 1
    assert [asked.body for asked in hub.asked] == [file.read_bytes() for file in files]
    assert "bad.json" in ended.err and "unknown_field: $.x" in ended.err
    assert ended.out.count("cw:k:good") == 2


def cook(hub: Any, *answers: dict[str, Any]) -> None:
    hub.on("GET", "/v1/recipes", RECIPES)
    hub.on("POST", "/v1/executions", answers[0], 202)
    hub.in_turn("GET", "/v1/executions/exec-1", *(answers[1:] or answers))


def test_a_person_cooks_in_her_own_name(aboyeur: Callable[..., Any], hub: Any, token: str) -> None:
    cook(hub, status("accepted"), status("accepted"), status("preparing"))
    ended = aboyeur("cook", "koshari", "--servings", "2", url=hub.url)
    assert ended.code == 0
    assert "preparing" in ended.out
    asked = hub.only("POST", "/v1/executions")
    body = asked.json()
    assert body["recipe"] == "cw:samples:koshari" and body["recipeHash"] == HASH
    assert body["requestedBy"] == "person:anna" and body["servings"] == 2
    assert "mandate" not in body
    assert asked.headers["authorization"] == f"Bearer {token}"


def test_an_agent_cooks_with_its_pass(aboyeur: Callable[..., Any], hub: Any, tmp_path: Path) -> None:
    cook(hub, status("preparing"))
    mandate = {"principal": "person:anna", "agent": "agent:planner", "scopes": ["start_cooking"]}
    file = tmp_path / "pass.json"
    file.write_text(json.dumps({"agent": "agent:planner", "token": "agent-token", "mandate": mandate}))
    assert (
        aboyeur("cook", HASH[:15], "--agent-pass", str(file), "--json", url=hub.url).json()["id"] == "exec-1"
    )
    asked = hub.only("POST", "/v1/executions")
    assert asked.json()["requestedBy"] == "agent:planner" and asked.json()["mandate"] == mandate
    assert {one.headers["authorization"] for one in hub.asked} == {"Bearer agent-token"}


@pytest.mark.parametrize(
    "content", ["[]", "{", '{"agent": "a", "token": "t"}', '{"agent": 1, "token": "t", "mandate": {}}']
)
def test_a_file_that_is_no_pass_is_wrong_usage(
    aboyeur: Callable[..., Any], hub: Any, tmp_path: Path, content: str
) -> None:
    (tmp_path / "pass.json").write_text(content)
    ended = aboyeur("cook", "koshari", "--agent-pass", str(tmp_path / "pass.json"), url=hub.url)
    assert ended.code == 2
    assert hub.asked == []


def test_a_refusal_is_exit_code_1_with_reason_and_advice(aboyeur: Callable[..., Any], hub: Any) -> None:
    refused = status(
        "refused", refusal={"reason": "needs_human_present", "node": "n3", "detail": "nobody there"}
    )
    cook(hub, status("accepted"), refused)
    ended = aboyeur("cook", "koshari", url=hub.url)
    assert ended.code == 1
    assert "needs_human_present (n3: nobody there)" in ended.out
    assert "aboyeur here" in ended.out
    assert aboyeur("cook", "koshari", "--json", url=hub.url).code == 1


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("koshari", 0),
        ("cw:samples:koshari", 0),
        (HASH, 0),
        (HASH[:13], 0),
        (OTHER_HASH, 1),
        ("lentil-soup", 1),
        ("soup", 1),
        ("LINSENSUPPE", 1),
        ("كشري", 0),
    ],
)
def test_a_recipe_is_found_by_id_dish_or_hash(
    aboyeur: Callable[..., Any], hub: Any, wanted: str, found: int
) -> None:
    cook(hub, status("preparing"))
    assert aboyeur("cook", wanted, url=hub.url).code == 0
    assert hub.only("POST", "/v1/executions").json()["recipeHash"] == RECIPES["recipes"][found]["hash"]


@pytest.mark.parametrize("wanted", ["shari", "sha256:", "", "samples"])
def test_a_recipe_that_is_not_named_clearly_is_not_cooked(
    aboyeur: Callable[..., Any], hub: Any, wanted: str
) -> None:
    cook(hub, status("preparing"))
    ended = aboyeur("cook", wanted, url=hub.url)
    assert ended.code == 1
    assert "aboyeur recipes list" in ended.err
    assert [asked.method for asked in hub.asked] == ["GET"]


def test_two_revisions_of_one_recipe_are_told_apart_by_hash(aboyeur: Callable[..., Any], hub: Any) -> None:
    cook(hub, status("preparing"))
    hub.on("GET", "/v1/recipes", {"recipes": [{"id": "k", "hash": HASH}, {"id": "k", "hash": OTHER_HASH}]})
    ended = aboyeur("cook", "k", url=hub.url)
    assert ended.code == 1
    assert HASH[:19] in ended.err and OTHER_HASH[:19] in ended.err


def test_the_same_request_id_makes_the_same_request(aboyeur: Callable[..., Any], hub: Any) -> None:
    cook(hub, status("preparing"))
    for _ in range(2):
        assert aboyeur("cook", "koshari", "--request-id", "req-7", url=hub.url).code == 0
    first, second = [asked.body for asked in hub.asked if asked.method == "POST"]
    assert first == second
    assert json.loads(first)["id"] == "req-7"
    assert len(json.loads(first)["idempotencyKey"]) >= 8


def test_an_order_whose_answer_was_lost_names_the_id_to_ask_again_with(
    aboyeur: Callable[..., Any], hub: Any
) -> None:
    cook(hub, status("preparing"))
    hub.answers["POST", "/v1/executions"] = lambda asked: (200, b"not json", "text/plain")
    ended = aboyeur("cook", "koshari", url=hub.url)
    assert ended.code == 3
    assert f"--request-id {hub.only('POST', '/v1/executions').json()['id']}" in ended.err


def test_an_appliance_that_says_nothing_is_waited_for_only_so_long(
    aboyeur: Callable[..., Any], hub: Any
) -> None:
    cook(hub, status("accepted"))
    ended = aboyeur("cook", "koshari", url=hub.url)
    assert ended.code == 0 and "accepted" in ended.out
    assert len(hub.asked) < 40
    hub.asked.clear()
    aboyeur("cook", "koshari", "--no-wait", url=hub.url)
    assert [asked.path for asked in hub.asked] == ["/v1/recipes", "/v1/executions", "/health"]


@pytest.mark.parametrize(
    "words", [("cook", "koshari"), ("executions",), ("executions", "exec-1"), ("devices", "list")]
)
def test_a_hub_that_lost_its_broker_is_said_to_have(
    aboyeur: Callable[..., Any], hub: Any, words: tuple[str, ...]
) -> None:
    cook(hub, status("running"))
    hub.on("GET", "/v1/executions?state=open", {"executions": []})
    hub.on("GET", "/v1/devices", {"devices": []})
    for broker, said in (("not connected", 1), ("connected", 0)):
        hub.on("GET", "/health", {"status": "ok", "store": "ok", "broker": broker})
        ended = aboyeur(*words, url=hub.url)
        assert ended.code == 0
        assert ended.err.splitlines().count("the hub is not connected to its broker") == said


@pytest.mark.parametrize(
    "options",
    [("--servings", "nan"), ("--servings", "inf"), ("--request-id", "a b"), ("--request-id", "a" * 121)],
)
def test_what_no_hub_could_take_is_wrong_usage_in_words(
    aboyeur: Callable[..., Any], hub: Any, options: tuple[str, str]
) -> None:
    cook(hub, status("running"))
    ended = aboyeur("cook", "koshari", *options, url=hub.url)
    assert (ended.code, hub.asked) == (2, [])
    assert options[0] in ended.err and "pattern" not in ended.err and "[A-Z" not in ended.err


# --- stop


def test_a_stop_needs_no_token_and_no_data_folder(
    aboyeur: Callable[..., Any], hub: Any, folder: DataFolder
) -> None:
    folder.token("person:anna").unlink()
    folder.settings.unlink()
    hub.on("POST", "/v1/executions/exec-1/stop", status("stopped"), 202)
    ended = aboyeur("stop", "exec-1", url=hub.url)
    assert ended.code == 0
    assert "exec-1: stopped." in ended.out
    asked = hub.only("POST", "/v1/executions/exec-1/stop")
    assert "authorization" not in asked.headers and asked.body == b""


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (status("stopped"), 0, "stopped"),
        (status("completed"), 0, "nothing left to stop"),
        (status("stopping", **{"x-aboyeur-stop": {"phase": "landed", "by": "p"}}), 0, "has taken the stop"),
        (status("running", **{"x-aboyeur-stop": {"phase": "sent", "by": "p"}}), 1, "unconfirmed"),
        (
            status("running", **{"x-aboyeur-stop": {"phase": "asked", "by": "p"}}),
            1,
            "control on the appliance",
        ),
        (status("stopping"), 1, "unconfirmed: use the control on the appliance"),
        (status("accepted"), 1, "unconfirmed"),
    ],
)
def test_a_stop_says_honestly_whether_the_appliance_obeys(
    aboyeur: Callable[..., Any], hub: Any, answer: dict[str, Any], code: int, words: str
) -> None:
    hub.on("POST", "/v1/executions/exec-1/stop", answer, 202)
    ended = aboyeur("stop", "exec-1", url=hub.url)
    assert ended.code == code
    assert words in ended.out
    assert aboyeur("stop", "exec-1", "--json", url=hub.url).json() == answer


def test_a_stop_that_finds_no_execution_or_no_hub_names_the_control_on_the_appliance(
    aboyeur: Callable[..., Any], hub: Any
) -> None:
    hub.problem("POST", "/v1/executions/exec-9/stop", 404, "not_found", "no such execution")
    unknown = aboyeur("stop", "exec-9", url=hub.url)
    assert unknown.code == 1
    assert "control on the appliance" in unknown.err
    away = aboyeur("stop", "exec-9", url="http://127.0.0.1:9")
    assert away.code == 3
    assert "control on the appliance" in away.err


def test_a_stop_waits_a_little_for_the_appliances_word(aboyeur: Callable[..., Any], hub: Any) -> None:
    sent = status("stopping", **{"x-aboyeur-stop": {"phase": "sent", "by": "p"}})
    hub.in_turn("POST", "/v1/executions/exec-1/stop", sent, sent, status("stopped"))
    ended = aboyeur("stop", "exec-1", url=hub.url)
    assert ended.code == 0
    assert "exec-1: stopped." in ended.out
    assert ended.err.count("waiting for the appliance's word") == 1
    assert len(hub.asked) == 3
    hub.on("POST", "/v1/executions/exec-1/stop", sent)
    hub.asked.clear()
    assert aboyeur("stop", "exec-1", "--no-wait", url=hub.url).code == 1
    assert len(hub.asked) == 1


def test_settings_that_cannot_be_read_do_not_keep_a_stop_from_trying(
    aboyeur: Callable[..., Any], folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def away(self: HubClient, method: str, path: str, **_: Any) -> bytes:
        tried.append(self.url)
        raise CommandError("no hub answers", 3)

    monkeypatch.setattr(HubClient, "raw", away)
    folder.settings.write_text("[http\n")
    ended = aboyeur("stop", "exec-1")
    assert (ended.code, tried) == (3, ["http://127.0.0.1:7878"])
    assert "control on the appliance" in ended.err


def test_who_stops_is_recorded_where_it_is_known(aboyeur: Callable[..., Any], hub: Any, token: str) -> None:
    hub.on("POST", "/v1/executions/exec-1/stop", status("stopped"), 202)
    aboyeur("stop", "exec-1", url=hub.url)
    asked = hub.only("POST", "/v1/executions/exec-1/stop")
    assert asked.json()["requestedBy"] == "person:anna"
    assert "authorization" not in asked.headers


def test_a_reason_travels_with_a_stop(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.on("POST", "/v1/executions/exec-1/stop", status("stopped"), 202)
    aboyeur("stop", "exec-1", "--reason", "it burns", url=hub.url)
    assert hub.only("POST", "/v1/executions/exec-1/stop").json()["reason"] == "it burns"


def test_what_a_terminal_garbled_does_not_keep_a_stop_from_going_out(
    aboyeur: Callable[..., Any], hub: Any
) -> None:
    garbled = b"zu hei\xdf".decode("utf-8", "surrogateescape")
    hub.on("POST", "/v1/executions/exec-1/stop", status("stopped"), 202)
    assert aboyeur("--as", garbled, "stop", "exec-1", "--reason", garbled, url=hub.url).code == 0
    sent = hub.only("POST", "/v1/executions/exec-1/stop").json()
    assert (sent["reason"], sent["requestedBy"]) == (r"zu hei\udcdf", r"zu hei\udcdf")
    ended = aboyeur("stop", garbled, url=hub.url)
    assert (ended.code, "control on the appliance" in ended.err) == (1, True)
    hub.only("POST", "/v1/executions/zu%20hei%5Cudcdf/stop")


def test_a_stop_goes_out_without_a_word_where_none_can_be_made(
    aboyeur: Callable[..., Any], hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Invocation) -> str:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(Invocation, "whoami", broken)
    hub.on("POST", "/v1/executions/exec-1/stop", status("stopped"), 202)
    ended = aboyeur("stop", "exec-1", "--reason", "it burns", url=hub.url)
    assert (ended.code, "a fault of ours" in ended.err) == (0, True)
    assert hub.only("POST", "/v1/executions/exec-1/stop").body == b""


# --- resume and presence


def test_a_person_resumes_what_she_saw(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.on("GET", "/v1/executions/exec-1", status("needs_human", seq=7))
    hub.on("POST", "/v1/executions/exec-1/resume", status("running", seq=8), 202)
    assert aboyeur("resume", "exec-1", url=hub.url).code == 0
    assert hub.only("POST", "/v1/executions/exec-1/resume").headers["if-match"] == '"7"'


def test_what_was_paused_is_resumed_too(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.on("GET", "/v1/executions/exec-1", status("paused"))
    hub.on("POST", "/v1/executions/exec-1/resume", status("running"), 202)
    assert aboyeur("resume", "exec-1", url=hub.url).code == 0


def test_what_waits_for_nobody_is_not_resumed(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.on("GET", "/v1/executions/exec-1", status("running"))
    ended = aboyeur("resume", "exec-1", url=hub.url)
    assert ended.code == 1
    assert "waits for nobody: running" in ended.err
    assert [asked.method for asked in hub.asked] == ["GET"]


def test_an_execution_that_moved_on_is_looked_at_again(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.problem("POST", "/v1/executions/exec-1/resume", 412, "stale", "seq is 9")
    ended = aboyeur("resume", "exec-1", "--seq", "7", url=hub.url)
    assert ended.code == 1
    assert "moved on" in ended.err and "aboyeur needs" in ended.err


@pytest.mark.parametrize(
    ("answered", "words"),
    [([], "No appliance was asking"), (["n"], "One appliance"), (["n", "m"], "2 questions")],
)
def test_here_says_whether_anybody_was_asking(
    aboyeur: Callable[..., Any], hub: Any, answered: list[str], words: str
) -> None:
    hub.on("POST", "/v1/presence", {"answered": answered})
    ended = aboyeur("here", url=hub.url)
    assert ended.code == 0 and words in ended.out
    assert hub.only("POST", "/v1/presence").json() == {"present": True}


def test_staying_answers_each_question_until_interrupted(
    aboyeur: Callable[..., Any], hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = {"execution": "exec-1", "device": "hob", "kind": "presence", "why": "there?", "nonce": "n-1"}
    hub.in_turn("POST", "/v1/presence", {"answered": []}, {"answered": ["n-1"]})
    hub.in_turn("GET", "/v1/needs", {"needs": []}, {"needs": [question, ROWS["needs"]]}, {"needs": []})
    waits: list[float] = []

    def pause(self: Invocation, seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            hub.answers["GET", "/v1/needs"] = lambda asked: (200, b"restarting", "text/plain")
        if len(waits) == 4:
            hub.on("GET", "/v1/needs", {"needs": []})
        if len(waits) == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(Invocation, "pause", pause)
    ended = aboyeur("here", "--stay", url=hub.url)
    assert ended.code == 0
    words = [asked.json() for asked in hub.asked if asked.path == "/v1/presence"]
    assert words == [{"present": True}, {"present": True, "nonce": "n-1"}]
    assert "Answered hob" in ended.out
    assert waits == [2.0, 2.0, 2.0, 4.0, 2.0, 2.0]
    assert "No longer answering" in ended.err


def test_a_question_that_came_too_late_is_not_said_to_be_answered(
    aboyeur: Callable[..., Any], hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = {"execution": "exec-1", "device": "hob", "kind": "presence", "why": "there?", "nonce": "n-1"}
    hub.on("POST", "/v1/presence", {"answered": []})
    hub.on("GET", "/v1/needs", {"needs": [question]})
    waits: list[float] = []

    def pause(self: Invocation, seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Invocation, "pause", pause)
    ended = aboyeur("here", "--stay", url=hub.url)
    assert len([asked for asked in hub.asked if asked.path == "/v1/presence"]) == 2
    assert "Answered" not in ended.out


# --- logs


LOG = {
    "kind": "ExecutionLog",
    "outcome": "served",
    "device": {"vendor": "Demo", "model": "Hob"},
    "startedAt": "2026-05-01T18:00:00Z",
    "endedAt": "2026-05-01T18:40:00Z",
    "steps": [{"node": "n1", "op": "cw.op.boil", "verifiedBy": "sensor", "envelopeOk": True}],
    "safetyEvents": [{"limit": "max_oil", "action": "cut_heat", "at": "2026-05-01T18:10:00Z"}],
}


def test_a_log_is_shown_with_the_hubs_verdict_and_saved_byte_for_byte(
    aboyeur: Callable[..., Any], hub: Any, tmp_path: Path
) -> None:
    raw = json.dumps(LOG, indent=3).encode()
    hub.on("GET", "/v1/executions/exec-1/log", raw)
    judged = {"verdict": "ok", "caveats": ["signedAt_unprotected"]}
    hub.on("GET", "/v1/executions/exec-1", status("completed", **{"x-aboyeur-log": judged}))
    ended = aboyeur("log", "exec-1", "--out", str(tmp_path / "log.json"), url=hub.url)
    assert ended.code == 0
    for word in (
        "served",
        "Demo Hob",
        "log: ok (signedAt_unprotected)",
        "cw.op.boil",
        "sensor",
        "max_oil: cut_heat",
    ):
        assert word in ended.out
    assert (tmp_path / "log.json").read_bytes() == raw
    assert aboyeur("log", "exec-1", "--json", url=hub.url).out.encode() == raw


def test_a_failed_cookings_log_claims_no_more_than_it_says(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.on("GET", "/v1/executions/exec-1/log", {**LOG, "steps": [], "safetyEvents": 5})
    hub.on("GET", "/v1/executions/exec-1", status("failed"))
    ended = aboyeur("log", "exec-1", url=hub.url)
    assert ended.code == 0, ended.err
    assert "The log names no step." in ended.out
    assert "look at the food and the appliance" in ended.out
    hub.on("GET", "/v1/executions/exec-1", status("completed"))
    assert "look at the food" not in aboyeur("log", "exec-1", url=hub.url).out


def test_the_log_of_an_earlier_attempt_can_be_asked_for(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.on("GET", "/v1/executions/exec-1/log?attempt=1", LOG)
    hub.on("GET", "/v1/executions/exec-1", status("completed"))
    assert aboyeur("log", "exec-1", "--attempt", "1", url=hub.url).code == 0


def test_a_log_that_is_not_there_yet_is_exit_code_1(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.problem("GET", "/v1/executions/exec-1/log", 404, "no_log", "the work is not final")
    ended = aboyeur("log", "exec-1", url=hub.url)
    assert ended.code == 1 and "not final" in ended.err


def test_the_record_of_a_key_can_be_read_back(folder: DataFolder) -> None:
    record = make_key(folder, "person:anna", SystemClock(), SystemIds())
    assert read_record(folder, "person:anna") == record
