"""Is this the device's own log of this attempt? (DESIGN §8; Core §5, §8). Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from adapters.documents import ExecutionLog
from events.documents import DocumentError, from_plain, parse
from events.versions import other_version
from mandates.documents import KeyRecord
from mandates.keys import DuplicateKid, KeyRing
from mandates.signature import verify_document


@dataclass(frozen=True, slots=True)
class JudgedLog:
    """A log and the verdict on it.

    Attributes:
        reason: `ok`, a signature's verdict, or `unreadable`, `unsupported_version`, `no_pinned_key`,
            `seen_after_revocation`, `other_recipe`, `other_execution`.
        document: the log's text, byte for byte; `None` where it is not even text.
        outcome: what the log says came of it, where it can be read.
        signed_at_unprotected: whether anyone could have written another `signedAt` beside the signature.
    """

    reason: str
    document: str | None
    outcome: str | None
    signed_at_unprotected: bool = False


def judge_log(
    raw: bytes,
    *,
    keys: Iterable[KeyRecord],
    recipe_hash: str,
    request: str,
    device_execution: str,
    first_seen: datetime,
) -> JudgedLog:
    """Judge `raw` as the log of one attempt.

    Args:
        keys: the keys pinned when the device was registered.
        recipe_hash: what was to be cooked.
        request: the id of the ExecuteRequest that the device got.
        device_execution: the device's own id of the execution.
        first_seen: when the hub got the log (aware): a log that was signed in the hash form and came after
            its key was revoked is no evidence (ruling T3).
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return JudgedLog("unreadable", None, None)
    try:
        plain = parse(raw)
        if other_version(plain) is not None:
            return JudgedLog("unsupported_version", text, None)
        log = from_plain(ExecutionLog, plain)
    except DocumentError:
        return JudgedLog("unreadable", text, None)
    try:
        ring = KeyRing(keys)
    except DuplicateKid:
        return JudgedLog("no_pinned_key", text, log.outcome)
    if not len(ring):
        return JudgedLog("no_pinned_key", text, log.outcome)
    verdict = verify_document(plain, ring, first_seen=first_seen)
    open_time = verdict.signed_at_unprotected
    if not verdict.counts:
        reason = verdict.reason if not verdict.ok else "seen_after_revocation"
        return JudgedLog(reason, text, log.outcome, open_time)
    if log.recipe_hash != recipe_hash:
        return JudgedLog("other_recipe", text, log.outcome, open_time)
    bound = ((log.x_execution, device_execution), (log.x_request, request))
    if any(said is not None and said != expected for said, expected in bound):
        return JudgedLog("other_execution", text, log.outcome, open_time)
    return JudgedLog("ok", text, log.outcome, open_time)
