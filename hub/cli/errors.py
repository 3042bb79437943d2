"""How a command ends: exit codes, and the one exception that carries words for a person."""

from typing import Final

OK: Final = 0
REFUSED: Final = 1
"""The answer is no: refused, invalid, not found."""
USAGE: Final = 2
UNREACHABLE: Final = 3
UNAUTHORIZED: Final = 4
INTERNAL: Final = 70
INTERRUPTED: Final = 130


class CommandError(Exception):
    """A command ends here: `words` for the person who typed it, `exit_code` for the script that did."""

    def __init__(self, words: str, exit_code: int = REFUSED) -> None:
        super().__init__(words)
        self.words = words
        self.exit_code = exit_code
