"""The reasons that engine, hosts and SQL can write are those that are documented, each in its list."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from engine.model.reasons import END, REFUSED, WAIT

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "engine"
PAGE = (ROOT / "docs/reference/reasons.md").read_text(encoding="utf-8")
WORD = r"(?:[A-Z][a-z]+)+"

LIFECYCLES = {
    "Created", "InProgress", "WaitingForRetry", "WaitingForChildJobExecutions", "Succeeded",
    "SucceededWithSkipped", "Failed", "Skipped",
}  # fmt: skip
OTHERS = LIFECYCLES | {
    "Begun", "Queued", "Paused", "Over",                                         # whether a run began
    "Include", "SqlServer", "SqlElasticPool", "SqlDatabase", "SqlSchema",  # members of groups
    "FailureLimit", "SameError",  # rules that halt a step
    "Once", "Late", "Newer", "UntilNextRow",                           # slots of schedules
    "ExecutionNotRetryable", "EpochNotInCharge", "HostNotKnown", "Incompatible", "InternalServerError",  # codes of faults
    "TargetTimeout", "TargetUnreachable", "Rejected",  # the last one of a private endpoint
}  # fmt: skip


def words_of_python() -> Iterator[str]:
    """Of the engine; codes of faults and names of classes are not what is written into rows."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in modules()]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    classes = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    codes = {id(part) for node in nodes if is_code(node) for part in ast.walk(node)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in codes:
            if re.fullmatch(WORD, node.value) and node.value not in classes:
                yield node.value


def modules() -> list[Path]:
    """Without the lists of reasons, and of what is wrong with a login, which no row has."""
    return [p for p in ENGINE.rglob("*.py") if p.name not in {"reasons.py", "findings.py"}]


def is_code(node: ast.AST) -> bool:
    """It is given to a fault, or compared with that of one."""
    if isinstance(node, ast.Compare):
        return isinstance(node.left, ast.Attribute) and node.left.attr == "code"
    return isinstance(node, ast.keyword) and node.arg == "code"


def words_of_sql() -> Iterator[str]:
    for text in functions():
        if re.search("wait_?reason|end_?reason", text, re.IGNORECASE):
            yield from re.findall(f"'({WORD})'", text)


def functions() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in (ENGINE / "sql/functions").rglob("*.sql")]


def documented(chapter: str) -> list[str]:
    (text,) = re.findall(rf"^## {chapter}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return re.findall(rf"^\| `({WORD})` \| [^|]+ \| [^|]+ \|$", text, re.MULTILINE)


def test_every_reason_that_is_written_is_known_and_every_known_one_is_written() -> None:
    written = {*words_of_python(), *words_of_sql()} - OTHERS

    assert written == {*WAIT, *END}, (
        "a new reason belongs into engine/model/reasons.py and reasons.md"
    )


def test_every_reason_is_documented_once() -> None:
    waits, ends = documented("Why it waits"), documented("Why it ended")

    assert sorted(waits) == sorted(WAIT)
    assert ends == sorted(END)


def test_who_was_refused_by_a_server_is_the_same_everywhere() -> None:
    lists = re.findall(r"in \(('Server[^)]+)\)", "".join(functions()))

    assert len(lists) >= 4
    assert {frozenset(re.findall(WORD, each)) for each in lists} == {REFUSED}
    assert REFUSED <= WAIT.keys() & END
