"""Whether an event log is whole, in order and its sequencer's; checkpoints, witnesses, forks (Core §5)."""

import copy
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.canonical import canonical, digest, document_hash
from hub.records.log.ledger import find_fork, verify_checkpoint, verify_events
from hub.records.log.mission import FOLLOWING, INITIAL, ROLES_INTO, may_follow
from mandates import base64url
from mandates.keys import KeyRing, PrivateKey
from mandates.signature import Form
from tests.hub.records.missions import (
    BAKER,
    HUB,
    HUB_NEXT,
    KEYS,
    MILLER,
    RECORDS,
    SINCE,
    STEPS,
    checkpoint,
    entry,
    log,
)

REFERENCE = Path(__file__).parents[4] / "shared" / "reference" / "cookwala"


@pytest.mark.parametrize("form", ["header", "hash"])
def test_a_whole_log_holds_and_names_its_head_and_its_sequencer(form: Form) -> None:
    entries = log(form=form)
    verdict = verify_events(entries, KEYS)
    assert (verdict.ok, verdict.reason) == (True, "ok")
    assert (verdict.head, verdict.sequencer) == (entries[-1]["hash"], "hub:cellar")


def test_an_empty_log_is_whole_and_stands_at_its_beginning() -> None:
    verdict = verify_events([], KEYS)
    assert (verdict.ok, verdict.head, verdict.sequencer) == (True, "genesis", None)


def test_a_sequencer_may_change_its_key_but_not_give_the_log_away() -> None:
    assert verify_events(log(by=lambda place: HUB if place < 2 else HUB_NEXT), KEYS).ok
    given_away = log(by=lambda place: HUB if place < 2 else BAKER)
    assert verify_events(given_away, KEYS).reason == "other_sequencer_at_2"


def test_a_key_of_nobody_sequences_nothing() -> None:
    nobodys = KeyRing([msgspec.structs.replace(RECORDS[0], actor=None)])
    assert verify_events(log(), nobodys).reason == "other_sequencer_at_0"


def rehashed(entries: list[dict[str, Any]], place: int, **members: Any) -> list[dict[str, Any]]:
    """`entries` with the one at `place` changed and its hash made to fit, by someone without the key."""
    altered = copy.deepcopy(entries)
    altered[place].update(members)
    altered[place]["hash"] = document_hash(altered[place])
    return altered


def without(entries: list[dict[str, Any]], place: int, member: str) -> list[dict[str, Any]]:
    altered = copy.deepcopy(entries)
    del altered[place][member]
    return altered


def edited(entries: list[dict[str, Any]], place: int, **members: Any) -> list[dict[str, Any]]:
    altered = copy.deepcopy(entries)
    altered[place].update(members)
    return altered


