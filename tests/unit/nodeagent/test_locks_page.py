"""docs/explanation/locks.md lists every lock that a function or trigger of the control database takes."""

import re
from pathlib import Path

from engine import sql
from muster.core.migrate import files, scripts

PAGE = Path(__file__).parents[3] / "docs/explanation/locks.md"
LINE_COMMENT = re.compile(r"--[^\n]*")
REMARK = re.compile(r"^comment on (?:[^';]|'[^']*')*;", re.MULTILINE)
TAKEN = re.compile(
    r"\block table (?P<table>\w+) in (?P<mode>[a-z ]+?) mode"
    r"|\bfor (?P<strength>no key update|key share|update|share)\b(?: of \w+)?(?: skip locked)?(?=[\s;)])"
    r"|(?P<function>\b(?:lock_\w+|pg_\w*advisory\w*))\("
)
DEFINED = re.compile(r"create (?:or replace )?function (?:jobs|jobs_internal)\.(\w+)\(")
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \|", re.MULTILINE)


def taken_by_functions() -> set[tuple[str, str]]:
    texts = [text for _, text in files(sql.REPLACEABLE[0])]
    texts += [text for _, text in scripts(sql.MIGRATIONS)]
    locks = set()
    for text in texts:
        code = REMARK.sub("", LINE_COMMENT.sub("", text))
        pieces = DEFINED.split(code)[1:]
        for name, body in zip(pieces[::2], pieces[1::2], strict=True):
            locks |= {(name, _lock(match)) for match in TAKEN.finditer(body.split("end $$;")[0])}
    return locks


def _lock(match: re.Match[str]) -> str:
    if match["table"]:
        return f"{match['table']} {match['mode']}"
    return f"row {match['strength']}" if match["strength"] else match["function"]


def test_the_page_lists_every_lock_of_the_functions():
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    listed = {(name, lock) for name, locks in rows for lock in re.findall(r"`([^`]+)`", locks)}

    assert listed == taken_by_functions()


def test_no_function_takes_an_advisory_lock():
    assert not [each for each in taken_by_functions() if "advisory" in each[1]]
