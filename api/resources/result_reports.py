"""Reports about what targets returned: result sets, rows of all targets, command tags."""

from typing import Any

from api.resource import Query, Report, View
from api.resources.execution_parts import (
    DELETED,
    TEXT,
    WHOLE,
)
from api.resources.report_schemas import COUNT, TARGET, TARGET_ID, list_of, object_of
from api.row_formats import FORMS
from workflows import reports, result_rows

STEP = Query(name="step", description="The step; needed where the execution has several.")
SET = Query(
    name="set",
    description="Which of the script's result sets, from 1.",
    schema={"type": "integer", "minimum": 1, "maximum": 10_000},
)
FORMAT = Query(
    name="format",
    description="csv and ndjson: all rows as a stream; wins over the header Accept.",
    schema={"type": "string", "enum": list(FORMS)},
)
COMMAND_TAGS = View(
    run=reports.command_tags,
    title="ListCommandTags",
    item=object_of(
        "commandTags",
        **TARGET,
        attempt=WHOLE,
        commandTags=list_of(object_of("statement tag", statement=WHOLE, tag=TEXT, rows=COUNT)),
    ),
    query=(STEP, DELETED),
    example={
        "stepName": "analyze",
        "targetId": TARGET_ID,
        "serverName": "eu1",
        "databaseName": "tenant_1",
        "attempt": 1,
        "commandTags": [{"statement": 1, "tag": "UPDATE 3", "rows": 3}],
    },
)
READING_COLUMNS = 120.0  # seconds for the columns of all targets, before a file begins
RESULTS = Report(
    run=reports.results,
    rows=result_rows.of_run,
    waits=READING_COLUMNS,
    title="GetResults",
    gives=object_of(
        "set columns rows targets truncated",
        stepName=TEXT,
        set=WHOLE,
        columns=list_of(TEXT),
        rows=list_of(list_of({})),
        targets=COUNT,
        truncated={"type": "boolean"},
        nextLink={"type": "string", "format": "uri"},
    ),
    query=(STEP, SET, FORMAT, DELETED),
    paged=True,
    example={
        "stepName": "analyze",
        "set": 1,
        "columns": ["serverName", "databaseName", "schemaName", "version"],
        "rows": [["eu1", "tenant_1", None, "PostgreSQL 18.0"]],
        "targets": 1,
        "truncated": False,
    },
)
RESULT_SET_EXAMPLE = {
    "statement": 1,
    "tag": "SELECT 1",
    "columns": [{"name": "version", "type": "text"}],
    "rows": [["PostgreSQL 18.0"]],
    "rowCount": 1,
    "truncated": False,
}
RESULT_SET: dict[str, Any] = {
    "statement": WHOLE,
    "tag": TEXT,
    "columns": list_of(object_of(name=TEXT, type=TEXT)),
    "rows": list_of(list_of({})),
    "rowCount": COUNT,
    "truncated": {"type": "boolean"},
}
ATTEMPT_RESULTS = Report(
    run=reports.attempt_results,
    rows=result_rows.of_attempt,
    title="GetResults",
    gives=object_of("set sets columns rows truncated", set=WHOLE, sets=WHOLE, **RESULT_SET),
    query=(SET, FORMAT, DELETED),
    example={"set": 1, "sets": 1, **RESULT_SET_EXAMPLE},
)
