"""Logging of a hub: standard library logging to stderr, with every secret blotted out at the last step."""

import logging
import re
import sys
from typing import Final, TextIO

BLOT: Final = "[redacted]"

_NAMED = re.compile(
    r"""(?ix)
    (\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}
    | (["']?\b\w*(?:token|password|secret)["']?\s*[:=]\s*["']?)[^\s"',;&)}\]]{8,}
    """
)
# What Ids.secret() draws: 256 bits in base64url. A public Ed25519 key looks the same and is blotted out too.
_BARE = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])")


def redact(text: str) -> str:
    """`text` without bearer tokens, passwords and anything of the shape of our secrets."""
    return _BARE.sub(BLOT, _NAMED.sub(lambda match: f"{match[1] or match[2]}{BLOT}", text))


class RedactingFormatter(logging.Formatter):
    """Formats a record and then redacts the whole of it: message, arguments, traceback."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def set_up(level: str, stream: TextIO | None = None) -> None:
    """Send the log of this process to `stream` (stderr unless told), from `level` on.

    Called again it replaces what it set up before.
    """
    output = logging.StreamHandler(stream or sys.stderr)
    output.setFormatter(RedactingFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger()
    for old in [known for known in root.handlers if isinstance(known.formatter, RedactingFormatter)]:
        root.removeHandler(old)
    root.addHandler(output)
    root.setLevel(level.upper())
    # These tell of every request and packet at levels meant for their own authors.
    for talkative in ("httpx", "httpcore", "amqtt", "transitions", "aiosqlite"):
        logging.getLogger(talkative).setLevel(max(logging.WARNING, root.level))
