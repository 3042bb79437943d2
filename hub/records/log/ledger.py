"""Is this event log whole, in order and its sequencer's? Pure verification (Core §5, Mission profile).

One sequencer numbers a log and chains each entry to the one before; checkpoints say where it stood, and who
countersigned one can show that history was rewritten since. Everything that is wrong has a name that ends in
the place it was found at (`hash_mismatch_at_3`); the first one found is the verdict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

from events.canonical import canonical, digest, document_hash
from events.documents import DocumentError, from_plain
from hub.records.log.mission import GENESIS, INITIAL, Checkpoint, MissionEvent, may_follow
from mandates.documents import KeyRecord
from mandates.keys import KeyRing, encoded
from mandates.signature import Caveat, Verdict, verify_document

EVENT_KIND: Final = "Event"
CHECKPOINT_KIND: Final = "Checkpoint"
"""What the signing header names as the kind of an entry and of a checkpoint; neither has such a member."""

Mode = Literal["full", "hash_only"]


@dataclass(frozen=True, slots=True)
class LedgerVerdict:
    """What a log, or a log under its checkpoint, is worth.

    Attributes:
        ok: whether all of it holds.
        reason: `ok`, or the first thing found wrong.
        detail: for people.
        head: the hash of the last entry (`genesis` for an empty log); None where the chain does not hold.
        sequencer: whose keys signed the entries; None for an empty log.
        witnesses: who countersigned the checkpoint, apart from the sequencer, with a signature that holds.
        absent: how many payloads are only known by their digest.
        caveats: what is to be said of the signatures this rests on, by name: that some leave their time
            open (`signedAt_unprotected`), or came after their key was revoked (`seen_after_revocation`).
    """

    ok: bool
    reason: str
    detail: str = ""
    head: str | None = None
    sequencer: str | None = None
    witnesses: tuple[str, ...] = ()
    absent: int = 0
    caveats: tuple[Caveat, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether it is evidence: all of it holds, and nothing it rests on was first seen too late."""
        return self.ok and "seen_after_revocation" not in self.caveats


@dataclass(frozen=True, slots=True)
class Fork:
    """Two checkpoints of one log that cannot both be true.

    Attributes:
        mission: whose log.
        seq: where they differ.
        heads: what the two say.
        proven: whether the same sequencer signed both: then it, and nobody else, rewrote or forked the log.
            Otherwise one of them may be a forgery; that they differ is all that is known. The hash form
            alone proves nothing: who stole the key may have written the time before its revocation there.
    """

    mission: str
    seq: int
    heads: tuple[str, str]
    proven: bool


def verify_events(
    events: Sequence[object],
    keys: KeyRing,
    *,
    mode: Mode = "full",
    payloads: Mapping[str, Any] | None = None,
    roles: Mapping[str, str] | None = None,
    first_seen: datetime | None = None,
) -> LedgerVerdict:
    """Whether `events` are a whole log from its first entry on.

    Args:
        events: the entries in order, as plain JSON values.
        keys: the records known here; a record's `actor` says whose key it is.
        mode: `hash_only` logs hold no payload, only digests: one that does is refused.
        payloads: what is still stored beside such a log, by digest; what was erased is counted as absent.
        roles: the actors' roles in the Mission, where known: then only who may lead into a state does.
        first_seen: when the reader first saw the log as it stands (aware), where known; see `caveats`.
    """
    prev: str = GENESIS
    state: str = INITIAL
    first: MissionEvent | None = None
    sequencer: str | None = None
    absent = 0
    caveats: set[Caveat] = set()
    for place, plain in enumerate(events):
        try:
            event = from_plain(MissionEvent, plain)
            computed = document_hash(plain) if isinstance(plain, Mapping) else ""
        except DocumentError as error:
            return _no(f"unreadable_at_{place}", str(error))
        first = first or event
        wrong = _out_of_chain(event, first, place, prev, computed)
        if wrong is not None:
            return _no(*wrong)
        verdict = verify_document(plain, keys, kind=EVENT_KIND, first_seen=first_seen)
        if not verdict.ok:
            return _no(f"{verdict.reason}_at_{place}", verdict.detail)
        caveats.update(verdict.caveats)
        signer = _signer(event.signature, keys)
        actor = None if signer is None else signer.actor
        sequencer = sequencer or actor
        if actor is None or actor != sequencer:
            return _no(f"other_sequencer_at_{place}", f"signed by a key of {actor}, the log is {sequencer}'s")
        wrong = _wrong_payload(event, place, mode, payloads)
        if wrong is not None:
            return _no(*wrong)
        if event.payload_digest is not None and event.payload_digest not in (payloads or {}):
            absent += 1
        wrong = _wrong_transition(event, place, state, roles)
        if wrong is not None:
            return _no(*wrong)
        if event.transition is not None:
            state = event.transition.to
        prev = event.hash
    return LedgerVerdict(
        True, "ok", head=prev, sequencer=sequencer, absent=absent, caveats=tuple(sorted(caveats))
    )