WHOLE = log()
BROKEN: list[tuple[str, list[Any], str]] = [
    ("an entry edited", edited(WHOLE, 1, actor="mallory"), "hash_mismatch_at_1"),
    ("an entry edited and its hash made to fit", rehashed(WHOLE, 1, actor="mallory"), "bad_signature_at_1"),
    (
        "the last entry edited and made to fit",
        rehashed(WHOLE, 3, at="2026-05-02T00:00:00Z"),
        "bad_signature_at_3",
    ),
    ("an entry taken out", [*WHOLE[:1], *WHOLE[2:]], "seq_mismatch_at_1"),
    ("the first entry taken out", WHOLE[1:], "seq_mismatch_at_0"),
    ("two entries swapped", [WHOLE[0], WHOLE[2], WHOLE[1], WHOLE[3]], "seq_mismatch_at_1"),
    ("an entry twice", [*WHOLE[:2], WHOLE[1], *WHOLE[2:]], "seq_mismatch_at_2"),
    (
        "an entry of another branch",
        [*WHOLE[:1], entry(1, "genesis", STEPS[1]), *WHOLE[2:]],
        "prev_mismatch_at_1",
    ),
    ("a beginning that has one before it", [entry(0, "sha256:" + "0" * 64, STEPS[0])], "prev_mismatch_at_0"),
    ("an entry of another Mission", log([STEPS[0], {**STEPS[1], "mission": "m-soup"}]), "other_mission_at_1"),
    ("an unsigned entry", without(WHOLE, 2, "signature"), "unsigned_at_2"),
    (
        "an entry by an unknown key",
        edited(WHOLE, 2, signature={**WHOLE[2]["signature"], "kid": "x"}),
        "unknown_key_at_2",
    ),
    ("an entry without a hash", without(WHOLE, 2, "hash"), "unreadable_at_2"),
    ("an entry of a type nobody knows", edited(WHOLE, 2, type="danced"), "unreadable_at_2"),
    ("something that is no entry", [*WHOLE[:2], "entry"], "unreadable_at_2"),
    (
        "a state skipped",
        log([STEPS[0], {**STEPS[1], "transition": {"from": "draft", "to": "executing"}}]),
        "illegal_transition_at_1",
    ),
    (
        "a state it never was in",
        log([STEPS[0], {**STEPS[1], "transition": {"from": "ready", "to": "committed"}}]),
        "illegal_transition_at_1",
    ),
    (
        "a change of state that names none",
        log([STEPS[0], {"actor": "a", "type": "state_changed"}]),
        "illegal_transition_at_1",
    ),
    ("a transition where none belongs", log([{**STEPS[1], "type": "created"}]), "illegal_transition_at_0"),
    (
        "payload and digest at once",
        log([{**STEPS[2], "payloadDigest": digest(b"{}")}]),
        "payload_in_log_at_0",
    ),
]


@pytest.mark.parametrize(("name", "entries", "reason"), BROKEN, ids=[case[0] for case in BROKEN])
def test_what_is_wrong_with_a_log_has_a_name_and_a_place(name: str, entries: list[Any], reason: str) -> None:
    verdict = verify_events(entries, KEYS)
    assert (verdict.ok, verdict.reason, verdict.head) == (False, reason, None)
    assert verdict.detail


def test_no_changed_character_of_a_log_holds() -> None:
    text = json.dumps(WHOLE[:3])
    held = tried = 0
    for place, sign in enumerate(text):
        for other in "a0Z":
            if other == sign:
                continue
            try:
                altered = json.loads(text[:place] + other + text[place + 1 :])
            except ValueError:
                continue
            tried += 1
            held += verify_events(altered, KEYS).ok if isinstance(altered, list) else False
    assert tried > 3000
    assert held == 0


def test_a_header_of_another_kind_is_no_entrys() -> None:
    entries = log(STEPS[:1])
    signature = checkpoint(entries)["signature"]
    assert verify_events(edited(entries, 0, signature=signature), KEYS).reason == "bad_signature_at_0"


PAYLOAD = {"ref": "loaves", "for": "person:ida"}
DIGEST = digest(canonical(PAYLOAD))
HASH_ONLY = [STEPS[0], {"actor": "baker", "type": "progress", "payloadDigest": DIGEST}]


@pytest.mark.parametrize(
    ("payloads", "reason", "absent"),
    [
        (None, "ok", 1),
        ({}, "ok", 1),
        ({DIGEST: PAYLOAD}, "ok", 0),
        ({DIGEST: {**PAYLOAD, "ref": "rolls"}}, "payload_mismatch_at_1", 0),
        ({DIGEST: float("nan")}, "payload_mismatch_at_1", 0),
    ],
)
def test_a_hash_only_log_outlives_its_payloads_and_knows_a_changed_one(
    payloads: dict[str, Any] | None, reason: str, absent: int
) -> None:
    verdict = verify_events(log(HASH_ONLY), KEYS, mode="hash_only", payloads=payloads)
    assert (verdict.reason, verdict.absent) == (reason, absent)


def test_a_hash_only_log_holds_no_payload() -> None:
    assert verify_events(WHOLE, KEYS).ok
    assert verify_events(WHOLE, KEYS, mode="hash_only").reason == "payload_in_log_at_2"


