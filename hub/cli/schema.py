"""`aboyeur schema`: our JSON Schema of every document."""

import sys
from pathlib import Path

import click

from hub.cli.documents import write_new_bytes


@click.group("schema", short_help="Write our JSON Schema of every document.")
def command() -> None:
    """The JSON Schema (2020-12) of every document, for devices to validate offline. Needs no running hub."""


@command.command("bundle")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write this new file, not stdout."
)
def bundle(*, out: Path | None) -> None:
    """Print the one file that holds the schemas of all documents; nothing in it has to be fetched.

    \b
    Example:
      aboyeur schema bundle --out cookwala.schema.json
    """
    from hub.cli.tables import print_line
    from hub.schema_bundle import bundle_bytes

    raw = bundle_bytes()
    if out is None:
        sys.stdout.write(raw.decode())
        sys.stdout.flush()
        return
    write_new_bytes(raw, out)
    print_line(f"Wrote {out}.")
