"""The table of attacks is complete, and every test that it names exists."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ATTACKS = 91
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \| (.+) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
ROWS = ROW.findall((ROOT / "docs/proofs/attacks.md").read_text(encoding="utf-8"))


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    )


def test_every_attack_has_one_row():
    assert [int(row[0]) for row in ROWS] == list(range(1, ATTACKS + 1))


def test_every_attack_has_a_test_or_the_reason_why_it_has_none():
    without = [
        number
        for number, _, answer, tests in ROWS
        if bool(TEST.findall(tests)) == answer.startswith("No test: ")
    ]
    assert without == []


def test_every_named_test_exists():
    named = {each for row in ROWS for each in TEST.findall(row[3])}
    missing = sorted(
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).is_file() or name not in names_in(path)
    )
    assert len(named) > 80
    assert missing == []


def test_nothing_but_tests_stands_in_the_last_column():
    assert [
        row[0] for row in ROWS if TEST.sub("", row[3]).replace("<br>", "") not in {"", "–"}
    ] == []
