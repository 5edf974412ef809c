"""What a query may be; muster.core.script validates its text."""

from typing import Any

from muster.core.errors import FieldError
from muster.core.script import Analysis
from workflows.validation import common, start

LONGEST = 43_200  # seconds
MOST_ROWS = 10_000


def query(properties: dict[str, Any], analysis: Analysis) -> list[FieldError]:
    return [
        *_targets(properties),
        *start.limit(properties),
        *common.within("timeoutSeconds", properties.get("timeoutSeconds"), 1, LONGEST),
        *common.within("maxRows", properties.get("maxRows"), 1, MOST_ROWS),
        *text(analysis, read_only=properties.get("readOnly", True)),
    ]


def _targets(properties: dict[str, Any]) -> list[FieldError]:
    if ("targetGroup" in properties) == ("targets" in properties):
        return [FieldError("targetGroup", "Either the name of a target group, or targets.")]
    return start.targets(properties.get("targets"))


def text(analysis: Analysis, *, read_only: bool) -> list[FieldError]:
    problems = analysis.problems
    if problems or not read_only or not analysis.script.autocommit:
        return [problem.error("sql") for problem in problems]
    message = (
        "It can't run inside a transaction, so it can't be rolled back: readOnly must be false."
    )
    return [FieldError("sql", message, "NotTransactional")]
