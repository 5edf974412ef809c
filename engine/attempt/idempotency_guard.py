"""Tables in a target by which a guarded script is applied once: a row commits with the script.

`guard: true` is once per run, step and target; `guard: job` once per job, step (by name), script and
target. A target is a database, or a schema of it. The guard is queried before the script. The row is
written after it, in the same transaction, so a script that ended its transaction leaves no row.

Tables of another role are not used: a row in them proves nothing, and reading a view would run its
owner's code as the login.
"""

import re
from collections.abc import Awaitable, Callable

import asyncpg

from engine.attempt.sql_text import identifier, literal
from engine.model.step import Step
from engine.model.task import Task
from engine.pgwire.result_set import ResultSet, rows_of
from engine.pool.pooled_connection import PooledConnection
from muster.core.errors import Fault, InvalidRequest
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

MAX_CREATE_ATTEMPTS = 5
CREATE_RACES = (  # two sessions create the tables at once
    asyncpg.UniqueViolationError,
    asyncpg.DuplicateSchemaError,
    asyncpg.DuplicateTableError,
    asyncpg.InternalServerError,
)
PARAMETER = re.compile(r"\$([1-9])")
SCHEMA = "muster_guard"
MISSING = "missing"
NOT_TRUSTED = "GuardNotTrusted"
NAMES = (f"schema {SCHEMA}", "table applied", "table applied_by_job")  # in the server's messages


def question(task: Task, step: Step) -> str:
    """Returns a row when the script was applied before."""
    return _filled(Q.applied_in_run if step.options.guard is True else Q.applied_by_job, task, step)


def record(task: Task, step: Step) -> str:
    """Inserts no row when another session has applied the script meanwhile."""
    return _filled(Q.record_run if step.options.guard is True else Q.record_job, task, step)


def _filled(query: str, task: Task, step: Step) -> str:
    """Without the comment in its first line."""
    values: tuple[object, ...] = (
        task.job_execution_id,
        task.step_id,
        task.target_id,
        f"\\x{step.content_hash}",
    )
    if step.options.guard == "job":
        values = task.job_id, step.step_name, task.schema_name or "", f"\\x{step.script_hash}"
    texts = [literal(str(value)) for value in values]
    return PARAMETER.sub(lambda use: texts[int(use[1]) - 1], query.partition("\n")[2])


async def ensure(
    session: PooledConnection,
    query: Callable[[str], Awaitable[list[ResultSet]]],
    execute: Callable[[str], Awaitable[object]],
) -> None:
    """Creates missing tables; raises if existing ones can't be trusted."""
    for may_create in (True, False):
        faults = [str(row[0]) for row in rows_of(await query(Q.guard_faults))]
        distrusted = [fault for fault in faults if fault != MISSING]
        if distrusted:
            raise _not_trusted(session, distrusted)
        if faults and may_create:
            await _create(session, execute)
        elif faults:
            raise InvalidRequest("The step's guard needs tables in the target, and they disappear.")
        else:
            return


async def _create(session: PooledConnection, execute: Callable[[str], Awaitable[object]]) -> None:
    for left in reversed(range(MAX_CREATE_ATTEMPTS)):
        try:
            await execute(Q.make_guard)
        except asyncpg.InsufficientPrivilegeError as error:
            inside = f"schema {SCHEMA}" in str(error)
            database = f"CREATE ON DATABASE {identifier(session.key.database)}"
            right = f"USAGE, CREATE ON SCHEMA {SCHEMA}" if inside else database
            raise _missing(session, right) from None
        except CREATE_RACES:
            if not left:
                raise
        else:
            return


def _not_trusted(session: PooledConnection, faults: list[str]) -> Fault:
    login = identifier(session.key.username)
    return InvalidRequest(
        f"The step's guard is not to be trusted: {'; '.join(faults)}. The schema and its tables must be as Muster makes"
        f" them and belong to the login {login} or to a superuser. Let their owner run: DROP SCHEMA {SCHEMA} CASCADE;"
        " then the next attempt makes them.",
        code=NOT_TRUSTED,
    )


def missing_right(session: PooledConnection) -> Fault:
    rights = f"USAGE ON SCHEMA {SCHEMA}", f"SELECT, INSERT ON ALL TABLES IN SCHEMA {SCHEMA}"
    return _missing(session, *rights)


def _missing(session: PooledConnection, *rights: str) -> Fault:
    login = identifier(session.key.username)
    grants = " ".join(f"GRANT {right} TO {login};" for right in rights)
    return InvalidRequest(f"The step's guard needs a table in the target: {grants}")
