"""`aboyeur sign`: sign a document with a person's key."""

from pathlib import Path
from typing import Literal

import click

from hub.cli.documents import give, read_document
from hub.cli.errors import REFUSED, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import actor_id


@click.command("sign", short_help="Sign a document with your key.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--as", "person", metavar="PERSON", help="Whose key signs.  [default: yours]")
@click.option(
    "--form",
    type=click.Choice(["header", "hash"]),
    default="header",
    show_default=True,
    help="header protects the time of signing; hash is the older form.",
)
@click.option("--kind", metavar="KIND", help="Kind that the header names.  [default: the document's own]")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it here, not to stdout.")
@click.pass_obj
def command(
    invocation: Invocation,
    *,
    file: Path,
    person: str | None,
    form: Literal["header", "hash"],
    kind: str | None,
    out: Path | None,
) -> None:
    """Print the document in FILE with a signature of yours. Needs no running hub.

    A signature the document had is replaced.

    \b
    Examples:
      aboyeur sign recall.json --out recall.signed.json
      aboyeur sign recall.json --as person:anna --form hash
    """
    from events.documents import DocumentError
    from events.seams import SystemClock
    from hub.keyfiles import KeyFileError, read_key
    from mandates.signature import sign_document

    document = read_document(file)
    person = actor_id(person or invocation.whoami())
    try:
        key = read_key(invocation.folder, person)
        signed = sign_document(document, key, signed_at=SystemClock().wall(), form=form, kind=kind)
    except KeyFileError as error:
        raise CommandError(f"{error}; make one with: aboyeur keys new {person}", REFUSED) from None
    except DocumentError as error:
        raise CommandError(f"{file} cannot be signed: {error}", REFUSED) from None
    give(signed, out)
