"""Files, functions, classes and queries that the documents name exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    str(file.relative_to(ROOT))
    for file in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if file.name != "CHANGELOG.md"
)
PAGES = ("docs/architecture.md", "docs/explanation/life-of-a-task.md")
FOLDERS = ("api", "workflows", "fsm", "nodeagent", "engine", "muster", "tests", "bench", "docs")
PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)`")
ROW = re.compile(r"^\|[^|]+\| `([\w./-]+)` \|([^|]*)\|$", re.MULTILINE)
QUERY = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
SQL_FUNCTION = re.compile(r"^create or replace (?:function|procedure) ([\w.]+)\(", re.MULTILINE)


@cache
def names_in(path: str) -> frozenset[str]:
    """Top-level functions and classes of a module; SQL functions and named queries of a .sql file."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".sql"):
        return frozenset([*QUERY.findall(text), *SQL_FUNCTION.findall(text)])
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return frozenset(node.name for node in ast.parse(text).body if isinstance(node, definitions))


def named_code(text: str) -> list[tuple[str, str]]:
    """File and name, for each name in the rows of tables whose last columns are file and name."""
    return [
        (path, name) for path, cell in ROW.findall(text) for name in re.findall(r"`([\w.]+)`", cell)
    ]


def unknown_names(text: str) -> list[str]:
    rows = [row for row in named_code(text) if (ROOT / row[0]).is_file()]
    return [f"{path}: {name}" for path, name in rows if name not in names_in(path)]


def unknown_sql_functions(text: str) -> list[str]:
    """Also outside of tables."""
    files = (ROOT / "engine/sql/functions").rglob("*.sql")
    functions = {name for file in files for name in names_in(str(file.relative_to(ROOT)))}
    named = re.findall(r"`(jobs(?:_internal)?\.[a-z]\w+)`", text)
    return [name for name in named if name not in functions]


def missing_files(text: str) -> list[str]:
    return [path for path in PATH.findall(text) if not (ROOT / path).exists()]


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_file_that_a_page_names_exists(page):
    assert missing_files((ROOT / page).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_function_class_and_query_that_a_page_names_is_in_its_file(page):
    text = (ROOT / page).read_text(encoding="utf-8")

    assert len(named_code(text)) > 20
    assert unknown_names(text) == []
    assert unknown_sql_functions(text) == []


def test_a_name_that_does_not_exist_is_found():
    page = """
| question | file | name |
|---|---|---|
| a function | `engine/core/scheduler.py` | `decide`, `decides` |
| a query | `engine/access/target.sql` | `cancel_backend`, `cancel_front` |
| a file | `engine/core/scheduled.py` | `decide` |

Prose: `jobs_internal.report` and `jobs_internal.reports`.
"""

    assert unknown_names(page) == [
        "engine/core/scheduler.py: decides",
        "engine/access/target.sql: cancel_front",
    ]
    assert unknown_sql_functions(page) == ["jobs_internal.reports"]
    assert missing_files(page) == ["engine/core/scheduled.py"]
