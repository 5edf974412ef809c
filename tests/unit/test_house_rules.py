"""Rules that no linter knows, each a few lines."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("api", "workflows", "fsm", "nodeagent", "engine", "muster")
SOURCES = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]


def mentions(pattern: str, *, but: set[str]) -> list[str]:
    found = re.compile(pattern)
    return [
        str(file.relative_to(ROOT))
        for file in SOURCES
        if str(file.relative_to(ROOT)) not in but and found.search(file.read_text(encoding="utf-8"))
    ]


def test_there_are_sources_to_look_at():
    assert len(SOURCES) > 50


@pytest.mark.parametrize(
    ("pattern", "but"),
    [
        (
            r"os\.environ|os\.getenv",
            {"muster/core/settings.py", "muster/cli/demo.py", "engine/access/credentials.py"},
        ),
        (r"datetime\.now|time\.time\(|utcnow", {"muster/core/clock.py"}),
        (r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b", set()),
        (r"asyncpg\.connect\(", {"muster/core/connect.py", "muster/core/wake.py"}),
    ],
)
def test_only_the_one_place_does_it(pattern, but):
    assert mentions(pattern, but=but) == []


def test_no_file_has_outgrown_its_duty():
    assert [
        f"{file}: {n}" for file in SOURCES if (n := len(file.read_text().splitlines())) > 400
    ] == []


def test_the_settings_reference_is_true():
    from muster.cli.reference import markdown

    assert (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8") == markdown()
    assert "|  |" not in markdown(), "every setting has a meaning"


UNCLEAR = re.compile(r"\b(whoever|somebody|nobody|anew|mends?|hung up|broken off)\b", re.IGNORECASE)


def texts(file: Path) -> Iterator[str]:
    """String literals that may be shown or logged: all but docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def test_messages_and_log_events_name_who_and_what():
    own = [file for file in SOURCES if file.relative_to(ROOT).parts[0] != "engine"]
    unclear = [
        f"{file.relative_to(ROOT)}: {text}"
        for file in own
        for text in texts(file)
        if " " in text and UNCLEAR.search(text)
    ]

    assert unclear == []


def test_every_data_file_of_a_package_is_installed_with_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["*"]
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.is_file()]
    data = [file for file in files if file.suffix not in {".py", ".pyc"}]

    left_out = [
        str(file.relative_to(ROOT))
        for file in data
        if not any(file.match(pattern) for pattern in patterns)
    ]

    assert len(data) > 100
    assert left_out == []
