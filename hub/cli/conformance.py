"""`aboyeur conformance`: run public vectors against this program."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hub.cli.errors import REFUSED, USAGE, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import actor_id, as_json
from hub.cli.tables import plain, print_json, print_line

if TYPE_CHECKING:
    from hub.conformance.runner import SuiteResult


@click.command("conformance", short_help="Run conformance vectors against this program.")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a signed ConformanceReport here.",
)
@click.option("--as", "person", metavar="PERSON", help="Whose key signs the report.  [default: yours]")
@as_json
@click.pass_context
def command(
    context: click.Context, *, folder: Path, report: Path | None, person: str | None, as_json: bool
) -> None:
    """Run every vector file in FOLDER and below it, and say what was expected and what came out.

    Vectors of a kind that this program does not run yet are named, and count as failed. Exit code 1 unless
    every vector passed. A report names its class, and claims it only if every vector passed.

    \b
    Examples:
      aboyeur conformance vectors/
      aboyeur conformance vectors/ --report report.json --as person:anna
    """
    from hub.conformance.runner import run
    from hub.conformance.vectors import FolderError, read_folder

    if report is not None and report.exists():
        raise CommandError(f"{report} exists and is not overwritten; name another file", USAGE)
    try:
        results = run(read_folder(folder))
    except FolderError as error:
        raise CommandError(str(error), REFUSED) from None
    passed = all(result.ok for result in results)
    if as_json:
        print_json({"ok": passed, "suites": [_told(result) for result in results]})
    else:
        _print(results)
    if report is not None:
        _report(context.obj, results, report, person, quiet=as_json)
    if not passed:
        context.exit(REFUSED)


def _told(result: "SuiteResult") -> dict[str, Any]:
    return {
        "suite": result.suite.name,
        "total": result.total,
        "passed": result.passed,
        "notRun": result.not_run,
        "failures": [
            {"vector": one.vector, "expected": one.expected, "got": one.got, "why": one.why}
            for one in result.failures
        ],
    }


def _print(results: Sequence["SuiteResult"]) -> None:
    width = max(len(result.suite.name) for result in results)
    for result in results:
        later = f"  (not yet run: {', '.join(result.not_run)})" if result.not_run else ""
        print_line(f"{result.suite.name.ljust(width)}  {result.passed}/{result.total}{later}")
        for failure in result.failures:
            if failure.vector:
                print_line(f"  {failure.vector}")
                print_line(f"    expected  {_shown(failure.expected)}")
            print_line(f"    got       {plain(failure.why) if failure.why else _shown(failure.got)}")


def _shown(value: Any) -> str:
    import msgspec

    return plain(msgspec.json.encode(value, order="sorted").decode())


def _report(
    invocation: Invocation, results: Sequence["SuiteResult"], path: Path, person: str | None, *, quiet: bool
) -> None:
    import importlib.metadata

    from events.documents import DocumentError
    from events.seams import SystemClock, SystemIds
    from hub.cli.documents import write_new
    from hub.conformance.report import Product, make_report
    from hub.keyfiles import KeyFileError, read_key

    person = actor_id(person or invocation.whoami())
    try:
        made = make_report(
            results,
            report_id=SystemIds().new("report"),
            product=Product("Aboyeur", importlib.metadata.version("aboyeur")),
            key=read_key(invocation.folder, person),
            now=SystemClock().wall(),
        )
    except KeyFileError as error:
        raise CommandError(f"{error}; make one with: aboyeur keys new {person}", REFUSED) from None
    except DocumentError as error:
        raise CommandError(f"no report can be made of these vectors: {error}", REFUSED) from None
    write_new(made, path)
    if not quiet:
        claim = made.get("claim")
        print_line(
            f"Wrote {path}: it claims the class {claim}."
            if claim
            else f"Wrote {path}: it is on the class {made['x-aboyeur-class']} and claims nothing."
        )