@pytest.mark.parametrize(
    ("roles", "reason"),
    [
        (None, "ok"),
        ({"person:ida": "holder"}, "ok"),
        ({"person:ida": "executor"}, "ok"),
        ({"person:ida": "guest"}, "illegal_transition_at_1"),
        ({}, "illegal_transition_at_1"),
    ],
)
def test_only_who_may_lead_into_a_state_does(roles: dict[str, str] | None, reason: str) -> None:
    assert verify_events(WHOLE, KEYS, roles=roles).reason == reason


def test_a_final_state_has_no_way_on() -> None:
    cancelled = {"actor": "a", "type": "state_changed", "transition": {"from": "open", "to": "cancelled"}}
    back = {"actor": "a", "type": "state_changed", "transition": {"from": "cancelled", "to": "open"}}
    assert verify_events(log([*STEPS[:2], cancelled]), KEYS).ok
    assert verify_events(log([*STEPS[:2], cancelled, back]), KEYS).reason == "illegal_transition_at_3"


@pytest.mark.parametrize("form", ["header", "hash"])
@pytest.mark.parametrize("at", [0, 2, 3])
def test_a_countersigned_checkpoint_holds_for_the_log_it_was_signed_for(form: Form, at: int) -> None:
    entries = log(form=form)
    verdict = verify_checkpoint(checkpoint(entries, place=at, form=form), entries, KEYS)
    assert (verdict.reason, verdict.witnesses, verdict.head) == ("ok", ("baker",), entries[-1]["hash"])


def untimed(point: dict[str, Any]) -> dict[str, Any]:
    """`point` without `signedAt` in its signatures."""
    bare = copy.deepcopy(point)
    for signature in (bare["signature"], *(witness["signature"] for witness in bare["witnesses"])):
        del signature["signedAt"]
    return bare


def test_the_seeds_form_of_a_checkpoint_may_leave_its_time_to_the_member_beside_it() -> None:
    assert verify_checkpoint(untimed(checkpoint(WHOLE, form="hash")), WHOLE, KEYS).ok
    revoked = KeyRing([msgspec.structs.replace(RECORDS[0], revoked_at="2026-05-01T17:30:00Z"), *RECORDS[1:]])
    verdict = verify_checkpoint(untimed(checkpoint(WHOLE, form="hash")), WHOLE, revoked)
    assert verdict.reason == "checkpoint_key_revoked"


def test_the_later_form_never_leaves_its_time_out() -> None:
    # Its member `at` spells the very time that the header holds.
    point = checkpoint(WHOLE, **{"at": "2026-05-01T18:00:00.000Z"})
    assert verify_checkpoint(point, WHOLE, KEYS).ok
    assert verify_checkpoint(untimed(point), WHOLE, KEYS).reason == "checkpoint_unsigned_time"


