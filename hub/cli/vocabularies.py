"""`--vocabulary FILE`: other operations than those that come with this program (ruling D4)."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hub.cli.errors import REFUSED, USAGE, CommandError

if TYPE_CHECKING:
    from safety.vocabulary import Vocabulary

vocabulary_file: Final = click.option(
    "--vocabulary",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Other operations than those that come with this program.",
)


def chosen_vocabulary(path: Path | None) -> "Vocabulary":
    """The vocabulary in `path`, or our own where none is named.

    Raises:
        CommandError: the file cannot be read, or holds no vocabulary.
    """
    from events.documents import DocumentError
    from hub.vocabularies import read_vocabulary

    try:
        return read_vocabulary(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", USAGE) from None
    except DocumentError as error:
        raise CommandError(f"{path} is no vocabulary: {error}", REFUSED) from None
