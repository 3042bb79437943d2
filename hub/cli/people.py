"""`aboyeur people`: who belongs to the household."""

from pathlib import Path

import click

from hub.cli.errors import USAGE, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import actor_id, as_json, out_file
from hub.cli.tables import plain, print_json, print_line, print_table


@click.group("people", short_help="Add, list, remove people of the household.")
def command() -> None:
    """Who belongs to the household, and may therefore ask, resume and sign mandates."""


@command.command("add")
@click.argument("person")
@click.option("--role", type=click.Choice(["person", "owner"]), default="person", show_default=True)
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Public key record (JSON) to enrol.  [default: the one of `aboyeur keys new`, if any]",
)
@click.option("--keep", is_flag=True, help="Keep the token in the data folder: the person uses this machine.")
@out_file("Write the token here instead of printing it.")
@as_json
@click.pass_obj
def add(
    invocation: Invocation,
    *,
    person: str,
    role: str,
    key: Path | None,
    keep: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Enrol PERSON and get the token, which is shown once. Only an owner may.

    Without a key the person can ask, resume and stop, but sign no mandates.

    \b
    Examples:
      aboyeur keys new person:ben
      aboyeur people add person:ben --keep
      aboyeur people add person:guest --out guest.token
    """
    from hub.cli.client import text
    from hub.cli.once import check_place, hand_over

    person = actor_id(person)
    if keep and out is not None:
        raise CommandError("choose one of --keep and --out", USAGE)
    place = invocation.folder.token(person) if keep else out
    if keep and not invocation.folder.secrets.is_dir():
        invocation.existing()
    check_place(place)
    body: dict[str, object] = {"id": person, "role": role}
    record = _record(invocation, person, key)
    if record is not None:
        body["publicKey"] = record
    with invocation.hub() as hub:
        answer = hub.post("/v1/people", body)
    token = text(answer, "token")
    if place is not None or not as_json:
        hand_over(token, place, f"the token of {person}", quiet=as_json)
    if as_json:
        given = {"token": token} if place is None else {"tokenFile": str(place)}
        print_json({"id": person, "role": role, **given})


def _record(invocation: Invocation, person: str, key: Path | None) -> object:
    from config.paths import read_at_most
    from events.documents import MAX_DOCUMENT_BYTES, DocumentError, read
    from mandates.documents import KeyRecord

    path = key or invocation.folder.public_key(person)
    if key is None and not path.exists():
        return None
    try:
        record = read(KeyRecord, read_at_most(path, MAX_DOCUMENT_BYTES))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", USAGE) from None
    except DocumentError as error:
        raise CommandError(f"{path} is no key record: {error}", USAGE) from None
    if record.actor != person:
        raise CommandError(f"{path} is the key of {record.actor}, not of {person}", USAGE)
    return record


@command.command("list")
@as_json
@click.pass_obj
def list_people(invocation: Invocation, *, as_json: bool) -> None:
    """Show who is enrolled, and in which role.

    \b
    Example:
      aboyeur people list
    """
    with invocation.hub() as hub:
        people = hub.rows("/v1/people", "people")
    if as_json:
        print_json({"people": people})
        return
    print_table(
        ("person", "role", "keys"),
        [(person.get("id"), person.get("role"), _kids(person.get("keys")) or "-") for person in people],
        empty="Nobody is enrolled. Add somebody with: aboyeur people add person:NAME",
    )


def _kids(keys: object) -> str:
    return ", ".join(map(plain, keys)) if isinstance(keys, list) else ""


@command.command("remove")
@click.argument("person")
@as_json
@click.pass_obj
def remove(invocation: Invocation, *, person: str, as_json: bool) -> None:
    """Let PERSON's token and mandates open nothing any more. Only an owner may.

    \b
    Example:
      aboyeur people remove person:guest
    """
    from hub.cli.client import segment

    with invocation.hub() as hub:
        hub.delete(f"/v1/people/{segment(person)}")
    # It opens nothing any more, and would make the verbs ask who of two persons is asking.
    invocation.folder.token(person).unlink(missing_ok=True)
    if as_json:
        print_json({"removed": person})
    else:
        print_line(f"Removed {plain(person)}.")
