"""Our own vectors, so that a plain clone tests every kind: `python -m tests.conformance.make_vectors`.

Keys and documents are ours. What is expected is written here by hand, or computed without the product; only
hashes and signatures inside the inputs are the product's own, and RFC 8032 and RFC 6979 pin those.
"""

import copy
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from mandates import base64url
from mandates.signature import sign_document
from tests.conformance.cooking_vectors import envelopes, sensor_trust, units, vector
from tests.hub.records.missions import BAKER, HUB, RECORDS, STEPS, checkpoint, entry, log

FOLDER = Path(__file__).parent / "vectors"
SIGNATURES = Path(__file__).parents[1] / "mandates" / "signature_vectors.json"
KEYS = [json.loads(msgspec.json.encode(record)) for record in RECORDS]


def sha256(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def hashes() -> list[dict[str, Any]]:
    cases: list[tuple[str, str, Any, str]] = [
        ("empty", "An object without members.", {}, "{}"),
        (
            "order",
            "Names by UTF-16 units.",
            {"ö": 1, "o": 2, "\U0001f9c2": 3, "\ufb33": 4},
            '{"o":2,"ö":1,"\U0001f9c2":3,"\ufb33":4}',
        ),
        (
            "numbers",
            "Whole doubles lose their point.",
            {"n": [5.0, -0.0, 1e21, 1e-7, 12.70]},
            '{"n":[5,0,1e+21,1e-7,12.7]}',
        ),
        (
            "escapes",
            "Only what must be escaped is.",
            {"s": 'a"\\/\b\t\u001f\u007fä'},
            '{"s":"a\\"\\\\/\\b\\t\\u001f\u007fä"}',
        ),
        (
            "left-out",
            "hash and signature are left out at the top only.",
            {"hash": "x", "signature": {}, "in": {"hash": "x"}},
            '{"in":{"hash":"x"}}',
        ),
        (
            "nested",
            "Order holds at every depth.",
            {"b": [{"d": 1, "c": None}], "a": True},
            '{"a":true,"b":[{"c":null,"d":1}]}',
        ),
    ]
    return [
        vector("hash", f"hash-{name}", said, given, {"canonical": text, "hash": sha256(text)})
        for name, said, given, text in cases
    ]


def signatures() -> list[dict[str, Any]]:
    own = json.loads(SIGNATURES.read_text("utf-8"))
    made = [
        vector(
            "signature",
            f"sig-{one['id']}",
            one["description"],
            {"document": one["document"], "keys": own["keys"]},
            one["expected"],
        )
        for one in own["vectors"]
    ]
    made.append(
        vector(
            "signature",
            "sig-rfc8032-test2",
            "RFC 8032 section 7.1, test 2: Ed25519 over one byte.",
            {"seed": "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", "messageHex": "72"},
            {
                "publicKey": base64url.encode(
                    bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
                ),
                "signatureHex": "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
            },
        )
    )
    made.append(
        vector(
            "signature",
            "sig-rfc6979-p256",
            "RFC 6979 appendix A.2.5: deterministic ECDSA on P-256 with SHA-256 over the text `sample`.",
            {
                "alg": "ES256",
                "seed": "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721",
                "messageHex": "73616d706c65",
            },
            {
                "publicKey": base64url.encode(
                    bytes.fromhex(
                        "0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"
                        "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299"
                    )
                ),
                "signatureHex": "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
                "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8",
            },
        )
    )
    revoked = [{**KEYS[0], "revokedAt": "2026-05-02T00:00:00Z"}]
    old = sign_document({"kind": "Recall"}, HUB, signed_at=datetime(2026, 5, 1, tzinfo=UTC), form="hash")
    for name, seen, caveats in (
        ("in-time", "2026-05-01T12:00:00Z", ["signedAt_unprotected"]),
        ("too-late", "2026-05-02T00:00:00Z", ["signedAt_unprotected", "seen_after_revocation"]),
    ):
        made.append(
            vector(
                "signature",
                f"sig-first-seen-{name}",
                "The older form keeps its verdict and says beside it when it was first seen.",
                {"document": old, "keys": revoked, "firstSeen": seen},
                {"ok": True, "reason": "ok", "form": "hash", "caveats": caveats},
            )
        )
    return made


def disclosures() -> list[dict[str, Any]]:
    salt = "AAECAwQFBgcICQoLDA0ODw"
    digest = sha256(f'["{salt}",{{"diet":"low salt","n":2}}]')
    cases: list[tuple[str, str, Mapping[str, Any], str]] = [
        (
            "valid",
            "Salt and value give the digest, however the value is written.",
            {"digest": digest, "salt": salt, "value": {"n": 2.0, "diet": "low salt"}},
            "ok",
        ),
        (
            "other-value",
            "Another value does not.",
            {"digest": digest, "salt": salt, "value": {"n": 3, "diet": "low salt"}},
            "digest_mismatch",
        ),
        (
            "other-salt",
            "Nor does another salt.",
            {"digest": digest, "salt": salt[::-1], "value": {"n": 2, "diet": "low salt"}},
            "digest_mismatch",
        ),
        (
            "short-salt",
            "A salt that can be guessed hides nothing.",
            {"digest": sha256('["salt","halal"]'), "salt": "salt", "value": "halal"},
            "short_salt",
        ),
        (
            "no-digest",
            "Something that is no digest opens to nothing.",
            {"digest": "sha256:", "salt": salt, "value": 1},
            "unreadable",
        ),
    ]
    return [
        vector("disclosure", f"disclosure-{name}", said, given, {"ok": reason == "ok", "reason": reason})
        for name, said, given, reason in cases
    ]


def ledgers() -> list[dict[str, Any]]:
    whole = log()
    edited = copy.deepcopy(whole)
    edited[2]["payload"]["n"] = 5
    rewritten = [*whole[:3], entry(3, whole[2]["hash"], {"actor": "person:ida", "type": "withdrawn"})]
    skipped = log([STEPS[0], {**STEPS[1], "transition": {"from": "draft", "to": "closing"}}])
    given_away = log(by=lambda place: HUB if place < 2 else BAKER)
    point = checkpoint(whole)
    payload = {"n": 4, "ref": "loaves"}
    hash_only = log(
        [STEPS[0], {"actor": "baker", "type": "progress", "payloadDigest": sha256('{"n":4,"ref":"loaves"}')}]
    )
    key = sha256('{"n":4,"ref":"loaves"}')
    revoked = [{**record, "revokedAt": "2026-06-01T00:00:00Z"} for record in KEYS]

    def no(reason: str) -> dict[str, Any]:
        return {"ok": False, "reason": reason}

    cases: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
        ("whole", "A whole log.", {"events": whole}, {"ok": True, "reason": "ok", "head": whole[-1]["hash"]}),
        (
            "whole-old-form",
            "The same in the older form of signature.",
            {"events": log(form="hash")},
            {"ok": True, "reason": "ok"},
        ),
        (
            "whole-old-form-caveat",
            "Anyone could have written another time beside a signature of the older form.",
            {"events": log(form="hash"), "firstSeen": "2026-05-02T00:00:00Z"},
            {"ok": True, "reason": "ok", "caveats": ["signedAt_unprotected"]},
        ),
        (
            "seen-late",
            "The older form, first seen after its key was revoked.",
            {"events": log(form="hash"), "firstSeen": "2026-06-02T00:00:00Z", "keys": revoked},
            {"ok": True, "reason": "ok", "caveats": ["seen_after_revocation", "signedAt_unprotected"]},
        ),
        (
            "seen-late-protected",
            "The same in the later form, whose time is signed.",
            {"events": whole, "firstSeen": "2026-06-02T00:00:00Z", "keys": revoked},
            {"ok": True, "reason": "ok", "caveats": []},
        ),
        ("edited", "A payload was edited.", {"events": edited}, no("hash_mismatch_at_2")),
        ("cut", "An entry was taken out.", {"events": [whole[0], *whole[2:]]}, no("seq_mismatch_at_1")),
        (
            "branch",
            "An entry of another branch.",
            {"events": [whole[0], entry(1, "genesis", STEPS[1])]},
            no("prev_mismatch_at_1"),
        ),
        ("given-away", "A second sequencer went on.", {"events": given_away}, no("other_sequencer_at_2")),
        ("illegal", "A state was skipped.", {"events": skipped}, no("illegal_transition_at_1")),
        (
            "role",
            "A guest opened it.",
            {"events": whole, "roles": {"person:ida": "guest"}},
            no("illegal_transition_at_1"),
        ),
        (
            "hash-only",
            "A payload was erased: its digest remains.",
            {"events": hash_only, "mode": "hash_only"},
            {"ok": True, "reason": "ok"},
        ),
        (
            "hash-only-kept",
            "A payload is kept beside the log.",
            {"events": hash_only, "mode": "hash_only", "payloads": {key: payload}},
            {"ok": True, "reason": "ok"},
        ),
        (
            "hash-only-changed",
            "The payload beside it was changed.",
            {"events": hash_only, "mode": "hash_only", "payloads": {key: {**payload, "n": 5}}},
            no("payload_mismatch_at_1"),
        ),
        (
            "hash-only-inside",
            "A payload stands in such a log.",
            {"events": whole, "mode": "hash_only"},
            no("payload_in_log_at_2"),
        ),
        (
            "checkpoint",
            "A countersigned checkpoint.",
            {"events": whole, "checkpoint": point},
            {"ok": True, "reason": "ok", "witnesses": ["baker"]},
        ),
        (
            "checkpoint-role",
            "A guest opened the log under a checkpoint.",
            {"events": whole, "checkpoint": point, "roles": {"person:ida": "guest"}},
            no("illegal_transition_at_1"),
        ),
        (
            "checkpoint-payload-changed",
            "A payload beside the log under a checkpoint was changed.",
            {
                "events": hash_only,
                "mode": "hash_only",
                "checkpoint": checkpoint(hash_only),
                "payloads": {key: {**payload, "n": 5}},
            },
            no("payload_mismatch_at_1"),
        ),
        (
            "checkpoint-alone",
            "Nobody countersigned.",
            {"events": whole, "checkpoint": checkpoint(whole, witnesses=())},
            no("no_independent_witness"),
        ),
        (
            "checkpoint-self",
            "The sequencer's own key under another name.",
            {"events": whole, "checkpoint": checkpoint(whole, witnesses=[("baker", HUB)])},
            no("no_independent_witness"),
        ),
        (
            "checkpoint-rewritten",
            "History was rewritten since.",
            {"events": rewritten, "checkpoint": point},
            no("head_mismatch"),
        ),
        (
            "checkpoint-shorter",
            "History was cut short since.",
            {"events": whole[:2], "checkpoint": point},
            no("head_mismatch"),
        ),
        (
            "fork",
            "The sequencer signed two heads for one place.",
            {"checkpoints": [point, checkpoint(rewritten)]},
            {"fork": True, "reason": "fork_detected", "proven": True},
        ),
        (
            "fork-behind-a-forgery",
            "The same, with a forged checkpoint between the two.",
            {"checkpoints": [point, {**point, "head": "sha256:" + "1" * 64}, checkpoint(rewritten)]},
            {"fork": True, "reason": "fork_detected", "proven": True},
        ),
        (
            "fork-old-form",
            "Two heads in the older form: nothing says they are older than a theft of the key.",
            {"checkpoints": [checkpoint(whole, form="hash"), checkpoint(rewritten, form="hash")]},
            {"fork": True, "reason": "fork_detected", "proven": False},
        ),
        (
            "fork-forged",
            "Somebody wrote another head into a checkpoint.",
            {"checkpoints": [point, {**point, "head": "sha256:" + "1" * 64}]},
            {"fork": True, "reason": "fork_detected", "proven": False},
        ),
        (
            "no-fork",
            "Two checkpoints of different places.",
            {"checkpoints": [point, checkpoint(whole, place=1)]},
            {"fork": False, "reason": "ok"},
        ),
    ]
    return [
        vector("ledger", f"ledger-{name}", said, {**given, "keys": given.get("keys", KEYS)}, expected)
        for name, said, given, expected in cases
    ]


