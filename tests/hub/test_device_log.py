"""When a device's own log is evidence of one attempt (ruling T3; DESIGN §8)."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from hub.device_log import JudgedLog, judge_log
from mandates.documents import KeyRecord
from mandates.keys import PrivateKey
from mandates.signature import Form, sign_document

KEY = PrivateKey.from_seed(bytes([7]) * 32, kid="demo-hob-robot#1")
RECORD = KEY.record(actor="demo-hob-robot", valid_from=datetime(2026, 1, 1, tzinfo=UTC))
MAY, JULY = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)
RECIPE = "sha256:" + "a" * 64
LOG: dict[str, Any] = {
    "core": "0.2.0",
    "kind": "ExecutionLog",
    "id": "log-1",
    "recipe": "https://kitchen.example/recipes#soup",
    "recipeHash": RECIPE,
    "device": {"vendor": "acme", "model": "hob"},
    "startedAt": "2026-05-01T00:00:00Z",
    "outcome": "served",
    "steps": [],
    "consent": {"dataset": "none"},
    "privacy": {"personalData": "none"},
    "x-aboyeur-execution": "dev-1",
    "x-aboyeur-request": "req-1",
}


def judge(
    log: dict[str, Any], *, keys: Sequence[KeyRecord] = (RECORD,), first_seen: datetime = MAY
) -> JudgedLog:
    return judge_log(
        json.dumps(log).encode(),
        keys=keys,
        recipe_hash=RECIPE,
        request="req-1",
        device_execution="dev-1",
        first_seen=first_seen,
    )


@pytest.mark.parametrize("more", [{}, {"mood": "fine"}])
@pytest.mark.parametrize("core", ["9.9.9", "0.1.0"])
def test_a_log_of_another_core_is_not_understood(core: str, more: dict[str, Any]) -> None:
    judged = judge(sign_document({**LOG, **more, "core": core}, KEY, signed_at=MAY))
    assert (judged.reason, judged.outcome) == ("unsupported_version", None)
    assert judged.document is not None


@pytest.mark.parametrize(("form", "unprotected"), [("header", False), ("hash", True)])
def test_the_verdict_on_a_log_says_whether_its_time_is_protected(form: Form, unprotected: bool) -> None:
    judged = judge(sign_document(LOG, KEY, signed_at=MAY, form=form))
    assert (judged.reason, judged.outcome) == ("ok", "served")
    assert judged.signed_at_unprotected is unprotected


@pytest.mark.parametrize(
    ("form", "first_seen", "reason"),
    [
        ("hash", MAY, "ok"),
        ("hash", JULY, "seen_after_revocation"),
        ("header", MAY, "ok"),
        ("header", JULY, "ok"),
    ],
)
def test_an_old_form_log_that_came_after_the_keys_revocation_is_no_evidence(
    form: Form, first_seen: datetime, reason: str
) -> None:
    revoked = msgspec.structs.replace(RECORD, revoked_at="2026-06-01T00:00:00Z")
    signed = sign_document(LOG, KEY, signed_at=MAY, form=form)
    assert judge(signed, keys=[revoked], first_seen=first_seen).reason == reason


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"recipeHash": "sha256:" + "b" * 64}, "other_recipe"),
        ({"x-aboyeur-execution": "dev-2"}, "other_execution"),
        ({"x-aboyeur-request": "req-2"}, "other_execution"),
    ],
)
def test_a_genuine_log_of_something_else_is_none_of_this_attempt(
    members: dict[str, Any], reason: str
) -> None:
    assert judge(sign_document({**LOG, **members}, KEY, signed_at=MAY)).reason == reason


def test_a_log_is_judged_by_pinned_keys_alone() -> None:
    signed = sign_document(LOG, KEY, signed_at=MAY)
    assert judge(signed, keys=[]).reason == "no_pinned_key"
    assert judge(LOG).reason == "unsigned"
    other = PrivateKey.from_seed(bytes([8]) * 32, kid="other#1")
    assert judge(sign_document(LOG, other, signed_at=MAY)).reason == "unknown_key"
    assert judge({**signed, "outcome": "failed"}).reason == "bad_signature"
