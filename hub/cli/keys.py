"""`aboyeur keys`: a person's own signing key."""

import click

from hub.cli.errors import REFUSED, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import actor_id
from hub.cli.tables import print_json, print_line


@click.group("keys", short_help="Make and show a person's signing key.")
def command() -> None:
    """A person's own signing key, kept in the data folder. Needs no running hub."""


@command.command("new")
@click.argument("person")
@click.pass_obj
def new(invocation: Invocation, *, person: str) -> None:
    """Draw an Ed25519 key for PERSON. The hub learns its public part with `aboyeur people add`.

    \b
    Example:
      aboyeur keys new person:ben
    """
    from events.seams import SystemClock, SystemIds
    from hub.keyfiles import KeyFileError, make_key

    person = actor_id(person)
    try:
        invocation.folder.make()
        record = make_key(invocation.folder, person, SystemClock(), SystemIds())
    except OSError as error:
        raise CommandError(f"{invocation.folder.root} cannot be made: {error.strerror}", REFUSED) from None
    except KeyFileError as error:
        raise CommandError(str(error), REFUSED) from None
    print_line(
        f"Made the key {record.kid} of {person}: {invocation.folder.key(person)} (only you can read it).\n"
        f"Next: aboyeur people add {person} --keep"
    )


@command.command("show")
@click.argument("person", required=False)
@click.pass_obj
def show(invocation: Invocation, *, person: str | None) -> None:
    """Print the public record (JSON) of PERSON's key; yours when nobody is named. Never the private key.

    \b
    Example:
      aboyeur keys show person:anna > anna.pub.json
    """
    from hub.keyfiles import KeyFileError, read_record

    person = actor_id(person or invocation.whoami())
    try:
        print_json(read_record(invocation.folder, person))
    except KeyFileError as error:
        raise CommandError(f"{error}; make one with: aboyeur keys new {person}", REFUSED) from None