def transitions() -> list[dict[str, Any]]:
    executions = [
        ("accepted", "preparing", True),
        ("accepted", "running", False),
        ("accepted", "stopped", True),
        ("preparing", "needs_human", True),
        ("running", "completed", True),
        ("running", "accepted", False),
        ("needs_human", "running", True),
        ("needs_human", "completed", False),
        ("stopping", "stopped", True),
        ("stopping", "completed", False),
        ("stopped", "running", False),
        ("failed", "preparing", False),
        ("refused", "accepted", False),
        ("nowhere", "running", False),
        ("running", "running", False),
    ]
    missions = [
        ("draft", "open", "initiator", True),
        ("draft", "open", "guest", False),
        ("open", "committed", "holder", False),
        ("ready", "committed", "holder", True),
        ("ready", "committed", "initiator", False),
        ("executing", "paused", "initiator", True),
        ("executing", "paused", "arbiter", False),
        ("executing", "failed", "initiator", False),
        ("executing", "cancelled", "holder", False),
        ("closing", "closed", "holder", True),
        ("closing", "closed", "executor", False),
        ("cancelled", "open", "holder", False),
        ("degraded", "executing", "arbiter", True),
    ]
    return [
        *(
            vector(
                "execution_transition",
                f"execution-{before}-{after}",
                f"An execution from {before} to {after}.",
                {"from": before, "to": after},
                {"allowed": allowed},
            )
            for before, after, allowed in executions
        ),
        *(
            vector(
                "mission_transition",
                f"mission-{before}-{after}-{role}",
                f"A Mission from {before} to {after}, led by its {role}.",
                {"from": before, "to": after, "role": role},
                {"allowed": allowed},
            )
            for before, after, role, allowed in missions
        ),
    ]


