"""Which versions of Core are spoken here (Core §2, §9; ruling D1).

A document of Core names its version in `core`. Those of one minor version are understood; of another nothing
is, so it is judged before a document is read strictly.
"""

from typing import Any, Final

SPOKEN: Final = "0.2.x"


def speaks(core: str) -> bool:
    """Whether documents of the version `core` are understood."""
    return core.startswith(SPOKEN[:-1])


def other_version(plain: Any) -> str | None:
    """The version of Core that the document `plain` names, if it is not spoken here; at most 40 characters.

    `None` too where no version is named at all: that is for the strict reader to say.
    """
    core = plain.get("core") if isinstance(plain, dict) else None
    return core[:40] if isinstance(core, str) and not speaks(core) else None
