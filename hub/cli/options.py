"""Options and checks that several commands share."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from hub.cli.errors import USAGE, CommandError

as_json: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
key_files: Final = click.option(
    "--keys",
    "key_files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Public keys to check with, before those known here; may be repeated.",
)


def out_file(help_text: str) -> Callable[[Any], Any]:
    """`--out FILE`: a new private file for something that is shown only once."""
    return click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help=help_text)


def actor_id(text: str) -> str:
    """`text` as the id of a person or an agent.

    Raises:
        CommandError: it cannot be one.
    """
    if not re.fullmatch(r"[^\s\x00-\x1f\x7f]{1,200}", text):
        raise CommandError(f"{text!r} is no id; write for example person:anna or agent:planner", USAGE)
    return text
