"""The statements on an output server: which table there is, how it is made or widened, and how rows replace others.

Pure: `output_writer` sends them.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple
from uuid import UUID

from engine.attempt.row_spool import escaped
from engine.attempt.sql_text import identifier, literal
from engine.model.output import OutputOptions, StepOutput
from engine.model.task import Task
from engine.pgwire.result_set import TYPES
from muster.core.errors import InvalidRequest
from muster.core.session_settings import FIXED
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

TABLE_LOCKS, WRITER_LOCKS = 0x4D754F54, 0x4D754F57  # classes of our advisory locks
LOCK_TIMEOUT, IDLE_TIMEOUT = 30_000, 30_000  # ms
MAX_TIMEOUT = 2_147_483_647  # ms
MAX_NAME = 63  # bytes
NULL = "\\N"  # in COPY's text format
EXECUTION_ID = "internal_execution_id"
TARGET_COLUMNS = {
    "target_server": "text", "target_database": "text", "target_schema": "text", "attempt": "integer",
}  # fmt: skip
# Types of columns that are made. What depends on a length, a locale or objects of the target becomes text.
AS_TEXT = frozenset({18, 19, 790, 1042, 2205, 2206, 2249, 2278})
OWN_TYPES = {1560: "bit varying"}

Columns = Sequence[tuple[str, str]]  # names and types


class OutputTable(NamedTuple):
    """What the output server has."""

    schema: str
    exists: bool
    columns: frozenset[str]


def column_type(oid: int) -> str:
    return "text" if oid in AS_TEXT else OWN_TYPES.get(oid) or TYPES.get(oid, "text")


def table_columns(columns: Sequence[tuple[str, int]], options: OutputOptions) -> Columns:
    """Those of the table, in the order of the values in the rows."""
    own = {EXECUTION_ID: "uuid", **(TARGET_COLUMNS if options.include_target else {})}
    for name, _ in columns:
        if name in own:
            raise InvalidRequest(
                f"The result has a column '{name}', which Muster writes itself: give it another name.",
                code="OutputColumns",
            )
    return [*own.items(), *((name, column_type(oid)) for name, oid in columns)]


def row_prefix(task: Task, attempt: int, options: OutputOptions) -> bytes:
    """The values of Muster's own columns, in COPY's text format."""
    values = [str(task.target_execution_id)]
    if options.include_target:
        target = (task.server_name, task.database_name, task.schema_name, str(attempt))
        values += [NULL if each is None else escaped(each.encode()).decode() for each in target]
    return "\t".join(values).encode()


def find_table(output: StepOutput) -> str:
    return Q.output_table.replace("$1", literal(output.schema_name)).replace(
        "$2", literal(output.table_name)
    )


def found(rows: Sequence[Sequence[object]], output: StepOutput) -> OutputTable:
    """The reply to `find_table`."""
    if not rows:
        raise InvalidRequest(
            f"The database {output.database_name} has no schema {output.schema_name}.",
            code="OutputSchema",
        )
    names = frozenset(str(row[2]) for row in rows if row[2] is not None)
    return OutputTable(str(rows[0][0]), rows[0][1] is True, names)


def changes(
    table: OutputTable, output: StepOutput, columns: Columns, options: OutputOptions
) -> list[str]:
    """The statements that make or widen the table; InvalidRequest when it must not be widened."""
    name = qualified(table, output)
    definitions = [f"{identifier(column)} {type}" for column, type in columns]
    if not table.exists:
        made = f"create table {name} ({', '.join(definitions)})"
        return [made, _index(table, output)]
    missing = [column for column, _ in columns if column not in table.columns]
    if not missing:
        return []
    if options.on_mismatch == "fail":
        names = ", ".join(missing)
        raise InvalidRequest(
            f"The table {table.schema}.{output.table_name} has no column {names}. Add it, leave it out of the result,"
            ' or set onMismatch to "addColumn".',
            code="OutputColumns",
        )
    added = [
        f"add column if not exists {definition}"
        for (column, _), definition in zip(columns, definitions, strict=True)
        if column in missing
    ]
    index = [_index(table, output)] if EXECUTION_ID in missing else []
    return [f"alter table {name} {', '.join(added)}", *index]


def qualified(table: OutputTable, output: StepOutput) -> str:
    return f"{identifier(table.schema)}.{identifier(output.table_name)}"


def _index(table: OutputTable, output: StepOutput) -> str:
    name = f"IX_{output.table_name}_Internal_Execution_ID"
    named = f"if not exists {identifier(name)} " if len(name.encode()) <= MAX_NAME else ""
    return f"create index {named}on {qualified(table, output)} ({identifier(EXECUTION_ID)})"


def begin(name: str, left: float, *, preset: bool, own_path: bool) -> str:
    """Begins a transaction; `preset`: the startup packet has the fixed settings; `own_path`: only PostgreSQL's names."""
    settings: Mapping[str, str] = {} if preset else FIXED
    parts = ["begin isolation level read committed read write"]
    parts += [f"set local {key}={literal(value)}" for key, value in settings.items()]
    if own_path:
        parts.append("set local search_path=pg_catalog,pg_temp")
    milliseconds = max(1, min(MAX_TIMEOUT, int(left * 1000)))
    parts += [
        f"set local statement_timeout={milliseconds}",
        f"set local lock_timeout={LOCK_TIMEOUT}",
        f"set local idle_in_transaction_session_timeout={IDLE_TIMEOUT}",
        f"set local application_name={literal(name)}",
    ]
    return ";".join(parts)


def lock_table(table: OutputTable, output: StepOutput) -> str:
    """Until the transaction ends no other session makes or widens the table."""
    key = _key(f"{table.schema}.{output.table_name}".encode())
    return f"select pg_catalog.pg_advisory_xact_lock({TABLE_LOCKS},{key})"


def lock_writer(id: UUID, *, attempt: bool = False) -> str:
    """One attempt at a time writes the rows of a target execution; `attempt`: replies at once whether it does."""
    word = "try_advisory" if attempt else "advisory"
    return f"select pg_catalog.pg_{word}_xact_lock({WRITER_LOCKS},{_key(id.bytes)})"


def end_other_writers(name: str) -> str:
    """Sessions of attempts that were taken from their hosts."""
    return Q.end_other_writers.replace("$1", literal(name))


def writer_name(id: UUID) -> str:
    """application_name of the sessions that write the rows of a target execution."""
    return f"muster output {id.hex}"


def delete_rows(table: OutputTable, output: StepOutput, id: UUID) -> str:
    where = f"{identifier(EXECUTION_ID)} operator(pg_catalog.=) '{id}'::pg_catalog.uuid"
    return f"delete from {qualified(table, output)} where {where}"  # noqa: S608 - quoted


def copy_rows(table: OutputTable, output: StepOutput, columns: Columns) -> str:
    names = ",".join(identifier(name) for name, _ in columns)
    return f"copy {qualified(table, output)} ({names}) from stdin (format text, encoding 'UTF8')"


def _key(value: bytes) -> int:
    return int.from_bytes(blake2b(value, digest_size=4).digest(), "big", signed=True)