POINT = checkpoint(WHOLE)
REWRITTEN = [*WHOLE[:3], entry(3, WHOLE[2]["hash"], {"actor": "person:ida", "type": "withdrawn"})]
POINTS: list[tuple[str, Any, list[Any], str]] = [
    ("history rewritten since", POINT, REWRITTEN, "head_mismatch"),
    ("history cut short since", POINT, WHOLE[:3], "head_mismatch"),
    ("all of it gone", POINT, [], "head_mismatch"),
    ("nobody countersigned", checkpoint(WHOLE, witnesses=()), WHOLE, "no_independent_witness"),
    (
        "the sequencer alone countersigned",
        checkpoint(WHOLE, witnesses=[("hub:cellar", HUB)]),
        WHOLE,
        "no_independent_witness",
    ),
    (
        "the sequencer under another key",
        checkpoint(WHOLE, witnesses=[("hub:cellar", HUB_NEXT)]),
        WHOLE,
        "no_independent_witness",
    ),
    (
        "the sequencer under another name",
        checkpoint(WHOLE, witnesses=[("baker", HUB)]),
        WHOLE,
        "no_independent_witness",
    ),
    (
        "a witness who signed as another",
        checkpoint(WHOLE, witnesses=[("baker", MILLER)]),
        WHOLE,
        "no_independent_witness",
    ),
    ("another head written in", {**POINT, "head": "sha256:" + "0" * 64}, WHOLE, "checkpoint_bad_signature"),
    ("signed by a witness instead", checkpoint(WHOLE, by=MILLER), WHOLE, "checkpoint_other_signer"),
    (
        "of another sequencer",
        checkpoint(WHOLE, by=MILLER, sequencer="miller"),
        WHOLE,
        "checkpoint_other_sequencer",
    ),
    ("of another Mission", checkpoint(WHOLE, mission="m-soup"), WHOLE, "checkpoint_other_mission"),
    ("no checkpoint", {"mission": "m-bread"}, WHOLE, "checkpoint_unreadable"),
    ("a broken log under it", POINT, edited(WHOLE, 1, actor="mallory"), "hash_mismatch_at_1"),
]


@pytest.mark.parametrize(("name", "point", "entries", "reason"), POINTS, ids=[case[0] for case in POINTS])
def test_what_is_wrong_under_a_checkpoint_has_a_name(
    name: str, point: Any, entries: list[Any], reason: str
) -> None:
    verdict = verify_checkpoint(point, entries, KEYS)
    assert (verdict.ok, verdict.reason) == (False, reason)


def test_the_sequencers_key_registered_as_somebody_elses_witnesses_nothing() -> None:
    alias = PrivateKey.from_seed(HUB.seed(), kid="baker#alias")
    keys = KeyRing([*RECORDS, alias.record(actor="baker", valid_from=SINCE)])
    point = checkpoint(WHOLE, witnesses=[("baker", alias)])
    assert verify_checkpoint(point, WHOLE, keys).reason == "no_independent_witness"
    assert verify_checkpoint(POINT, WHOLE, keys).ok


def test_a_sequencers_p256_key_in_another_spelling_is_still_its_own() -> None:
    own = PrivateKey.from_seed(bytes([45]) * 32, kid="hub:cellar#3", alg="ES256")
    record = own.record(actor="hub:cellar", valid_from=SINCE)
    raw = base64url.decode(record.public_key)
    squeezed = msgspec.structs.replace(
        record,
        kid="baker#alias",
        actor="baker",
        public_key=base64url.encode(bytes([2 + raw[-1] % 2]) + raw[1:33]),
    )
    keys = KeyRing([*RECORDS, record, squeezed])
    alias = PrivateKey.from_seed(own.seed(), kid="baker#alias", alg="ES256")
    entries = log(by=lambda place: own)
    point = checkpoint(entries, by=own, witnesses=[("baker", alias)])
    assert verify_checkpoint(point, entries, keys).reason == "no_independent_witness"
    assert verify_checkpoint(checkpoint(entries, by=own), entries, keys).ok


def test_one_good_witness_among_bad_ones_is_enough() -> None:
    point = checkpoint(WHOLE, witnesses=[("hub:cellar", HUB), ("baker", MILLER), ("miller", MILLER)])
    assert verify_checkpoint(point, WHOLE, KEYS).witnesses == ("miller",)


def test_two_heads_for_one_place_are_a_fork_and_the_sequencers_if_both_are_signed() -> None:
    fork = find_fork([POINT, checkpoint(REWRITTEN)], KEYS)
    assert fork is not None
    assert (fork.mission, fork.seq, fork.proven) == ("m-bread", 3, True)
    assert fork.heads == (WHOLE[3]["hash"], REWRITTEN[3]["hash"])


def test_a_forged_checkpoint_frames_nobody() -> None:
    fork = find_fork([POINT, {**POINT, "head": "sha256:" + "0" * 64}], KEYS)
    assert fork is not None
    assert not fork.proven


