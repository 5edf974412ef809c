"""What is said to a target before a script: one message, after which the session is as the step wants it.

Plain SETs where we know the value's form, set_config where a user gave it: a SET costs the server a third.
"""

import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

from engine.attempt import idempotency_guard
from engine.attempt.sql_text import identifier, literal
from engine.model.task import Step, Task, named, run_of, values
from muster.core.session_settings import FIXED, SCRIPT_PATH, with_temp_last
from muster.core.variables import setting

KEY_CLASS = 0x4D757374  # of our advisory locks
IDLE_LIMIT = 30_000  # ms that a transaction may wait for us
LONGEST_WAIT = 2_147_483_647  # ms
READING = "select 1 operator(pg_catalog./) pg_catalog.int4("
WRITING = f"{READING}pg_catalog.current_setting('transaction_read_only') operator(pg_catalog.=) 'off' and "
# With another value triggers and foreign keys do nothing; only a superuser may set it.
ORIGIN = (
    "case when pg_catalog.current_setting('session_replication_role') operator(pg_catalog.=) 'origin' then true"
    " else pg_catalog.set_config('session_replication_role','origin',{}) is not null end and "
)


class SetupContext(NamedTuple):
    """All that goes into it."""

    task: Task
    step: Step
    name: str  # application_name
    left: float  # seconds until the deadline
    watches_client: bool
    preset: bool  # by the startup packet: see muster/core/session_settings.py
    unknown: frozenset[str]  # parameters that the server does not have, in lower case

    @property
    def values(self) -> Mapping[str, str]:
        return values(self.task, self.step)


class SetupMessage(NamedTuple):
    text: str
    statements: int
    guard: int = -1  # which statement asks the guard, counted from 0


def transactional_setup(scene: SetupContext) -> SetupMessage:
    """Begins the transaction; 22012 when something is in the way."""
    step = scene.step
    level = "" if scene.preset else " isolation level read committed"
    parts = [f"begin{level}{' read only' if step.read_only else ''}"]
    more = _around(scene, parts, "set local")
    asked = len(parts) + more
    if step.guarded:
        parts.append(
            idempotency_guard.question(scene.task, step)
        )  # before the role: the table is the login's
    parts.append(_clear(scene, "pg_try_advisory_xact_lock", "true"))
    _role(scene, parts, "true")
    return SetupMessage(";".join(parts), len(parts) + more, asked)


def autocommit_setup(scene: SetupContext) -> SetupMessage:
    """For statements that commit by themselves: DISCARD ALL undoes it."""
    parts: list[str] = []
    more = _around(scene, parts, "set")
    if scene.step.read_only:
        parts.append("set default_transaction_read_only=on")
    parts.append(_clear(scene, "pg_try_advisory_lock", "false"))
    _role(scene, parts, "false")
    return SetupMessage(";".join(parts), len(parts) + more)


def lock_timeout(seconds: float) -> str:
    """For the next of several statements that commit by themselves."""
    return f"set lock_timeout={_ms(seconds)}"


def lock_key(task: Task) -> int:
    """The same for all attempts of a target execution."""
    what = b"%b%b%d" % (task.job_execution_id.bytes, task.target_id.bytes, task.step_id)
    return int.from_bytes(blake2b(what, digest_size=4).digest(), "big", signed=True)


def _around(scene: SetupContext, parts: list[str], word: str) -> int:
    """How many statements it adds beyond the parts."""
    task, around, local = scene.task, scene.step.options.settings, _local(word)
    of_run, more = _of_run(scene, word)
    parts += (
        of_run,
        f"{word} statement_timeout={_ms(scene.left, least=1)}",
        f"{word} application_name='{scene.name}'",
        f"{word} muster.target_server_name={literal(task.server_name)}",
        f"{word} muster.attempt='{task.attempt}'",
    )
    if task.database_name is not None:
        parts.append(f"{word} muster.target_database_name={literal(task.database_name)}")
    if task.schema_name is not None:
        parts.append(f"{word} muster.target_schema_name={literal(task.schema_name)}")
    for name in task.labels:
        value = literal(scene.values[f"target_label.{name}"])
        parts.append(f"{word} {_custom(name)}={value}")
    for name, value in around.parameters.items():
        if name.lower() not in scene.unknown:
            parts.append(_config(name, value, local))
    if task.schema_name is not None:
        parts.append(f"{word} search_path={identifier(task.schema_name)},pg_temp")
    elif around.search_path is not None:
        parts.append(_config("search_path", with_temp_last(around.search_path), local))
    return more - 1


def _of_run(scene: SetupContext, word: str) -> tuple[str, int]:
    run = run_of(scene.task, scene.step)
    known = run.said.get((word, scene.watches_client, scene.preset))
    if known is not None:
        return known
    fixed = {name: literal(value) for name, value in FIXED.items()}
    settings = {
        **({} if scene.preset else fixed | {"search_path": SCRIPT_PATH, "role": "none"}),
        "lock_timeout": str(_ms(scene.step.lock_timeout)),
        "idle_in_transaction_session_timeout": str(IDLE_LIMIT),
        **({"client_connection_check_interval": "1000"} if scene.watches_client else {}),
        **{f"muster.{name}": literal(value) for name, value in run.values.items()},
    }
    text = ";".join(f"{word} {name}={value}" for name, value in settings.items())
    run.said[word, scene.watches_client, scene.preset] = text, len(settings)
    return text, len(settings)


def _role(scene: SetupContext, parts: list[str], local: str) -> None:
    role = scene.step.options.settings.role
    if role is not None:
        parts.append(_config("role", named(role, scene.values), local))


def _local(word: str) -> str:
    return "true" if word == "set local" else "false"


def _config(name: str, value: str, local: str) -> str:
    return f"select pg_catalog.set_config({literal(name)},{literal(value)},{local})"


def _clear(scene: SetupContext, lock: str, local: str) -> str:
    """Divides by zero when another attempt lives, or when what is to be written can't be.

    42501 when the database has another session_replication_role and the login may not change that.
    """
    held = f"pg_catalog.{lock}({KEY_CLASS},{lock_key(scene.task)})"
    wanted = {name.lower() for name in scene.step.options.settings.parameters}
    origin = "" if "session_replication_role" in wanted else ORIGIN.format(local)
    return f"{READING if scene.step.read_only else WRITING}{origin}{held})"


def _custom(label: str) -> str:
    """A label as a parameter of the session; words of the grammar need quotes."""
    *prefix, name = setting(f"target_label.{label}").split(".")
    return ".".join((*prefix, identifier(name)))


def _ms(seconds: float, *, least: int = 0) -> int:
    return min(max(math.ceil(seconds * 1000), least), LONGEST_WAIT)
