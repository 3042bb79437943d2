"""`aboyeur keys`: a person's own signing key, and the public keys of others."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hub.cli.errors import REFUSED, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import actor_id, as_json
from hub.cli.tables import escaped, plain, print_json, print_line, print_table

if TYPE_CHECKING:
    from hub.key_cache import KeyCache, Learned
    from mandates.key_sources import Skipped


@click.group("keys", short_help="Make a signing key; learn the keys of others.")
def command() -> None:
    """A person's own signing key, and the public keys of others, in the data folder. Needs no running hub.

    A key that is known here lets a signature be checked. It lets nobody ask for anything: that takes an
    owner who enrols a person.
    """


@command.command("new")
@click.argument("person")
@as_json
@click.pass_obj
def new(invocation: Invocation, *, person: str, as_json: bool) -> None:
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
    if as_json:
        print_json({"record": record, "keyFile": str(invocation.folder.key(person))})
        return
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


@command.command("fetch")
@click.argument("address", metavar="URL|DID")
@as_json
@click.pass_context
def fetch_keys(context: click.Context, *, address: str, as_json: bool) -> None:
    """Learn the public keys that a catalogue, a did:web or a device publishes, or see what changed there.

    What is known stays when the source cannot be asked. A key that would change under its kid is refused
    and named, and the exit code is 1.

    \b
    Examples:
      aboyeur keys fetch https://recipes.example
      aboyeur keys fetch did:web:bakery.example
    """
    import anyio

    from events.seams import SystemClock
    from hub.key_cache import KeyCache, KeyCacheError
    from hub.key_fetch import KeyFetchError, fetch

    invocation: Invocation = context.obj
    cache = KeyCache(invocation.folder.known_keys)
    now = SystemClock().wall()
    try:
        fetched = anyio.run(fetch, address)
    except KeyFetchError as error:
        raise CommandError(f"{error}{_still_known(cache, address, now)}", REFUSED) from None
    try:
        invocation.folder.make()
        learned = cache.learn(fetched.published.records, source=fetched.source, at=now)
    except OSError as error:
        raise CommandError(f"{invocation.folder.root} cannot be made: {error.strerror}", REFUSED) from None
    except KeyCacheError as error:
        raise CommandError(str(error), REFUSED) from None
    if not _said(learned, fetched.source, fetched.published.skipped, as_json):
        context.exit(REFUSED)


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@as_json
@click.pass_context
def import_keys(context: click.Context, *, file: Path, as_json: bool) -> None:
    """Learn the public keys in FILE: a key record, a list of them, or a document that publishes some.

    \b
    Example:
      aboyeur keys import ben.pub.json
    """
    from events.seams import SystemClock
    from hub.cli.known_keys import read_records
    from hub.key_cache import KeyCache, KeyCacheError

    invocation: Invocation = context.obj
    skipped: list[Skipped] = []
    records = read_records(file, skipped)
    try:
        invocation.folder.make()
        learned = KeyCache(invocation.folder.known_keys).learn(
            records, source=escaped(str(file.absolute())), at=SystemClock().wall()
        )
    except OSError as error:
        raise CommandError(f"{invocation.folder.root} cannot be made: {error.strerror}", REFUSED) from None
    except KeyCacheError as error:
        raise CommandError(str(error), REFUSED) from None
    if not _said(learned, str(file), skipped, as_json):
        context.exit(REFUSED)


@command.command("list")
@as_json
@click.pass_obj
def list_keys(invocation: Invocation, *, as_json: bool) -> None:
    """Show the public keys of others that are known here, what they are worth now, and how old that is.

    \b
    Example:
      aboyeur keys list
    """
    from events.seams import SystemClock
    from hub.cli.known_keys import ago
    from hub.key_cache import KeyCache, KeyCacheError
    from mandates.keys import standing

    now = SystemClock().wall()
    try:
        known = KeyCache(invocation.folder.known_keys).read()
    except KeyCacheError as error:
        raise CommandError(str(error), REFUSED) from None
    if as_json:
        print_json(
            {
                "keys": [
                    {
                        "record": key.record,
                        "source": key.source,
                        "fetchedAt": key.fetched_at,
                        "ageS": round(key.age_s(now)),
                        "standing": standing(key.record, now),
                    }
                    for key in known
                ]
            }
        )
        return
    print_table(
        ("key", "of", "now", "confirmed", "from"),
        [
            (key.record.kid, key.record.actor, standing(key.record, now), ago(key.age_s(now)), key.source)
            for key in known
        ],
        whole=("of", "from"),
        empty="No key of others is known. Learn some with: aboyeur keys fetch https://HOST",
    )


@command.command("forget")
@click.argument("kid")
@as_json
@click.pass_obj
def forget(invocation: Invocation, *, kid: str, as_json: bool) -> None:
    """Let go of the key KID, so that another may be learned under that name. Ask its owner first.

    \b
    Example:
      aboyeur keys forget did:web:bakery.example#1
    """
    from hub.key_cache import KeyCache, KeyCacheError

    try:
        there = invocation.folder.known_keys.exists() and KeyCache(invocation.folder.known_keys).forget(kid)
    except KeyCacheError as error:
        raise CommandError(str(error), REFUSED) from None
    if not there:
        raise CommandError(f"no key {kid} is known here; see aboyeur keys list", REFUSED)
    if as_json:
        print_json({"forgot": kid})
    else:
        print_line(f"Forgot {plain(kid)}.")


def _still_known(cache: "KeyCache", address: str, now: datetime) -> str:
    """What stays known of a source that could not be asked, as the end of a sentence."""
    from hub.cli.known_keys import ago
    from hub.key_cache import KeyCacheError
    from hub.key_fetch import KeyFetchError, where

    try:
        source = where(address)[0]
        ages = [key.age_s(now) for key in cache.read() if key.source == source]
    except (KeyFetchError, KeyCacheError):
        return ""
    return f"; {len(ages)} known from it stay, last confirmed {ago(min(ages))}" if ages else ""


def _said(learned: "Learned", source: str, skipped: Sequence["Skipped"], as_json: bool) -> bool:
    """Say what was learned from `source`; whether nothing was refused or left out."""
    out = (*learned.refused, *skipped)
    if as_json:
        print_json(
            {
                "source": source,
                "new": learned.added,
                "changed": learned.changed,
                "confirmed": learned.confirmed,
                "noLongerNamed": learned.absent,
                "refused": [{"kid": one.kid, "why": one.why} for one in out],
            }
        )
        return not out
    for word, kids in (
        ("new", learned.added),
        ("changed", learned.changed),
        ("confirmed", learned.confirmed),
        ("no longer named", learned.absent),
    ):
        for kid in kids:
            print_line(f"{word}: {plain(kid)}")
    for one in out:
        print_line(f"refused: {plain(one.kid) or 'an entry'}: {plain(one.why)}")
    if not (learned.added or learned.changed or learned.confirmed or out):
        print_line(f"Nothing new in {plain(source)}.")
    return not out