def dry_runs() -> list[dict[str, Any]]:
    def ask(
        op: str, params: dict[str, Any], ops: list[str], sensors: list[str], **more: Any
    ) -> dict[str, Any]:
        return {
            "recipe": {"process": {"nodes": [{"id": "s1", "op": op, "params": params}]}},
            "capabilities": {
                "capabilities": {
                    "ops": [{"op": one} for one in ops],
                    "sensors": [{"sensor": one} for one in sensors],
                }
            },
            "humanPresent": True,
            **more,
        }

    def refused(reason: str) -> dict[str, Any]:
        return {"state": "refused", "reason": reason, "by": []}

    simmer, fry = "cw.op.simmer", "cw.op.deep_fry"
    limit = {"id": "home.max", "kind": "max_temp", "unit": "degC", "max": 90, "appliesTo": {"ops": [simmer]}}
    cases: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
        (
            "simmer",
            "A simmer inside its envelope.",
            ask(simmer, {"tempC": 92}, [simmer], ["cw.sense.liquid_temp"]),
            {"state": "accepted", "reason": None, "by": ["device"]},
        ),
        (
            "too-hot",
            "A target above the envelope.",
            ask(simmer, {"tempC": 99}, [simmer], ["cw.sense.liquid_temp"]),
            refused("envelope_out_of_range"),
        ),
        (
            "no-oil-sensor",
            "Deep frying without its sensor.",
            ask(fry, {"oilTempC": 175}, [fry], []),
            refused("missing_sensor_no_fallback"),
        ),
        (
            "local-limit",
            "A stricter limit of the house.",
            ask(simmer, {"tempC": 92}, [simmer], ["cw.sense.liquid_temp"], limits={"limits": [limit]}),
            refused("safety_limit"),
        ),
    ]
    return [
        vector("dryrun", f"dryrun-{name}", said, given, expected) for name, said, given, expected in cases
    ]


def everything() -> dict[str, list[dict[str, Any]]]:
    """The vectors by the file they stand in."""
    return {
        "hash": hashes(),
        "signature": signatures(),
        "disclosure": disclosures(),
        "ledger": ledgers(),
        "transitions": transitions(),
        "envelope": envelopes(),
        "units": units(),
        "profiles/dryrun": dry_runs(),
        "profiles/sensor_trust": sensor_trust(),
    }


def text(vectors: list[dict[str, Any]]) -> str:
    return json.dumps(vectors, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    for name, vectors in everything().items():
        path = FOLDER / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(vectors), "utf-8")
