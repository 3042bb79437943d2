"""`aboyeur verify`: does a document's signature hold."""

from pathlib import Path

import click

from hub.cli.documents import read_document
from hub.cli.errors import REFUSED
from hub.cli.invocation import Invocation
from hub.cli.options import as_json, key_files
from hub.cli.tables import plain, print_json, print_line


@click.command("verify", short_help="Check the signature of a document.")
@click.argument("file", type=click.Path(path_type=Path))
@key_files
@click.option("--kind", metavar="KIND", help="Kind that the header names.  [default: the document's own]")
@as_json
@click.pass_context
def command(
    context: click.Context, *, file: Path, key_files: tuple[Path, ...], kind: str | None, as_json: bool
) -> None:
    """Say whether the signature of the document in FILE holds, and by whose key. Asks nobody: works offline.

    A signature that holds says who signed, not that he may: that is for the hub that is asked.
    Exit code 1 unless it holds.

    \b
    Examples:
      aboyeur verify recall.json
      aboyeur verify log.json --keys hob.pub.json
    """
    from events.seams import SystemClock
    from hub.cli.known_keys import ago, gather
    from mandates.signature import verify_document

    invocation: Invocation = context.obj
    document = read_document(file)
    known = gather(invocation.folder, key_files, SystemClock().wall())
    verdict = verify_document(document, known.ring, kind=kind)
    signature = document.get("signature")
    kid = signature.get("kid") if isinstance(signature, dict) else None
    record = known.ring.get(kid) if isinstance(kid, str) else None
    origin = known.origins.get(record.kid) if record is not None else None
    if as_json:
        print_json(
            {
                "ok": verdict.ok,
                "reason": verdict.reason,
                "form": verdict.form,
                "caveats": verdict.caveats,
                "detail": verdict.detail,
                "kid": kid,
                "actor": None if record is None else record.actor,
                "keySource": None if origin is None else origin.source,
                "keyAgeS": None if origin is None or origin.age_s is None else round(origin.age_s),
                "remarks": known.remarks,
            }
        )
    else:
        print_line(verdict.reason + (f": {plain(verdict.detail)}" if verdict.detail else ""))
        if verdict.form is not None:
            print_line(f"  form    {verdict.form}")
        if verdict.signed_at_unprotected:
            print_line("  caveat  signedAt_unprotected: anyone could have written another time of signing")
        if record is not None and origin is not None:
            age = "" if origin.age_s is None else f", confirmed {ago(origin.age_s)}"
            print_line(f"  key     {plain(record.kid)} of {plain(record.actor) or 'nobody'}")
            print_line(f"  from    {plain(origin.source)}{age}")
        for remark in known.remarks:
            print_line(f"  note    {plain(remark)}")
    if not verdict.ok:
        context.exit(REFUSED)