def verify_checkpoint(
    checkpoint: object,
    events: Sequence[object],
    keys: KeyRing,
    *,
    mode: Mode = "full",
    payloads: Mapping[str, Any] | None = None,
    roles: Mapping[str, str] | None = None,
    first_seen: datetime | None = None,
) -> LedgerVerdict:
    """Whether `events` are a whole log and still the one that `checkpoint` was signed for.

    A checkpoint that nobody but the sequencer signed binds nobody, so one independent witness is needed:
    another actor with another key. A countersignature that does not hold is none, and neither is one that
    was first seen after its key was revoked, where only its hash form says it is older.

    Args:
        checkpoint: a plain JSON value.
        events: as for `verify_events`, and so are `keys`, `mode`, `payloads` and `roles`.
        first_seen: when the reader first saw log and checkpoint as they stand (aware), where known.
    """
    chain = verify_events(events, keys, mode=mode, payloads=payloads, roles=roles, first_seen=first_seen)
    if not chain.ok:
        return chain
    try:
        said = from_plain(Checkpoint, checkpoint)
    except DocumentError as error:
        return _no("checkpoint_unreadable", str(error))
    body = _signed_body(checkpoint)
    own, verdict = _judged(body, said.signature, said.at, said.sequencer, keys, first_seen=first_seen)
    if own != "ok":
        return _no(f"checkpoint_{own}", f"the checkpoint at {said.seq} by {said.sequencer}")
    if not events:
        return _no("head_mismatch", f"the log is empty, it once reached {said.seq}")
    if from_plain(MissionEvent, events[0]).mission != said.mission:
        return _no("checkpoint_other_mission", f"the checkpoint is of {said.mission}")
    if chain.sequencer != said.sequencer:
        return _no("checkpoint_other_sequencer", f"by {said.sequencer}, the log is {chain.sequencer}'s")
    if said.seq >= len(events):
        return _no("head_mismatch", f"the log ends at {len(events) - 1}, it once reached {said.seq}")
    there = from_plain(MissionEvent, events[said.seq]).hash
    if there != said.head:
        return _no("head_mismatch", f"entry {said.seq} is {there}, the checkpoint says {said.head}")
    # By the key itself: under another kid, in another spelling, or as somebody else's, it is still the
    # sequencer's.
    own_keys = {_encoded(record) for record in keys if record.actor == said.sequencer}
    witnesses: list[str] = []
    caveats = {*chain.caveats, *verdict.caveats}
    for witness in said.witnesses:
        theirs, verdict = _judged(
            body, witness.signature, witness.at or said.at, witness.actor, keys, first_seen=first_seen
        )
        if theirs == "ok" and verdict.counts and _encoded(_signer(witness.signature, keys)) not in own_keys:
            witnesses.append(witness.actor)
            caveats.update(verdict.caveats)
    if not witnesses:
        return _no("no_independent_witness", f"nobody but {said.sequencer} vouches for entry {said.seq}")
    return replace(chain, witnesses=tuple(witnesses), caveats=tuple(sorted(caveats)))


def find_fork(
    checkpoints: Sequence[object], keys: KeyRing, *, first_seen: datetime | None = None
) -> Fork | None:
    """Two readable checkpoints of one log that name different heads for one place, if there are any.

    A pair that proves who forked the log comes before the pairs that prove nothing, wherever it stands.

    Args:
        checkpoints: plain JSON values.
        keys: the records known here.
        first_seen: when the reader first saw them (aware), where known.
    """
    places: dict[tuple[str, int], list[tuple[Checkpoint, object]]] = {}
    for plain in checkpoints:
        try:
            said = from_plain(Checkpoint, plain)
        except DocumentError:
            # What cannot be read says nothing about any head.
            continue
        places.setdefault((said.mission, said.seq), []).append((said, plain))
    forked = [there for there in places.values() if any(said.head != there[0][0].head for said, _ in there)]
    for there in forked:
        heads: dict[str, str] = {}
        for said, plain in there:
            if heads.get(said.sequencer) == said.head or not _proves(said, plain, keys, first_seen):
                continue
            other = heads.setdefault(said.sequencer, said.head)
            if other != said.head:
                return Fork(said.mission, said.seq, (other, said.head), proven=True)
    for there in forked:
        first = there[0][0]
        other = next(said.head for said, _ in there if said.head != first.head)
        return Fork(first.mission, first.seq, (first.head, other), proven=False)
    return None


