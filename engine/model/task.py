"""Tasks, as a host fetches them, and the values of their variables."""

from collections.abc import Mapping
from datetime import date, datetime
from functools import cached_property
from operator import itemgetter
from typing import Any, Self
from uuid import UUID

import msgspec

from engine.model.step import RunValues, Step
from engine.model.verification import ScriptOutcome
from muster.core.db import Row

CACHED_RUNS = 32  # of a step
NOTHING: Mapping[str, Any] = {}
PREFETCH_LIMIT = 1.0  # seconds that a prefetched task waits in its slot before the host releases it
STEP_OVERRIDES = ("timeoutSeconds", "lockTimeoutSeconds")  # those that a host applies
UNLISTED = "muster.unlisted"  # a label: why the databases or schemas of a target are unknown


class Task(msgspec.Struct, frozen=True, dict=True):
    """A dispatched_task, as SQL names that type, whose kind is 'task'."""

    run_day: date
    job_execution_id: UUID
    step_id: int
    ordinal: int
    attempt: int
    invocation_id: UUID
    target_execution_id: UUID
    job_id: UUID
    job_version: int
    run_create_time: datetime
    target_type: str
    target_id: UUID
    server_id: str
    server_name: str
    pool_name: str | None
    database_name: str | None  # None: the server could not be listed
    schema_name: str | None
    credential_id: UUID | None
    credential_version: int | None
    first_start: datetime | None
    tried_at: datetime | None
    directory: int  # its revision when the task was fetched
    script_outcome: ScriptOutcome | None  # of an earlier attempt: this one does not send the script
    overrides: Mapping[str, Any]
    labels: Mapping[str, Any]
    committed_attempt: int | None  # that sent the script: its spool file has the rows of the output

    @classmethod
    def of(cls, row: Row | Mapping[str, Any]) -> Self:
        *plain, overrides, labels, attempt = _fields(row)
        fields = *plain, _mapping(overrides), _mapping(labels), attempt
        return cls(*fields)

    @cached_property
    def key(self) -> str:
        """Identifies the task in a report: the fields with which the JSON object of every item begins."""
        return (
            f'{{"run_day":"{self.run_day}","job_execution_id":"{self.job_execution_id}"'
            f',"step_id":{self.step_id},"ordinal":{self.ordinal},"attempt":{self.attempt}'
            f',"invocation_id":"{self.invocation_id}"'
        )

    @property
    def target_key(self) -> tuple[date, UUID, int, int]:
        """Of its target execution."""
        return self.run_day, self.job_execution_id, self.step_id, self.ordinal

    @property
    def step_key(self) -> tuple[UUID, int, int]:
        return self.job_id, self.job_version, self.step_id

    @property
    def definition_key(self) -> tuple[object, ...]:
        """Of the step with the values that the run has instead of the step's own."""
        return *self.step_key, *(self.overrides.get(name) for name in STEP_OVERRIDES)

    @property
    def has_own_options(self) -> bool:
        return any(name in self.overrides for name in STEP_OVERRIDES)

    @property
    def login(self) -> tuple[object, ...]:
        """Tasks with equal logins can use one session."""
        database = self.server_id, self.directory, self.database_name
        return *database, self.credential_id, self.credential_version

    @property
    def max_rows(self) -> int:
        """How many rows of each result set the run wants to keep, if it names a number."""
        override = self.overrides.get("maxRows")
        return override if isinstance(override, int) else 2**31

    @property
    def rolls_back(self) -> bool:
        return self.overrides.get("rollback") is True


_fields = itemgetter(*Task.__struct_fields__)


def application_name(invocation: UUID) -> str:
    """Of the session in which an attempt runs."""
    return f"muster {invocation.hex}"


def run_values(task: Task, step: Step) -> RunValues:
    cached = step.runs.get(task.job_execution_id)
    if cached is None:
        if len(step.runs) >= CACHED_RUNS:
            step.runs.clear()
        cached = step.runs[task.job_execution_id] = RunValues(_values_of_run(task, step), {})
    return cached


def variable_values(task: Task, step: Step) -> dict[str, str]:
    """The values of the script's variables; variables that the target does not have are left out."""
    values = run_values(task, step).values.copy()
    values["target_server_name"] = task.server_name
    values["attempt"] = str(task.attempt)
    if task.database_name is not None:
        values["target_database_name"] = task.database_name
    if task.schema_name is not None:
        values["target_schema_name"] = task.schema_name
    for name, value in task.labels.items():
        values[f"target_label.{name}"] = _plain(value)
    return values


def _values_of_run(task: Task, step: Step) -> dict[str, str]:
    values = {
        "job_name": step.job_name,
        "job_id": str(task.job_id),
        "job_version": str(task.job_version),
        "step_id": str(step.step_id),
        "step_name": step.step_name,
        "job_execution_id": str(task.job_execution_id),
        "job_execution_create_time": task.run_create_time.isoformat(),
    }
    group = step.target_group_name
    return values if group is None else values | {"target_group_name": group}


def _mapping(text: str) -> Mapping[str, Any]:
    mapping: Mapping[str, Any] = NOTHING if text == "{}" else msgspec.json.decode(text)
    return mapping


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
