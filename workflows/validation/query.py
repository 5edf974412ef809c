"""What a query may be; its text is judged by muster.core.script."""

from typing import Any

from muster.core import script
from muster.core.errors import FieldError
from workflows.validation import common

LONGEST = 43_200  # seconds
MOST_ROWS = 10_000


def query(given: dict[str, Any]) -> list[FieldError]:
    return [
        *common.within("timeoutSeconds", given.get("timeoutSeconds"), 1, LONGEST),
        *common.within("maxRows", given.get("maxRows"), 1, MOST_ROWS),
        *text(given["sql"], read_only=given.get("readOnly", True)),
    ]


def text(sql: str, *, read_only: bool) -> list[FieldError]:
    problems = script.check(sql)
    if problems or not read_only or not script.split(sql).autocommit:
        return [problem.error("sql") for problem in problems]
    message = (
        "It can't run inside a transaction, so it can't be rolled back: readOnly must be false."
    )
    return [FieldError("sql", message, "NotTransactional")]
