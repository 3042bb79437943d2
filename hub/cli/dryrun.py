"""`aboyeur dryrun`: could this appliance cook this recipe? Nothing runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hub.cli.documents import read_document
from hub.cli.errors import REFUSED, USAGE, CommandError
from hub.cli.options import as_json
from hub.cli.tables import plain, print_json, print_line, print_table
from hub.cli.vocabularies import chosen_vocabulary, vocabulary_file

if TYPE_CHECKING:
    from safety.dryrun import DryRun

T = TypeVar("T")

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("dryrun", short_help="Say whether an appliance could cook a recipe.")
@click.argument("recipe", type=_FILE)
@click.argument("device", type=_FILE)
@click.option("--nobody", is_flag=True, help="Nobody is there.  [default: a person is]")
@click.option("--no-model", is_flag=True, help="The appliance may not verify a step by an estimate.")
@click.option("--altitude", "altitude_m", type=float, default=0.0, metavar="M", help="Height of the kitchen.")
@click.option("--limits", "packs", type=_FILE, multiple=True, help="A pack of limits; all of them hold.")
@vocabulary_file
@as_json
@click.pass_context
def command(
    context: click.Context,
    *,
    recipe: Path,
    device: Path,
    nobody: bool,
    no_model: bool,
    altitude_m: float,
    packs: tuple[Path, ...],
    vocabulary: Path | None,
    as_json: bool,
) -> None:
    """Plan the recipe in the file RECIPE on the appliance whose capabilities stand in the file DEVICE.

    Advice: the appliance makes its own dry run, and its answer is the one that counts. Exit code 1 when the
    answer is no.

    \b
    Examples:
      aboyeur dryrun koshari.json hob.json
      aboyeur dryrun koshari.json hob.json --nobody --altitude 650
      aboyeur dryrun koshari.json hob.json --limits maker.json --limits house.json
    """
    from events.seams import SystemClock
    from safety.advice.limits import merge
    from safety.device_documents import Capabilities, SafetyLimits
    from safety.documents import Recipe
    from safety.dryrun import dry_run

    read_packs = [_read(SafetyLimits, path) for path in packs]
    limits = merge(read_packs, pack_id="all", version="0.1.0", disclaimer="") if packs else None
    known = chosen_vocabulary(vocabulary)
    asked, able = _read(Recipe, recipe), _read(Capabilities, device)
    try:
        answer = dry_run(
            asked,
            able,
            known,
            human_present=not nobody,
            allow_model=not no_model,
            limits=limits,
            now=SystemClock().wall(),
            altitude_m=altitude_m,
        )
    except ValueError as error:
        raise CommandError(str(error), USAGE) from None
    if as_json:
        print_json(_told(answer))
    else:
        _print(answer)
    if answer.refusal is not None:
        context.exit(REFUSED)


def _read(kind: type[T], path: Path) -> T:
    from events.documents import DocumentError, from_plain
    from events.versions import SPOKEN, other_version

    document = read_document(path)
    other = other_version(document)
    if other is not None:
        raise CommandError(f"{path} is of Core {plain(other)}, only {SPOKEN} is read", REFUSED)
    try:
        return from_plain(kind, document)
    except DocumentError as error:
        raise CommandError(f"{path} is no {kind.__name__}: {error}", REFUSED) from None


def _told(answer: "DryRun") -> dict[str, Any]:
    refusal = answer.refusal
    told: dict[str, Any] = {
        "state": answer.state,
        "plan": [
            {
                "node": step.node,
                "op": step.op,
                "by": step.by,
                "verifiedBy": step.verified_by,
                "rung": step.rung,
            }
            for step in answer.plan
        ],
        "warnings": [
            {"kind": warning.kind, "node": warning.node, "detail": warning.detail}
            for warning in answer.warnings
        ],
    }
    if refusal is not None:
        told["refusal"] = {"reason": refusal.reason, "node": refusal.node, "detail": refusal.detail}
    return told


def _print(answer: "DryRun") -> None:
    rows = [(step.node, step.op, step.by, step.verified_by, step.rung) for step in answer.plan]
    print_table(("step", "operation", "by", "verified by", "rung"), rows, empty="Not one step can be done.")
    for warning in answer.warnings:
        print_line(f"note: step {warning.node}: {plain(warning.detail)}")
    if answer.refusal is None:
        print_line("accepted")
    else:
        where = f" at step {answer.refusal.node}" if answer.refusal.node else ""
        print_line(f"refused{where}: {answer.refusal.reason}: {plain(answer.refusal.detail)}")
