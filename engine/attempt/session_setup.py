"""The setup message: BEGIN, settings, checks and locks that precede a script.

Plain SET where Muster knows the value's form, set_config where a user wrote it: SET costs the server a third.
"""

import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

from engine.attempt import idempotency_guard
from engine.attempt.sql_text import identifier, literal
from engine.model.credential import render_name
from engine.model.step import Step
from engine.model.task import Task, run_values, variable_values
from muster.core.session_settings import FIXED, SCRIPT_PATH, with_temp_last
from muster.core.variables import setting

KEY_CLASS = 0x4D757374  # of our advisory locks
IDLE_TIMEOUT = 30_000  # ms of idle_in_transaction_session_timeout
MAX_TIMEOUT = 2_147_483_647  # ms
READING = "select 1 operator(pg_catalog./) pg_catalog.int4("
WRITING = f"{READING}pg_catalog.current_setting('transaction_read_only') operator(pg_catalog.=) 'off' and "
# With another value triggers and foreign keys do nothing; only a superuser may set it.
ORIGIN = (
    "case when pg_catalog.current_setting('session_replication_role') operator(pg_catalog.=) 'origin' then true"
    " else pg_catalog.set_config('session_replication_role','origin',{}) is not null end and "
)


class SetupContext(NamedTuple):
    """The input of a setup message."""

    task: Task
    step: Step
    name: str  # application_name
    left: float  # seconds until the deadline
    watches_client: bool
    preset: bool  # by the startup packet: see muster/core/session_settings.py
    unknown: frozenset[str]  # parameters that the server does not have, in lower case

    @property
    def values(self) -> Mapping[str, str]:
        return variable_values(self.task, self.step)


class SetupMessage(NamedTuple):
    text: str
    statements: int
    guard: int = -1  # which statement queries the guard, counted from 0


def transactional_setup(context: SetupContext) -> SetupMessage:
    """Begins the transaction; fails with 22012 when a check fails."""
    step = context.step
    level = "" if context.preset else " isolation level read committed"
    parts = [f"begin{level}{' read only' if step.read_only else ''}"]
    more = _settings(context, parts, "set local")
    guard = len(parts) + more
    if step.guarded:
        # Before the role is set: the login owns the table.
        parts.append(idempotency_guard.question(context.task, step))
    parts.append(_checks(context, "pg_try_advisory_xact_lock", "true"))
    _set_role(context, parts, "true")
    return SetupMessage(";".join(parts), len(parts) + more, guard)


def autocommit_setup(context: SetupContext) -> SetupMessage:
    """For statements that commit one by one; DISCARD ALL undoes it."""
    parts: list[str] = []
    more = _settings(context, parts, "set")
    if context.step.read_only:
        parts.append("set default_transaction_read_only=on")
    parts.append(_checks(context, "pg_try_advisory_lock", "false"))
    _set_role(context, parts, "false")
    return SetupMessage(";".join(parts), len(parts) + more)


def verify_setup(context: SetupContext, *, locked: bool) -> SetupMessage:
    """Begins a READ ONLY transaction; `locked`: waits, within lock_timeout, until no earlier attempt runs there."""
    level = "" if context.preset else " isolation level read committed"
    parts = [f"begin{level} read only"]
    more = _settings(context, parts, "set local")
    if locked:
        key = f"{KEY_CLASS},{lock_key(context.task)}"
        parts.append(f"select pg_catalog.pg_advisory_xact_lock({key})")
    _set_role(context, parts, "true")
    return SetupMessage(";".join(parts), len(parts) + more)


def lock_timeout(seconds: float) -> str:
    """For the next statement, outside of a transaction."""
    return f"set lock_timeout={_ms(seconds)}"


def lock_key(task: Task) -> int:
    """The same for all attempts of a target execution."""
    key = b"%b%b%d" % (task.job_execution_id.bytes, task.target_id.bytes, task.step_id)
    return int.from_bytes(blake2b(key, digest_size=4).digest(), "big", signed=True)


def _settings(context: SetupContext, parts: list[str], word: str) -> int:
    """Appends to the parts; returns by how many statements they exceed the number of parts."""
    task, options, local = context.task, context.step.options.settings, _local(word)
    run_settings, more = _run_settings(context, word)
    parts += (
        run_settings,
        f"{word} statement_timeout={_ms(context.left, least=1)}",
        f"{word} application_name='{context.name}'",
        f"{word} muster.target_server_name={literal(task.server_name)}",
        f"{word} muster.attempt='{task.attempt}'",
    )
    if task.database_name is not None:
        parts.append(f"{word} muster.target_database_name={literal(task.database_name)}")
    if task.schema_name is not None:
        parts.append(f"{word} muster.target_schema_name={literal(task.schema_name)}")
    for name in task.labels:
        value = literal(context.values[f"target_label.{name}"])
        parts.append(f"{word} {_custom(name)}={value}")
    for name, value in options.parameters.items():
        if name.lower() not in context.unknown:
            parts.append(_config(name, value, local))
    if task.schema_name is not None:
        parts.append(f"{word} search_path={identifier(task.schema_name)},pg_temp")
    elif options.search_path is not None:
        parts.append(_config("search_path", with_temp_last(options.search_path), local))
    return more - 1


def _run_settings(context: SetupContext, word: str) -> tuple[str, int]:
    run = run_values(context.task, context.step)
    key = word, context.watches_client, context.preset
    cached = run.setup_texts.get(key)
    if cached is not None:
        return cached
    fixed = {name: literal(value) for name, value in FIXED.items()}
    settings = {
        **({} if context.preset else fixed | {"search_path": SCRIPT_PATH, "role": "none"}),
        "lock_timeout": str(_ms(context.step.lock_timeout)),
        "idle_in_transaction_session_timeout": str(IDLE_TIMEOUT),
        **({"client_connection_check_interval": "1000"} if context.watches_client else {}),
        **{f"muster.{name}": literal(value) for name, value in run.values.items()},
    }
    text = ";".join(f"{word} {name}={value}" for name, value in settings.items())
    run.setup_texts[key] = text, len(settings)
    return text, len(settings)


def _set_role(context: SetupContext, parts: list[str], local: str) -> None:
    role = context.step.options.settings.role
    if role is not None:
        parts.append(_config("role", render_name(role, context.values), local))


def _local(word: str) -> str:
    return "true" if word == "set local" else "false"


def _config(name: str, value: str, local: str) -> str:
    return f"select pg_catalog.set_config({literal(name)},{literal(value)},{local})"


def _checks(context: SetupContext, lock: str, local: str) -> str:
    """Divides by zero while another attempt holds the lock, or if a script that writes meets a read-only target.

    42501 when the database has another session_replication_role and the login may not change it.
    """
    held = f"pg_catalog.{lock}({KEY_CLASS},{lock_key(context.task)})"
    names = {name.lower() for name in context.step.options.settings.parameters}
    origin = "" if "session_replication_role" in names else ORIGIN.format(local)
    return f"{READING if context.step.read_only else WRITING}{origin}{held})"


def _custom(label: str) -> str:
    """A label as a parameter of the session; keywords need quotes."""
    *prefix, name = setting(f"target_label.{label}").split(".")
    return ".".join((*prefix, identifier(name)))


def _ms(seconds: float, *, least: int = 0) -> int:
    return min(max(math.ceil(seconds * 1000), least), MAX_TIMEOUT)
