"""What a command shows: a table for people; documents.py has the forms for scripts."""

import argparse
import json
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TextIO

from muster.core.settings import surroundings

FORMS = ("table", "json", "jsonc", "yaml", "tsv", "csv")
OF_ROWS = (*FORMS, "ndjson")  # of commands that show rows of targets
GAP = 2
NARROWEST = 8  # a column is not cut below this
GREEN, YELLOW, RED, PLAIN = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
COLOURS = {
    "Succeeded": GREEN,
    "SucceededWithSkipped": GREEN,
    "Ready": GREEN,
    "running": YELLOW,
    "WaitingForRetry": YELLOW,
    "Failed": RED,
    "TimedOut": RED,
    "Canceled": RED,
}

RUNNING = {"InProgress", "WaitingForChildJobExecutions"}  # on the wire; people read "running"


class Moment(str):
    """A time in UTC, to the second."""

    __slots__ = ()

    @property
    def beside_local(self) -> str:
        """With the time here in brackets, where that is another."""
        try:
            at = datetime.fromisoformat(self)
        except ValueError:
            return str(self)
        here = at.astimezone()
        if at.tzinfo is None or here.utcoffset() == at.utcoffset():
            return str(self)
        return f"{self} ({here:{'%H:%M' if here.date() == at.date() else '%m-%d %H:%M'}})"


@dataclass(frozen=True)
class Table:
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    optional: Sequence[str] = ()  # left out for people where they have nothing to tell
    hidden: Sequence[str] = ()  # left out for people always
    whole: Sequence[str] = ()  # never cut: what is copied into a shell

    def for_people(self, *, local: bool = True) -> "Table":
        """With `local` each time has the time here beside it."""
        kept = [
            at
            for at, name in enumerate(self.columns)
            if name not in self.hidden
            and (name not in self.optional or any(row[at] for row in self.rows))
        ]
        names = [self.columns[at] for at in kept]
        rows = [
            [_for_people(self.columns[at], row[at], local=local) for at in kept]
            for row in self.rows
        ]
        return Table(names, rows, whole=self.whole)


def show(
    options: argparse.Namespace, document: Any, table: Table, *, notes: Iterable[str] = ()
) -> None:
    """`notes` follow the table, for people only."""
    if not is_for_people(options):
        from muster.cli import documents

        documents.write(options, document, table)
        return
    width, coloured = room(sys.stdout), has_colour(sys.stdout)
    shown = table.for_people()
    if width is not None and sum(_widths(shown)) + GAP * (len(shown.columns) - 1) > width:
        shown = table.for_people(local=False)  # ids and names need the room
    for line in lines(shown, width, coloured=coloured):
        print(line)
    for note in notes:
        print(clean(note))


def is_for_people(options: argparse.Namespace) -> bool:
    """A table as it comes, and whatever explains it."""
    return options.output == "table" and options.query is None


def aside(notes: Iterable[str]) -> None:
    """On stderr, so that stdout stays pure data."""
    for note in notes:
        print(clean(note), file=sys.stderr)


def many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def lines(table: Table, width: int | None, *, coloured: bool = False) -> list[str]:
    """The table in lines no longer than `width`; None: as long as it takes."""
    rows = _texts(table)
    widths = _widths(table)
    if width is not None:
        widths = _fitted(widths, width, [name in table.whole for name in table.columns])
    right = [
        bool(table.rows) and all(_is_number(row[at]) for row in table.rows)
        for at in range(len(widths))
    ]
    rendered = []
    for row in rows:
        cells = [
            _cell(cell, width, right=right[at], last=at == len(row) - 1, coloured=coloured)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        rendered.append((" " * GAP).join(cells).rstrip())
    return rendered


def text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case dict() | list():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def pairs(map: dict[str, str] | None) -> str | None:
    """Labels or tags in one cell."""
    return ", ".join(f"{key}={value}" for key, value in (map or {}).items()) or None


def conditions(item: dict[str, Any]) -> list[str]:
    """What is unusual about a resource, a line each; after a failure, why."""
    properties = item.get("properties") or {}
    notes = [f"{each['type']}: {each['message']}" for each in properties.get("conditions") or ()]
    wrong = properties.get("lastError")
    return [*notes, *([f"{wrong['code']}: {wrong['message']}"] if wrong else [])]


def clean(text: str) -> str:
    """In one line, and nothing in it that a terminal would obey: messages come from strangers."""
    return "".join(
        each if each.isprintable() else " " if each.isspace() else f"\\x{ord(each):02x}"
        for each in text
    )


def measure(text: str) -> int:
    """How many places it takes in a terminal."""
    return sum(_places(each) for each in text)


def cut(text: str, width: int) -> str:
    if measure(text) <= width:
        return text
    kept, used = "", 0
    for each in text:
        used += _places(each)
        if used > width - 1:
            break
        kept += each
    return kept + "…"


def room(stream: TextIO) -> int | None:
    """Columns of the terminal; None where there is none."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def has_colour(stream: TextIO) -> bool:
    environ = surroundings()
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def lifecycle(word: Any) -> Any:
    """As people read it; JSON and TSV have the word of the API."""
    return "running" if word in RUNNING else word


def moment(text: str | None) -> Moment | None:
    """A time to the second, as people read it; scripts take -o json."""
    if text is None:
        return None
    return Moment(text if "." not in text else text.partition(".")[0] + "Z")


def when(text: str | None) -> str:
    """The same in a sentence, with the time here beside it."""
    at = moment(text)
    return "" if at is None else at.beside_local


def _for_people(column: str, cell: Any, *, local: bool) -> Any:
    if isinstance(cell, Moment):
        return cell.beside_local if local else cell
    return lifecycle(cell) if column in {"lifecycle", "last_run"} else cell


def _texts(table: Table) -> list[list[str]]:
    return [[clean(text(cell)) for cell in row] for row in (table.columns, *table.rows)]


def _widths(table: Table) -> list[int]:
    rows = _texts(table)
    return [max(measure(row[at]) for row in rows) for at in range(len(table.columns))]


def _places(each: str) -> int:
    if unicodedata.combining(each):
        return 0
    return 2 if unicodedata.east_asian_width(each) in {"W", "F"} else 1


def _fitted(widths: list[int], width: int, whole: list[bool]) -> list[int]:
    """The widest give way first, so that ids and names stay whole as long as they can."""
    widths = list(widths)
    cuttable = [at for at in range(len(widths)) if not whole[at]]
    while cuttable and sum(widths) + GAP * (len(widths) - 1) > width:
        at = max(cuttable, key=lambda each: widths[each])
        if widths[at] <= NARROWEST:
            break
        widths[at] -= 1
    return widths


def _cell(text: str, width: int, *, right: bool, last: bool, coloured: bool) -> str:
    shown = cut(text, width)
    space = " " * (width - measure(shown))
    colour = COLOURS.get(text) if coloured else None
    if colour:
        shown = f"{colour}{shown}{PLAIN}"
    if right:
        return space + shown
    return shown if last else shown + space


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
