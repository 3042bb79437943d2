"""The pages of this project as a reader meets them: blocks, commands, links."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = frozenset({"sh", "console"})

_FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<body>.*?)^(?P=indent)```$", re.M | re.S)
_INLINE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ASSIGNMENT = re.compile(r"[A-Z_]+=.*")


@dataclass(frozen=True)
class Block:
    """A fenced block: what it is of, and its text without the page's indentation."""

    page: Path
    kind: str
    text: str

    def lines(self) -> list[str]:
        """Its commands, continued lines joined, prompts and comments left out."""
        joined = self.text.replace("\\\n", " ")
        found = (line.strip().removeprefix("$ ") for line in joined.splitlines())
        return [line for line in found if line and not line.startswith("#")]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page in order."""
    found = []
    for match in _FENCE.finditer(page.read_text()):
        indent = match["indent"]
        text = "".join(line.removeprefix(indent) for line in match["body"].splitlines(keepends=True))
        found.append(Block(page, match["kind"], text))
    return found


def section(page: Path, title: str) -> list[Block]:
    """The blocks of one `##` section of a page."""
    text = page.read_text().split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    return [block for block in blocks(page) if block.text.strip() and _is_in(block.text, text)]


def _is_in(block: str, text: str) -> bool:
    flat = "\n".join(line.strip() for line in text.splitlines())
    return "\n".join(line.strip() for line in block.strip().splitlines()) in flat


def inline(page: Path) -> list[str]:
    """What stands between single backticks, each in one line."""
    prose = _FENCE.sub("", page.read_text())
    return [" ".join(found.split()) for found in _INLINE.findall(prose)]


def links(page: Path) -> list[str]:
    """Where a page points to."""
    return _LINK.findall(_FENCE.sub("", page.read_text()))


def words_of(line: str) -> list[str]:
    """A command line as words: without `sudo`, without variables set before it, the program by its name."""
    words = shlex.split(line)
    while words:
        if words[0] == "sudo":
            words = words[1:]
            if words[:1] == ["-u"]:
                words = words[2:]
        elif _ASSIGNMENT.fullmatch(words[0]):
            words = words[1:]
        else:
            return [Path(words[0]).name, *words[1:]]
    return words