FORGED = {**POINT, "head": "sha256:" + "0" * 64}


@pytest.mark.parametrize(
    "points",
    [
        [POINT, FORGED, checkpoint(REWRITTEN)],
        [FORGED, POINT, checkpoint(REWRITTEN)],
        [POINT, checkpoint(WHOLE, place=1), {**checkpoint(WHOLE, place=1), "head": FORGED["head"]}, FORGED,
         checkpoint(REWRITTEN)],
    ],
)  # fmt: skip
def test_no_forgery_hides_the_proof_of_a_fork(points: list[Any]) -> None:
    fork = find_fork(points, KEYS)
    assert fork is not None
    assert fork.proven
    assert fork.heads == (WHOLE[3]["hash"], REWRITTEN[3]["hash"])


REVOKED = KeyRing(msgspec.structs.replace(record, revoked_at="2026-06-01T00:00:00Z") for record in RECORDS)
BEFORE, AFTER = datetime(2026, 5, 20, tzinfo=UTC), datetime(2026, 6, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("form", "first_seen", "caveats", "counts"),
    [
        ("header", None, (), True),
        ("header", AFTER, (), True),
        ("hash", None, ("signedAt_unprotected",), True),
        ("hash", BEFORE, ("signedAt_unprotected",), True),
        ("hash", AFTER, ("seen_after_revocation", "signedAt_unprotected"), False),
    ],
)
def test_a_log_whose_times_anyone_could_have_written_says_so_and_is_no_evidence_if_it_came_late(
    form: Form, first_seen: datetime | None, caveats: tuple[str, ...], counts: bool
) -> None:
    entries = log(form=form)
    verdict = verify_events(entries, REVOKED, first_seen=first_seen)
    assert (verdict.ok, verdict.caveats, verdict.counts) == (True, caveats, counts)
    sound = checkpoint(entries)
    verdict = verify_checkpoint(sound, entries, REVOKED, first_seen=first_seen)
    assert (verdict.ok, verdict.caveats, verdict.counts) == (True, caveats, counts)


def test_a_log_that_does_not_hold_counts_for_nothing() -> None:
    verdict = verify_events(edited(WHOLE, 1, actor="mallory"), KEYS)
    assert (verdict.ok, verdict.counts, verdict.caveats) == (False, False, ())


def test_a_checkpoint_in_the_older_form_says_so_and_a_late_witness_is_none() -> None:
    point = checkpoint(WHOLE, form="hash")
    early = verify_checkpoint(point, WHOLE, REVOKED, first_seen=BEFORE)
    assert (early.ok, early.caveats, early.witnesses) == (True, ("signedAt_unprotected",), ("baker",))
    assert verify_checkpoint(point, WHOLE, REVOKED, first_seen=AFTER).reason == "no_independent_witness"
    both = {
        **point,
        "witnesses": [*point["witnesses"], *checkpoint(WHOLE, witnesses=[("miller", MILLER)])["witnesses"]],
    }
    late = verify_checkpoint(both, WHOLE, REVOKED, first_seen=AFTER)
    # The sequencer's own word came late, too.
    assert (late.ok, late.witnesses, late.counts) == (True, ("miller",), False)
    sound = {**POINT, "witnesses": [*point["witnesses"], *both["witnesses"][1:]]}
    kept = verify_checkpoint(sound, WHOLE, REVOKED, first_seen=AFTER)
    assert (kept.witnesses, kept.caveats, kept.counts) == (("miller",), (), True)


@pytest.mark.parametrize(
    ("forms", "first_seen", "proven"),
    [
        (("header", "header"), None, True),
        (("header", "header"), AFTER, True),
        (("hash", "hash"), None, False),
        (("header", "hash"), None, False),
        (("hash", "header"), AFTER, False),
        (("hash", "hash"), BEFORE, True),
        (("hash", "header"), BEFORE, True),
    ],
)
def test_the_older_form_proves_a_fork_only_if_it_was_seen_in_time(
    forms: tuple[Form, Form], first_seen: datetime | None, proven: bool
) -> None:
    pair = [checkpoint(WHOLE, form=forms[0]), checkpoint(REWRITTEN, form=forms[1])]
    fork = find_fork(pair, REVOKED, first_seen=first_seen)
    assert fork is not None
    assert fork.proven is proven


