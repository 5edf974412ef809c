"""The code blocks of README and docs/, read from the pages, so that tests run what a reader would type.

A page names its test in a comment, `<!-- run by tests/docs/test_observe.py -->`; a block that no test can run has
a comment above it that says why: `<!-- not run: needs systemd -->`; under the title it is for the whole page.

with page("docs/how-to/observe.md") as blocks:      fails at its end when a block of the page was not taken
    blocks.take("Logs")                             the next block of that section
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN_BY = re.compile(r"<!-- run by (\S+\.py) -->")
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>.+?) -->")
FENCE = re.compile(r"^ *```(?P<language>[\w-]*)")
SHOWN = {"", "text", "json", "mermaid"}  # nothing that a reader would run


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    section: str
    line: int
    not_run: str = ""  # why

    def with_(self, changes: dict[str, str]) -> str:
        """The text with other names, all of which it has."""
        text = self.text
        for old, new in changes.items():
            assert old in text, f"line {self.line}: there is no {old!r}"
            text = text.replace(old, new)
        return text


@dataclass
class Blocks:
    """Those of one page that are to be run, in their order."""

    left: list[Block]
    taken: list[Block] = field(default_factory=list)

    def take(self, section: str) -> Block:
        for block in self.left:
            if block.section == section:
                self.left.remove(block)
                self.taken.append(block)
                return block
        raise AssertionError(f"no block is left in the section {section!r}: {self.left}")


def pages() -> list[str]:
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(file.relative_to(ROOT)) for file in files]


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def tests_of(path: str) -> list[str]:
    return RUN_BY.findall(re.sub(r"^```.*?^```$", "", text_of(path), flags=re.M | re.DOTALL))


def blocks(path: str) -> Iterator[Block]:
    section, begun, reason, lines = "", None, "", []
    of_page = NOT_RUN.search("\n".join(text_of(path).splitlines()[1:2]))
    for number, line in enumerate(text_of(path).splitlines(), 1):
        fence = FENCE.match(line)
        if begun is not None and line.strip() == "```":
            yield Block(
                begun["language"],
                "\n".join(lines) + "\n",
                section,
                number,
                reason or (of_page["reason"] if of_page else ""),
            )
            begun, reason = None, ""
        elif begun is not None:
            lines.append(line)
        elif fence:
            begun, lines = fence, []
        elif line.startswith("#"):
            section = line.lstrip("# ")
        elif line.strip():
            marked = NOT_RUN.search(line)
            reason = marked["reason"] if marked else ""
    assert begun is None, f"{path}: a block is not closed"


def to_run(path: str) -> list[Block]:
    return [each for each in blocks(path) if each.language not in SHOWN and not each.not_run]


@contextlib.contextmanager
def page(path: str, *, language: str | None = None) -> Iterator[Blocks]:
    """Those of one language alone, where another test runs the others."""
    found = Blocks([each for each in to_run(path) if language in {None, each.language}])
    yield found
    left = [f"line {each.line} ({each.language}, {each.section})" for each in found.left]
    assert not left, f"{path}: the test did not run {', '.join(left)}"
