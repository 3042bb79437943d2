"""What a device refuses by itself, before anything is heated."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from events.canonical import document_hash
from events.documents import DocumentError
from sim.acceptance import HubSilent, Rejected

Benches = Callable[..., Any]


async def test_the_device_answers_all_sample_dry_runs_as_expected(
    bench: Benches, samples: dict[str, Any]
) -> None:
    rows = samples["expected"]["dryRuns"]
    assert len(rows) == 32
    for row in rows:
        one = bench(row["device"])
        there = {} if row["humanPresent"] else {"x-aboyeur-presence": None}
        status = await one.start(row["recipe"], **there)
        case = (row["recipe"], row["device"], row["humanPresent"])
        assert status.state == row["state"], case
        if row["state"] == "refused":
            assert (status.refusal.reason, status.refusal.node) == (row["reason"], row["node"]), case
        else:
            assert status.refusal is None, case
        assert one.appliance.heat_w() == 0, case


@pytest.mark.parametrize("age_s", [60.01, 61.0, 3_600.0])
async def test_a_persons_word_that_is_old_is_nobody_at_the_start(bench: Benches, age_s: float) -> None:
    one = bench()
    word = {"by": "person:anna", "saidAt": "2026-10-05T12:00:00Z", "ageS": age_s}
    status = await one.start("koshari", **{"x-aboyeur-presence": word})
    assert (status.state, status.refusal.reason, status.refusal.node) == (
        "refused",
        "needs_human_present",
        "n7",
    )


async def test_a_clients_claim_that_a_person_is_there_counts_for_nothing_at_the_device(
    bench: Benches,
) -> None:
    one = bench()
    status = await one.start("koshari", **{"x-aboyeur-presence": None, "x-hub-human-present": True})
    assert status.refusal.reason == "needs_human_present"


def mandate(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "principal": "person:anna",
        "agent": "agent:planner",
        "scopes": ["start_cooking"],
        "expires": "2026-10-05T18:00:00Z",
    }
    made.update(changes)
    return made


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"core": "0.3.0"}, "unsupported_version"),
        ({"core": "1.2.0"}, "unsupported_version"),
        ({"core": "0.20.0"}, "unsupported_version"),
        ({"mandate": mandate(scopes=["plan_meals", "stop_cooking"])}, "mandate_scope"),
        ({"mandate": mandate(expires="2026-10-05T11:59:59Z")}, "mandate_scope"),
        ({"mandate": mandate(expires="2026-10-05T12:00:00Z")}, "mandate_scope"),
        ({"allergenBlocks": ["moonlight"]}, "allergen_block"),
        ({"recipeHash": "sha256:" + "0" * 64}, "recipe_hash_mismatch"),
    ],
)
async def test_a_request_outside_what_the_device_may_do_is_refused_with_its_reason(
    bench: Benches, changes: dict[str, Any], reason: str
) -> None:
    one = bench()
    status = await one.start("koshari", **changes)
    assert (status.state, status.seq, status.refusal.reason) == ("refused", 0, reason)
    assert [event["type"] for event in one.said()] == ["cookwala.execution.refused"]
    assert one.said()[0]["data"]["refusal"]["reason"] == reason
    assert one.log_of(status.id).outcome == "refused"
    one.turn(100)
    assert one.appliance.status(status.id) == status


@pytest.mark.parametrize("changes", [{"core": "0.2.7"}, {"allergenBlocks": []}, {"mandate": mandate()}])
async def test_what_only_looks_unusual_is_accepted(bench: Benches, changes: dict[str, Any]) -> None:
    one = bench()
    assert (await one.start("koshari", **changes)).state == "accepted"


async def test_a_recipe_that_is_not_exactly_the_one_asked_for_is_not_cooked(
    bench: Benches, samples: dict[str, Any]
) -> None:
    wanted = document_hash(samples["recipes"]["koshari"])
    changed = json.loads(json.dumps(samples["recipes"]["koshari"]))
    changed["process"]["nodes"][0]["params"]["heat"] = "max"
    unreadable = (b"[]", b"not json", b'{"a":1,"a":2}', b'{"a":1e400}', b'{"a":9007199254740993}')
    for given in (json.dumps(changed).encode(), b"{}", *unreadable):
        one = bench()
        one.recipes[wanted] = given
        status = await one.start("koshari")
        assert status.refusal.reason == "recipe_hash_mismatch"
        assert ("cannot be read" in status.refusal.detail) == (given in unreadable)


async def test_a_hub_that_does_not_give_the_recipe_is_refused(bench: Benches) -> None:
    one = bench()
    one.recipes.clear()
    status = await one.start("koshari")
    assert status.refusal.reason == "recipe_hash_mismatch"
    assert "404" in status.refusal.detail


async def test_a_start_whose_hub_fell_silent_is_not_remembered_and_may_come_again(bench: Benches) -> None:
    answers: list[bytes] = []

    async def silent(_: str) -> bytes:
        if not answers:
            raise HubSilent("no answer within 3 s")
        return answers[0]

    one = bench(fetch=silent)
    with pytest.raises(Rejected) as rejected:
        await one.start("koshari")
    assert (rejected.value.status, rejected.value.title) == (503, "hub_silent")
    assert one.said() == []
    answers.append(json.dumps(one.samples["recipes"]["koshari"]).encode())
    assert (await one.start("koshari")).state == "accepted"


async def test_a_recipe_this_device_cannot_read_is_refused_though_its_hash_is_right(
    bench: Benches, samples: dict[str, Any]
) -> None:
    newer = json.loads(json.dumps(samples["recipes"]["koshari"]))
    del newer["hash"]
    newer["cookwala"] = "0.9.0"
    one = bench()
    one.recipes[document_hash(newer)] = json.dumps(newer).encode()
    status = await one.start("koshari", recipeHash=document_hash(newer))
    assert status.refusal.reason == "unsupported_version"


async def test_one_dish_at_a_time(bench: Benches) -> None:
    one = bench()
    first = await one.start("koshari", 1)
    second = await one.start("lentil-soup", 2)
    assert second.refusal.reason == "busy"
    assert one.cook(first.id).state == "completed"
    assert (await one.start("lentil-soup", 3)).state == "accepted"


async def test_a_request_refused_as_busy_may_be_asked_again_under_another_key(bench: Benches) -> None:
    one = bench()
    first = await one.start("koshari", 1)
    busy = await one.start("lentil-soup", 2)
    one.cook(first.id)
    again = await one.start("lentil-soup", 2, idempotencyKey="another-key")
    assert (busy.state, again.state) == ("refused", "accepted")
    assert one.appliance.status("req-2").id == again.id


async def test_one_request_is_not_cooked_twice_under_two_keys(bench: Benches) -> None:
    one = bench()
    status = await one.start("salata-baladi")
    with pytest.raises(Rejected) as conflict:
        await one.start("salata-baladi", idempotencyKey="another-key")
    assert conflict.value.status == 409
    one.cook(status.id)
    with pytest.raises(Rejected):
        await one.start("salata-baladi", idempotencyKey="another-key")


@pytest.mark.parametrize("limit_c", [99.0, 90.0])
async def test_a_stricter_local_limit_refuses_before_the_start(
    bench: Benches, samples: dict[str, Any], limit_c: float
) -> None:
    limits = json.loads(json.dumps(samples["safetyLimits"]))
    limits["limits"].append(
        {
            "id": "water.site",
            "kind": "max_temp",
            "action": "cut_heat",
            "source": "this kitchen",
            "appliesTo": {"medium": "water"},
            "max": limit_c,
            "unit": "degC",
        }
    )
    one = bench(limits=json.dumps(limits).encode())
    status = await one.start("koshari")
    assert (status.refusal.reason, status.refusal.node) == ("safety_limit", "n1")


async def test_what_cannot_be_read_takes_no_execution_with_it(bench: Benches) -> None:
    one = bench()
    for raw in (b"{", b"{}", one.request("koshari", surprise=1), one.request("koshari", id="x")):
        with pytest.raises(DocumentError):
            await one.appliance.start(raw)
    assert one.said() == []
    assert (await one.start("koshari")).state == "accepted"
