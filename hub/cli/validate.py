"""`aboyeur validate`: every problem of a document, each with its place."""

from pathlib import Path

import click

from hub.cli.documents import read_file
from hub.cli.errors import REFUSED, CommandError
from hub.cli.options import as_json
from hub.cli.tables import plain, print_json, print_line


@click.command("validate", short_help="Report every problem of documents.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--kind", help="What the FILEs are, e.g. Recipe.  [default: as each says]")
@as_json
@click.pass_context
def command(context: click.Context, *, files: tuple[Path, ...], kind: str | None, as_json: bool) -> None:
    """Validate each FILE: against our schema, as the hub would read it, and a recipe also for what it means:
    references, order, times, targets. Needs no running hub or network.

    Exit code 1 when anything is wrong with one of them.

    \b
    Example:
      aboyeur validate koshari.json
    """
    from hub.document_kinds import KINDS
    from hub.validation import ValidatorMissing, validate

    if kind is not None and kind not in KINDS:
        raise click.BadParameter(f"{kind} is none of {', '.join(KINDS)}", param_hint="--kind")
    reports = []
    for path in files:
        raw = read_file(path)
        try:
            reports.append((path, validate(raw, kind)))
        except ValidatorMissing:
            raise CommandError(
                "validate needs an extra that is not installed: pip install 'aboyeur[validate]'", REFUSED
            ) from None
    if as_json:
        print_json(
            {
                "files": [
                    {"file": str(path), "kind": found.kind, "problems": found.problems}
                    for path, found in reports
                ]
            }
        )
    else:
        for path, found in reports:
            if not found.problems:
                print_line(f"{path}: valid ({found.kind})")
            for problem in found.problems:
                print_line(f"{path}: {plain(problem.path)}: {problem.reason}: {plain(problem.detail)}")
    if any(found.problems for _, found in reports):
        context.exit(REFUSED)