def test_a_log_under_a_checkpoint_is_held_to_payloads_and_roles() -> None:
    roles = {"person:ida": "guest"}
    assert verify_checkpoint(POINT, WHOLE, KEYS, roles=roles).reason == "illegal_transition_at_1"
    entries = log(HASH_ONLY)
    changed = {DIGEST: {**PAYLOAD, "ref": "rolls"}}
    verdict = verify_checkpoint(checkpoint(entries), entries, KEYS, mode="hash_only", payloads=changed)
    assert verdict.reason == "payload_mismatch_at_1"


def test_checkpoints_that_agree_are_no_fork() -> None:
    earlier = checkpoint(WHOLE, place=1)
    assert find_fork([POINT, earlier, POINT, {"no": "checkpoint"}], KEYS) is None
    assert find_fork([POINT, checkpoint(REWRITTEN, mission="m-soup")], KEYS) is None


def test_every_state_is_reached_from_the_first_and_none_leads_back_into_it() -> None:
    reached = {INITIAL}
    for _ in FOLLOWING:
        reached |= {after for state in reached for after in FOLLOWING[state]}
    assert reached == set(FOLLOWING)
    assert INITIAL not in ROLES_INTO
    assert not may_follow("closed", "executing")
    assert not may_follow("draft", "nowhere")
    assert not may_follow("nowhere", "draft")
    assert may_follow("ready", "committed", "holder")
    assert not may_follow("ready", "committed", "executor")


@pytest.mark.reference
def test_the_public_table_of_transitions_is_ours() -> None:
    table = REFERENCE / "profiles" / "mission" / "transitions.json"
    if not table.is_file():
        pytest.skip(f"the public table is not there: {table}")
    public = json.loads(table.read_text("utf-8"))
    assert public["initial"] == INITIAL
    assert set(public["final"]) == {state for state, following in FOLLOWING.items() if not following}
    theirs = {(row["from"], row["to"], role) for row in public["transitions"] for role in row["allowedRoles"]}
    ours = {
        (state, after, role)
        for state, following in FOLLOWING.items()
        for after in following
        for role in ROLES_INTO[after]
    }
    assert ours == theirs


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(
        ["genesis", "hub:cellar", "baker", "m-bread", WHOLE[1]["hash"], "state_changed", "draft", "open"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=4) | st.sampled_from(["seq", "prev", "hash", "signature", "head", "kid"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@settings(max_examples=400)
@given(
    place=st.integers(0, 3),
    member=st.sampled_from([*WHOLE[2], "transition", "payloadDigest", "x-y", ""]),
    value=plain,
)
def test_whatever_stands_in_an_entry_there_is_a_verdict_and_only_the_whole_log_holds(
    place: int, member: str, value: Any
) -> None:
    altered: list[Any] = copy.deepcopy(WHOLE)
    if member:
        altered[place][member] = value
    else:
        altered[place] = value
    verdict = verify_events(altered, KEYS)
    assert verdict.ok == (verdict.reason == "ok")
    if verdict.ok:
        assert [document_hash(entry) for entry in altered] == [entry["hash"] for entry in WHOLE]


@settings(max_examples=400)
@given(member=st.sampled_from([*POINT, "x-y", ""]), value=plain)
def test_whatever_stands_in_a_checkpoint_there_is_a_verdict(member: str, value: Any) -> None:
    altered: Any = {**POINT, member: value} if member else value
    verdict = verify_checkpoint(altered, WHOLE, KEYS)
    if verdict.ok:
        assert {**altered, "witnesses": POINT["witnesses"]} == POINT
    find_fork([POINT, altered], KEYS)
