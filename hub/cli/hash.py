"""`aboyeur hash`: the hash of documents."""

from pathlib import Path

import click

from hub.cli.documents import read_document
from hub.cli.errors import REFUSED
from hub.cli.options import as_json
from hub.cli.tables import print_json, print_line


@click.command("hash", short_help="Print the hash of documents.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@as_json
@click.pass_context
def command(context: click.Context, *, files: tuple[Path, ...], as_json: bool) -> None:
    """Print sha256 over the canonical JSON of each FILE, without its hash and signature.

    Exit code 1 when a document states a hash that is not its own.

    \b
    Example:
      aboyeur hash koshari.json
    """
    from events.canonical import document_hash
    from events.documents import DocumentError
    from hub.cli.errors import CommandError

    rows = []
    for path in files:
        document = read_document(path)
        try:
            found = document_hash(document)
        except DocumentError as error:
            raise CommandError(f"{path} has no canonical JSON: {error}", REFUSED) from None
        stated = document.get("hash")
        rows.append({"file": str(path), "hash": found, "stated": stated, "fits": stated in (None, found)})
    if as_json:
        print_json({"files": rows})
    else:
        for row in rows:
            print_line(f"{row['hash']}  {row['file']}")
            if not row["fits"]:
                click.echo(f"aboyeur: {row['file']} states another hash", err=True)
    if not all(row["fits"] for row in rows):
        context.exit(REFUSED)
