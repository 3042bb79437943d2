"""`aboyeur disclose`: conceal single values of a document, and show them to whom you like."""

from pathlib import Path
from typing import Any

import click

from hub.cli.documents import give, read_document
from hub.cli.errors import REFUSED, USAGE, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import as_json, key_files
from hub.cli.tables import plain, print_json, print_line

_OUT = click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it here, not to stdout."
)


@click.group("disclose", short_help="Conceal and reveal single values of a document.")
def command() -> None:
    """Put digests in the place of sensitive values, sign, and reveal each value to whom you choose.

    The signature holds for every choice of what is revealed.
    """


@command.command("make")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--path",
    "paths",
    multiple=True,
    required=True,
    metavar="PATH",
    help="What to conceal, e.g. /guests/0/diet; may be repeated.",
)
@click.option(
    "--openings",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep the salts and values here; only you can read it.",
)
@_OUT
def make(*, file: Path, paths: tuple[str, ...], openings: Path, out: Path | None) -> None:
    """Print the unsigned document in FILE with digests in the place of the values at PATH.

    The openings are needed to reveal them; nobody can make them again. Sign the result afterwards.

    \b
    Example:
      aboyeur disclose make order.json --path /guests/0/diet \\
        --openings order.openings.json --out order.closed.json
    """
    import msgspec

    from config.paths import write_private
    from events.documents import DocumentError
    from events.seams import SystemIds
    from hub.cli.once import check_place
    from mandates.disclosure import DisclosureError, conceal

    check_place(openings)
    check_place(out)
    try:
        made = conceal(read_document(file), paths, SystemIds())
    except (DisclosureError, DocumentError) as error:
        raise CommandError(f"{file}: {error}", REFUSED) from None
    kept = {
        "disclosures": [
            {"path": one.path, "digest": one.digest, "salt": one.salt, "value": one.value}
            for one in made.openings
        ]
    }
    try:
        # First: a document whose openings were lost could never be revealed.
        write_private(openings, msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n")
    except OSError as error:
        raise CommandError(f"{openings} cannot be written: {error.strerror}", USAGE) from None
    give(made.document, out)


@command.command("reveal")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--openings", required=True, type=click.Path(path_type=Path), help="The file that `make` wrote."
)
@click.option(
    "--path", "paths", multiple=True, required=True, metavar="PATH", help="What to reveal; may be repeated."
)
@_OUT
def reveal(*, file: Path, openings: Path, paths: tuple[str, ...], out: Path | None) -> None:
    """Print a copy of the document in FILE that reveals the values at PATH and no others.

    \b
    Example:
      aboyeur disclose reveal order.signed.json \\
        --openings order.openings.json --path /guests/0/diet
    """
    from mandates.disclosure import DisclosureError
    from mandates.disclosure import reveal as revealed

    document = read_document(file)
    kept = {one.path: one for one in _openings(openings)}
    missing = [path for path in paths if path not in kept]
    if missing:
        raise CommandError(f"{openings} opens no {missing[0]}; it opens {', '.join(kept)}", USAGE)
    try:
        shown = revealed(document, [kept[path] for path in dict.fromkeys(paths)])
    except DisclosureError as error:
        raise CommandError(f"{file}: {error}", REFUSED) from None
    give(shown, out)


def _openings(path: Path) -> list[Any]:
    from mandates.disclosure import Opening

    entries = read_document(path).get("disclosures")
    names = ("path", "digest", "salt", "value")
    if not isinstance(entries, list) or not all(
        isinstance(one, dict)
        and all(name in one for name in names)
        and all(isinstance(one[name], str) for name in names[:3])
        for one in entries
    ):
        raise CommandError(f"{path} holds no openings of `aboyeur disclose make`", REFUSED)
    return [Opening(*(one[name] for name in names)) for one in entries]


@command.command("verify")
@click.argument("file", type=click.Path(path_type=Path))
@key_files
@as_json
@click.pass_context
def verify(context: click.Context, *, file: Path, key_files: tuple[Path, ...], as_json: bool) -> None:
    """Say whether every value revealed in FILE is what was signed, and whether the signature holds.

    Exit code 1 unless all of it does.

    \b
    Example:
      aboyeur disclose verify order.shown.json
    """
    from events.seams import SystemClock
    from hub.cli.known_keys import gather
    from mandates.disclosure import disclosures, signed_form
    from mandates.signature import verify_document

    invocation: Invocation = context.obj
    document = read_document(file)
    known = gather(invocation.folder, key_files, SystemClock().wall())
    found = disclosures(document)
    verdict = verify_document(signed_form(document), known.ring)
    ok = verdict.ok and all(one.ok for one in found)
    if as_json:
        print_json(
            {
                "ok": ok,
                "signature": {"reason": verdict.reason, "form": verdict.form, "caveats": verdict.caveats},
                "disclosures": [
                    {"path": one.path, "revealed": one.opened, "reason": one.reason} for one in found
                ],
            }
        )
    else:
        print_line(f"signature  {verdict.reason}" + (f": {plain(verdict.detail)}" if verdict.detail else ""))
        for one in found:
            state = one.reason if one.opened or not one.ok else "concealed"
            print_line(f"{plain(one.path)}  {state}")
        if not found:
            print_line("Nothing in it is concealed.")
    if not ok:
        context.exit(REFUSED)
