"""`aboyeur init`: make a hub."""

import click

from hub.cli.errors import REFUSED, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import actor_id, as_json
from hub.cli.tables import print_json, print_line


@click.command("init", short_help="Make a hub and its first owner.")
@click.option("--owner", required=True, metavar="PERSON", help="Who owns the hub, e.g. person:anna.")
@click.option("--kitchen", metavar="NAME", help="Name of the kitchen.  [default: home]")
@as_json
@click.pass_obj
def command(invocation: Invocation, *, owner: str, kitchen: str | None, as_json: bool) -> None:
    """Make a hub: its data folder, its settings, and its first owner with a key and a token.

    Needs no running hub. The owner's token and key are kept in the data folder, readable by you alone.

    \b
    Example:
      aboyeur init --owner person:anna
    """
    from config.paths import write_private
    from config.settings import starting_file
    from events.seams import SystemClock, SystemIds
    from hub import enrol
    from hub.keyfiles import KeyFileError
    from hub.store.database import FolderInUse, StoreFailed, StoreUnusable

    folder = invocation.folder
    if folder.database.exists() and not folder.settings.exists():
        raise CommandError(
            f"{folder.root} holds a store without settings: an unfinished init, or a backup without secrets; "
            "use another folder with --data",
            REFUSED,
        )
    owner = actor_id(owner)
    if folder.settings.exists():
        raise CommandError(f"there is a hub in {folder.root} already; start it with: aboyeur serve", REFUSED)
    if kitchen is not None:
        invocation = invocation.with_kitchen(kitchen)
    settings = invocation.settings()
    try:
        folder.make()
    except OSError as error:
        raise CommandError(f"{folder.root} cannot be made: {error.strerror}", REFUSED) from None
    try:
        enrolled = enrol.create(settings.data, settings, owner, SystemClock(), SystemIds())
        write_private(folder.token(owner), enrolled.token.encode() + b"\n")
        # Last, because its being there is what says that this is a hub.
        write_private(folder.settings, starting_file(settings).encode())
    except (enrol.NotAPerson, FolderInUse, StoreUnusable, StoreFailed, KeyFileError, OSError) as error:
        raise CommandError(f"no hub was made: {error}", REFUSED) from None
    if as_json:
        print_json(
            {
                "data": str(folder.root),
                "kitchen": settings.kitchen,
                "owner": owner,
                "settings": str(folder.settings),
                "tokenFile": str(folder.token(owner)),
                "keyFile": str(enrolled.key_path),
            }
        )
        return
    print_line(
        f"Made the hub of the kitchen {settings.kitchen} in {folder.root}\n"
        f"  settings  {folder.settings}\n"
        f"  owner     {owner}\n"
        f"  token     {folder.token(owner)}\n"
        f"  key       {enrolled.key_path}\n"
        "Next: aboyeur serve"
    )
