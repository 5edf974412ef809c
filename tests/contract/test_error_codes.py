"""docs/reference/error-codes.md has every code that can be answered, once, with its statuses."""

import re
from pathlib import Path

from api.errors import STATUS
from nodeagent.sqlstates import OWN
from tests.support.error_codes import found

PAGE = (Path(__file__).parents[2] / "docs/reference/error-codes.md").read_text("utf-8")
ROW = re.compile(r"^\| `([A-Z]\w+)` \| ([\d, -]+) \| ([^|]+) \| ((?:[^|]|\\\|)+) \|$", re.MULTILINE)
SQL_ROW = re.compile(r"^\| `(MU\d+)` \| (\d+) `(\w+)` \|", re.MULTILINE)


def test_every_code_is_described_once() -> None:
    described = [row[0] for row in ROW.findall(PAGE)]

    assert sorted(described) == sorted(set(described))
    assert set(described) == set(found()), "a code belongs into docs/reference/error-codes.md"


def test_the_statuses_are_those_of_the_code() -> None:
    known = found()
    described = {
        code: {int(n) for n in re.findall(r"\d+", text)} for code, text, _, _ in ROW.findall(PAGE)
    }

    wrong = {code: statuses for code, statuses in known.items() if statuses - described[code]}

    assert wrong == {}
    assert set.union(*described.values()) >= set(STATUS.values())


def test_the_sqlstates_are_those_of_the_functions() -> None:
    described = {state: (int(status), code) for state, status, code in SQL_ROW.findall(PAGE)}

    assert described == {state: (STATUS[kind], code) for state, (kind, code) in OWN.items()}


def test_a_code_that_is_not_described_is_found(tmp_path, monkeypatch) -> None:
    (tmp_path / "new.py").write_text(
        'LATER = "LateCode"\nraise Conflict("no", code="EarlyCode" if early else LATER)\n'
    )
    monkeypatch.setattr("tests.support.error_codes.files", lambda: [tmp_path / "new.py"])

    assert {code: found()[code] for code in ("EarlyCode", "LateCode")} == {
        "EarlyCode": {409},
        "LateCode": {409},
    }
