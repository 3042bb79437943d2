"""One valid document of every kind, made here or taken from the public samples."""

import copy
from typing import Any

from cookwala_samples import load_bundle

HASH = "sha256:" + "0a" * 32
SIGNATURE = {"alg": "EdDSA", "kid": "person:anna#k1", "sig": "AAAA", "signedAt": "2026-11-30T12:00:00Z"}
MANDATE: dict[str, Any] = {
    "principal": "person:anna",
    "agent": "agent:planner",
    "scopes": ["start_cooking"],
    "expires": "2026-12-01T00:00:00Z",
    "spendCap": {"amount": "12.50", "currency": "EUR"},
    "agentInfo": {"vendor": "Ärzte & Co", "x-build": 7},
    "signature": SIGNATURE,
}


def _core(kind: str, **members: Any) -> dict[str, Any]:
    return {"core": "0.2.0", "kind": kind, **members}


def valid_documents() -> dict[str, list[dict[str, Any]]]:
    """Valid documents by kind, as plain JSON values that the caller may change."""
    samples = load_bundle()
    found: dict[str, list[dict[str, Any]]] = {
        "Recipe": list(samples["recipes"].values()),
        "Capabilities": list(samples["devices"].values()),
        "ExecuteRequest": [
            _core(
                "ExecuteRequest",
                id="req-0001",
                recipe="cw:cookwala.ai:example-koshari",
                recipeHash=HASH,
                requestedBy="agent:planner",
                idempotencyKey="key-00000001",
                servings=4,
                serveBy="2026-11-30T19:00:00+01:00",
                mandate=MANDATE,
                allergenBlocks=["nuts"],
            )
        ],
        "ExecutionStatus": [
            _core(
                "ExecutionStatus",
                id="exe-0001",
                request="req-0001",
                state="running",
                seq=4,
                updatedAt="2026-11-30T12:00:00.5+01:00",
                step={
                    "node": "n1",
                    "op": "cw.op.simmer",
                    "progress": 0.25,
                    "readings": [{"sensor": "cw.sense.core_temp", "value": 93.5, "unit": "degC"}],
                },
            )
        ],
        "StopRequest": [_core("StopRequest", execution="exe-0001", requestedBy="person:anna", reason="late")],
        "ExecutionLog": [
            _core(
                "ExecutionLog",
                id="log-0001",
                recipe="cw:cookwala.ai:example-koshari",
                recipeHash=HASH,
                device={"vendor": "V", "model": "M"},
                startedAt="2026-11-30T12:00:00Z",
                outcome="served",
                steps=[{"node": "n1", "op": "cw.op.simmer", "verifiedBy": "sensor", "envelopeOk": True}],
                consent={"dataset": "none"},
                privacy={"personalData": "none"},
                signature=SIGNATURE,
            )
        ],
        "SafetyLimits": [
            _core(
                "SafetyLimits",
                id="pack",
                version="1.0.0",
                limits=[
                    {
                        "id": "oil.max",
                        "kind": "max_temp",
                        "action": "cut_heat",
                        "source": "maker",
                        "max": 205,
                        "unit": "degC",
                        "appliesTo": {"medium": "oil", "ops": ["cw.op.fry"]},
                    }
                ],
                disclaimer="no substitute for looking",
            )
        ],
        "Recall": [
            _core(
                "Recall",
                id="rc-1",
                issuedAt="2026-11-30T12:00:00Z",
                issuer="cookwala.ai",
                targets=[{"ref": "cw:cookwala.ai:x", "allRevisions": True}],
                severity="high",
                reason="allergen",
                action="block",
                signature=SIGNATURE,
            )
        ],
        "IncidentReport": [
            _core(
                "IncidentReport",
                id="inc-1",
                date="2026-02-28",
                category="cw.incident.overheat",
                severity="medium",
                description="too hot",
                contributingFactors=["network"],
            )
        ],
        "ConformanceReport": [
            {
                "profile": "0.1.0",
                "kind": "ConformanceReport",
                "id": "rep-1",
                "core": "0.2.0",
                "claim": "verifier",
                "subject": {"name": "aboyeur"},
                "suites": [{"suite": "hash", "total": 2, "passed": 2}],
                "vectorsHash": HASH,
                "tool": {"name": "aboyeur", "version": "0.1.0"},
                "date": "2026-11-30",
                "status": "self_declared",
                "signature": SIGNATURE,
            }
        ],
        "AgentMandate": [MANDATE],
        "KeyRecord": [
            {"kid": "k1", "alg": "ES256", "publicKey": "AAAA", "validFrom": "2026-01-01T00:00:00Z"}
        ],
        "Disclosure": [{"digest": HASH, "salt": "s" * 22, "value": {"name": None}}],
        "MissionEvent": [
            {
                "mission": "m1",
                "seq": 0,
                "at": "2026-11-30T12:00:00Z",
                "actor": "person:anna",
                "type": "created",
                "prev": "genesis",
                "hash": HASH,
            },
            {
                "mission": "m1",
                "seq": 1,
                "at": "2026-11-30T12:00:01Z",
                "actor": "person:anna",
                "type": "state_changed",
                "transition": {"from": "draft", "to": "open"},
                "prev": HASH,
                "hash": HASH,
            },
        ],
        "Checkpoint": [
            {
                "mission": "m1",
                "seq": 0,
                "head": HASH,
                "at": "2026-11-30T12:00:00Z",
                "sequencer": "hub",
                "signature": SIGNATURE,
            }
        ],
        "Signature": [SIGNATURE],
        "Money": [{"amount": "12.70", "currency": "EUR"}],
        "Quantity": [
            {"value": 180, "unit": "degC", "toleranceAbs": 2},
            {"value": 1, "unit": "kg", "tolerance": 0.1, "massPerPiece": {"value": 0.2, "unit": "kg"}},
        ],
        "Target": [{"sensor": "cw.sense.core_temp", "value": 70, "unit": "degC", "tolerance": 2}],
        "Condition": [
            {
                "all": [
                    {"sensor": "cw.sense.core_temp", "gte": 70.0, "holdFor": "PT15S"},
                    {"not": {"vision": "cw.sense.burnt", "confidence": 0.9}},
                ],
                "maxTime": "PT1H",
                "onSensorMissing": "human",
            }
        ],
    }
    return copy.deepcopy(found)
