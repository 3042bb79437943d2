"""`aboyeur recipes`: what can be cooked."""

from pathlib import Path
from typing import Any, Final

import click

from hub.cli.errors import REFUSED, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.tables import plain, print_json, print_line, print_table, short_hash

SHORTEST_HASH: Final = 13
"""`sha256:` and six digits."""


@click.group("recipes", short_help="Add and list recipes.")
def command() -> None:
    """The recipes a hub keeps, by id and hash, byte for byte as they came."""


@command.command("add")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@as_json
@click.pass_obj
def add(invocation: Invocation, *, files: tuple[Path, ...], as_json: bool) -> None:
    """Give the hub the recipes in FILES (Cookwala JSON). A refused one does not keep the others out.

    \b
    Example:
      aboyeur recipes add koshari.json lentil-soup.json
    """
    from config.paths import read_at_most
    from events.documents import MAX_DOCUMENT_BYTES
    from hub.cli.client import HubProblem

    added: list[dict[str, Any]] = []
    refused: list[str] = []
    with invocation.hub() as hub:
        for file in files:
            try:
                raw = read_at_most(file, MAX_DOCUMENT_BYTES)
                if len(raw) > MAX_DOCUMENT_BYTES:
                    refused.append(f"{file}: more than {MAX_DOCUMENT_BYTES} bytes")
                    continue
                answer = hub.post("/v1/recipes", raw)
            except OSError as error:
                refused.append(f"{file}: cannot be read: {error.strerror}")
            except HubProblem as problem:
                if problem.exit_code != REFUSED:
                    raise
                refused.append(f"{file}: {problem.words}")
            else:
                added.append({"file": str(file), "id": answer.get("id"), "hash": answer.get("hash")})
    if as_json:
        print_json({"added": added})
    else:
        for recipe in added:
            print_line(f"{plain(recipe['id'])}  {short_hash(recipe['hash'])}  from {recipe['file']}")
    if refused:
        raise CommandError("\n  ".join(["not added:", *refused]), REFUSED)


@command.command("list")
@as_json
@click.pass_obj
def list_recipes(invocation: Invocation, *, as_json: bool) -> None:
    """Show the recipes of this hub.

    \b
    Example:
      aboyeur recipes list
    """
    with invocation.hub() as hub:
        recipes = hub.rows("/v1/recipes", "recipes")
    if as_json:
        print_json({"recipes": recipes})
        return
    print_table(
        ("recipe", "dish", "hash"),
        [(recipe.get("id"), dish(recipe), short_hash(recipe.get("hash"))) for recipe in recipes],
        whole=("hash",),
        empty="No recipes yet. Add some with: aboyeur recipes add FILE...",
    )


def dish(recipe: dict[str, Any]) -> str:
    """The name of a recipe's dish, in English or in whatever language it has one."""
    names = recipe.get("names")
    if not isinstance(names, dict):
        return ""
    return plain(names.get("en") or next(iter(names.values()), ""), 60)


def choose(recipes: list[dict[str, Any]], wanted: str) -> dict[str, Any]:
    """The one recipe that `wanted` names: id, hash, dish, the end of its id, or the beginning of its hash.

    Raises:
        CommandError: none, or several.
    """
    exact = [recipe for recipe in recipes if wanted in (recipe.get("id"), recipe.get("hash"))]
    found = exact or [recipe for recipe in recipes if _could_be(recipe, wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"{plain(one.get('id'))} {short_hash(one.get('hash'))}" for one in found)
        raise CommandError(f"{wanted} names {len(found)} recipes; say which by id or hash: {names}", REFUSED)
    raise CommandError(f"this hub knows no recipe {wanted}; see aboyeur recipes list", REFUSED)


def _could_be(recipe: dict[str, Any], wanted: str) -> bool:
    names = recipe.get("names")
    dishes = {str(name).casefold() for name in names.values()} if isinstance(names, dict) else set()
    return (
        wanted.casefold() in dishes
        or str(recipe.get("id")).endswith(tuple(f"{mark}{wanted}" for mark in "#:/-" if wanted))
        or (len(wanted) >= SHORTEST_HASH and str(recipe.get("hash")).startswith(wanted))
    )