def _proves(said: Checkpoint, plain: object, keys: KeyRing, first_seen: datetime | None) -> bool:
    """Whether a checkpoint is its sequencer's word, by more than the hash form alone."""
    reason, verdict = _judged(
        _signed_body(plain), said.signature, said.at, said.sequencer, keys, first_seen=first_seen
    )
    return reason == "ok" and (verdict.form == "header" or verdict.first_seen == "seen_before_revocation")


_Wrong = tuple[str, str]


def _out_of_chain(
    event: MissionEvent, first: MissionEvent, place: int, prev: str, computed: str
) -> _Wrong | None:
    if event.mission != first.mission:
        return f"other_mission_at_{place}", f"{event.mission!a} in the log of {first.mission!a}"
    if event.seq != place:
        return f"seq_mismatch_at_{place}", f"entry {place} says it is {event.seq}"
    if event.prev != prev:
        return f"prev_mismatch_at_{place}", f"names {event.prev} as the one before, which is {prev}"
    if event.hash != computed:
        return f"hash_mismatch_at_{place}", f"says {event.hash}, its content gives {computed}"
    return None


def _wrong_payload(
    event: MissionEvent, place: int, mode: Mode, payloads: Mapping[str, Any] | None
) -> _Wrong | None:
    if event.payload is not None and (mode == "hash_only" or event.payload_digest is not None):
        return f"payload_in_log_at_{place}", "a payload stands in the log that should only be known by digest"
    if event.payload_digest is None or payloads is None or event.payload_digest not in payloads:
        return None
    try:
        computed = digest(canonical(payloads[event.payload_digest]))
    except DocumentError as error:
        return f"payload_mismatch_at_{place}", str(error)
    if computed != event.payload_digest:
        return f"payload_mismatch_at_{place}", f"the stored payload gives {computed}"
    return None


def _wrong_transition(
    event: MissionEvent, place: int, state: str, roles: Mapping[str, str] | None
) -> _Wrong | None:
    step = event.transition
    if (step is None) != (event.type != "state_changed"):
        return f"illegal_transition_at_{place}", f"{event.type} {'with' if step else 'without'} a transition"
    if step is None:
        return None
    # An actor whose role is not known has none, and leads nowhere.
    role = None if roles is None else roles.get(event.actor, "")
    if step.from_ != state or not may_follow(step.from_, step.to, role):
        who = "" if role is None else f" by {event.actor!a} as {role or 'nobody'}"
        return f"illegal_transition_at_{place}", f"{step.from_} to {step.to}{who}; the Mission was {state}"
    return None


def _signed_body(checkpoint: object) -> dict[str, Any]:
    """What the sequencer and each witness sign: the checkpoint as it was before anyone countersigned."""
    assert isinstance(checkpoint, Mapping)  # it was read as a Checkpoint
    return {name: value for name, value in checkpoint.items() if name not in ("signature", "witnesses")}


def _judged(
    body: Mapping[str, Any],
    signature: Mapping[str, Any],
    at: str,
    actor: str,
    keys: KeyRing,
    *,
    first_seen: datetime | None,
) -> tuple[str, Verdict]:
    """`ok`, or why `signature` is not `actor`'s under a checkpoint; and the verdict on the signature itself.

    In the seed's form a checkpoint's signature need not repeat the time that stands beside it. Such a one is
    judged by that time, and in the seed's form alone.
    """
    timed = "signedAt" in signature
    verdict = verify_document(
        {**body, "signature": signature if timed else {**signature, "signedAt": at}},
        keys,
        kind=CHECKPOINT_KIND,
        first_seen=first_seen,
    )
    if not verdict.ok:
        return verdict.reason, verdict
    if not timed and verdict.form != "hash":
        return "unsigned_time", verdict
    signer = _signer(signature, keys)
    return "ok" if signer is not None and signer.actor == actor else "other_signer", verdict


def _signer(signature: Mapping[str, Any] | None, keys: KeyRing) -> KeyRecord | None:
    kid = None if signature is None else signature.get("kid")
    return keys.get(kid) if isinstance(kid, str) else None


def _encoded(record: KeyRecord | None) -> bytes | None:
    """The key itself; None for a record that holds none, with which nothing verifies."""
    try:
        return None if record is None else encoded(record)
    except ValueError:
        return None


def _no(reason: str, detail: str) -> LedgerVerdict:
    return LedgerVerdict(False, reason, detail)
