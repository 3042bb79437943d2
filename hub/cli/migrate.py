"""`aboyeur migrate`: a recipe or capabilities of format 0.1 in format 0.2."""

import difflib
import json
from pathlib import Path
from typing import Any

import click

from hub.cli.documents import read_document
from hub.cli.errors import OK, REFUSED, CommandError
from hub.cli.options import as_json
from hub.cli.tables import plain, print_json, print_line


@click.command("migrate", short_help="Bring a recipe of format 0.1 to 0.2.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--write", is_flag=True, help="Change FILE; what it was is kept beside it as FILE.v01.")
@as_json
@click.pass_context
def command(context: click.Context, *, file: Path, write: bool, as_json: bool) -> None:
    """Show what the recipe or capabilities in FILE would be in format 0.2, and why; nothing is changed.

    °F become °C, relative tolerances of temperatures absolute ones, money decimal strings; unknown members
    get an x- name; hash and signature are dropped. Exit code 1 when the result would still be invalid.

    \b
    Examples:
      aboyeur migrate koshari.json
      aboyeur migrate koshari.json --write
    """
    from safety.migration import MigrationError, migrate

    before = read_document(file)
    try:
        made = migrate(before)
    except MigrationError as error:
        raise CommandError(f"{file}: {error}", REFUSED) from None
    text = _text(made.document)
    problems = _problems(text)
    notes = [{"path": one.path, "change": one.change, "detail": one.detail} for one in made.notes]
    kept = _write(file, text) if write and made.notes else None
    if as_json:
        print_json(
            {
                "file": str(file),
                "notes": notes,
                "problems": problems,
                "document": made.document,
                "written": kept is not None,
            }
        )
    else:
        _say(file, before, text, notes=notes, problems=problems, kept=kept)
    context.exit(REFUSED if problems else OK)


def _say(
    file: Path,
    before: dict[str, Any],
    text: str,
    *,
    notes: list[dict[str, str]],
    problems: list[str],
    kept: Path | None,
) -> None:
    if not notes:
        print_line(f"{file} is of format 0.2 already; nothing to do.")
    else:
        lines = difflib.unified_diff(
            _text(before).splitlines(), text.splitlines(), str(file), f"{file} (0.2)", lineterm="", n=1
        )
        for line in lines:
            # Foreign text: made printable, its indentation kept.
            indent = len(line) - len(line[:1] + line[1:].lstrip())
            print_line(line[:1] + " " * indent + plain(line[1:]))
        print_line("")
        for note in notes:
            print_line(f"{note['change']}: {plain(note['path'])}: {plain(note['detail'])}")
    for problem in problems:
        print_line(f"still invalid: {plain(problem)}")
    if kept is not None:
        print_line(f"Written to {file}; what it was is in {kept}. Hash and sign it anew.")
    elif notes:
        print_line("Nothing was changed; do it with --write.")


def _text(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _problems(text: str) -> list[str]:
    """What is wrong with the result, told as far as what is installed can tell."""
    from events.documents import DocumentError, parse, read
    from hub.document_kinds import KINDS, kind_of
    from hub.validation import ValidatorMissing, validate

    raw = text.encode()
    try:
        return [f"{one.path}: {one.reason}: {one.detail}" for one in validate(raw).problems]
    except ValidatorMissing:
        kind = kind_of(parse(raw))
        try:
            read(KINDS[kind or "Recipe"], raw)
        except DocumentError as error:
            return [str(error)]
    return []


def _write(file: Path, text: str) -> Path:
    """Put `text` in the place of what is in `file`, which is kept beside it.

    Raises:
        CommandError: it cannot be written, or a file of that name is kept already.
    """
    from config.paths import sync_folder

    kept = file.with_name(f"{file.name}.v01")
    part = file.with_name(f".{file.name}.part")
    try:
        # All of it, whatever it became since it was read: it is about to be replaced.
        old, mode = file.read_bytes(), file.stat().st_mode & 0o777
        with kept.open("xb") as backup:
            backup.write(old)
        part.write_text(text, "utf-8")
        part.chmod(mode)
        part.replace(file)
        sync_folder(file.absolute().parent)
    except FileExistsError:
        raise CommandError(f"{kept} exists and is not overwritten; move it away first", REFUSED) from None
    except OSError as error:
        part.unlink(missing_ok=True)
        raise CommandError(f"{file} cannot be written: {error.strerror}", REFUSED) from None
    return kept
