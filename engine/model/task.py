"""What a host works on: steps, tasks, servers and credentials, as the control database gives them."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Self
from uuid import UUID

import msgspec

from engine.model import group_document
from muster.core import script_reader, variables
from muster.core.errors import InvalidRequest
from muster.core.read_only_sql import QUERY, only_reads
from muster.core.script import Analysis, Script, analyse
from muster.core.sqltext import tokens

KEPT_RUNS = 32  # of a step
BANNER = 300  # characters of the first statement
NOTHING: Mapping[str, Any] = {}
WITHOUT_LOCK_TIMEOUT = re.compile(r"vacuum\b|.*\bconcurrently\b")
TO_SAVEPOINT = re.compile(r"rollback(?: work| transaction)? to\b")
COMMITS_INSIDE = re.compile(r"(?:call|do)\b")
LOCK_TIMEOUT = 5.0  # seconds
OWN_LOCK_TIMEOUT = re.compile(r"(?i)\bset(?:\s+session)?\s+lock_timeout|'lock_timeout'\s*,")
PREFETCH_LIMIT = 1.0  # seconds that a prefetched task waits in its slot before the host releases it
UNLISTED = "muster.unlisted"  # a label: why the databases or schemas of a target are unknown
SHORTEST_RIDE = 10  # seconds of a step whose tasks may wait for each other
MOST_TOLD = 3  # of what is wrong with a script


class TargetServer(group_document.Server, frozen=True):
    """With its budget: what was set, or what was seen at first contact."""

    max_connections: int | None = None
    connections_per_second: float | None = None
    budget: int | None = None


class Served(msgspec.Struct, frozen=True):
    revision: int
    identity: UUID
    servers: tuple[TargetServer, ...]


class VersionedCredential(group_document.Credential, frozen=True, kw_only=True):
    credential_id: UUID
    row_version: int


class ScriptSettings(msgspec.Struct, frozen=True, rename="camel"):
    """options.settings: what a script finds around it."""

    lock_timeout_seconds: float | None = None
    role: str | None = None
    search_path: str | None = None
    access: Literal["readWrite", "readOnly", "preferStandby"] = "readWrite"
    parameters: dict[str, str] = {}


class Options(msgspec.Struct, frozen=True, rename="camel"):
    """Lenient: others read the rest."""

    transaction: Literal["auto", "none"] = "auto"
    settings: ScriptSettings = ScriptSettings()
    guard: bool | Literal["job"] = False  # True: once per run; "job": once per job
    idempotent: bool = False
    retry_on: tuple[str, ...] = ()


class Step(msgspec.Struct, frozen=True, kw_only=True, rename="camel", dict=True):
    job_name: str
    step_name: str
    step_id: int
    target_group_name: str | None
    script: str
    timeout_seconds: int
    retry_attempts: int = 0
    initial_retry_interval_seconds: float = 1
    maximum_retry_interval_seconds: float = 120
    retry_interval_backoff_multiplier: float = 2
    options: Options = Options()
    content_hash: str = ""  # hex
    has_output: bool = False

    @cached_property
    def analysis(self) -> Analysis:
        """A host has it read beforehand: see `prepare`."""
        return analyse(self.script, self.options.transaction)

    async def prepare(self) -> None:
        """Has the script read within a time limit, beside other work."""
        self.__dict__["analysis"] = await script_reader.analyse(
            self.script, self.options.transaction
        )

    @property
    def parsed(self) -> Script:
        return self.analysis.script

    @cached_property
    def refusal(self) -> str:
        """Why it can't run as it was written: only the API checks scripts when it takes them."""
        problems = self.analysis.problems[:MOST_TOLD]
        told = [f"{each.message} {each.advice}" for each in problems]
        if not told and self.options.guard and not self.guarded:
            told.append("guard needs a script that writes, in a transaction of its own.")
        return " ".join(told)

    @cached_property
    def pieces(self) -> tuple["ScriptPart", ...]:
        """What goes to the server one by one; a text that the grammar refuses goes whole."""
        script = self.parsed
        if not script.statements or self.whole:
            return (ScriptPart.of(self.script, 0, ""),)
        return tuple(ScriptPart.of(each.text, each.start, each.head) for each in script.statements)

    @cached_property
    def autocommit(self) -> bool:
        """Each statement commits by itself."""
        return self.options.transaction == "none" or self.parsed.autocommit

    @cached_property
    def needs_session(self) -> bool:
        """A session of its own, which it may leave as it likes: one that is cleaned, or closed, behind it."""
        return self.autocommit or any(each.lasting for each in self.parsed.statements)

    @cached_property
    def whole(self) -> bool:
        """Its statements can't be told apart, so it goes as it is."""
        return not self.autocommit and not self.parsed.parsed

    @cached_property
    def banner(self) -> str:
        """For who looks at pg_stat_activity: what the message that begins with it is about."""
        text = f"{self.job_name} / {self.step_name}: {self.pieces[0].text[:BANNER]}"
        bare = text.replace("\0", "").replace("/*", "/ *").replace("*/", "* /")
        return f"/* {bare} */ "

    @cached_property
    def runs(self) -> dict[UUID, "RunValues"]:
        return {}

    @cached_property
    def read_only(self) -> bool:
        return self.options.settings.access != "readWrite"

    @cached_property
    def guarded(self) -> bool:
        """A row can be written in the script's own transaction, so there has to be one."""
        return bool(self.options.guard) and not self.autocommit and not self.read_only

    @cached_property
    def script_hash(self) -> str:
        return sha256(self.script.encode()).hexdigest()

    @cached_property
    def goes_along(self) -> bool:
        """Several of its tasks can go to one database in one breath: each one query that writes nothing.

        See `goes_alone`.
        """
        if len(self.parsed.statements) != 1 or self.refusal or self.whole or self.needs_session:
            return False
        (query,) = self.parsed.statements
        reads = self.read_only and query.head.split(" ", 1)[0] in QUERY
        plain = not self.guarded and not self.options.settings.parameters and not self.has_output
        plain = plain and self.timeout_seconds >= SHORTEST_RIDE
        return plain and (reads or only_reads(tokens(query.text)))

    def goes_alone(self) -> None:
        """From now on, here: it writes after all, or something else keeps its tasks from going together."""
        self.__dict__["goes_along"] = False

    @cached_property
    def lock_timeout(self) -> float:
        """Seconds that the script begins with; 0 = none."""
        return self.lock_timeout_of(self.pieces[0])

    @cached_property
    def _sets_lock_timeout(self) -> bool:
        return OWN_LOCK_TIMEOUT.search(self.script) is not None

    def lock_timeout_of(self, piece: "ScriptPart") -> float:
        wanted = self.options.settings.lock_timeout_seconds
        if wanted is not None:
            return wanted
        if self._sets_lock_timeout:
            piece = self.pieces[0]
        return 0.0 if self.autocommit and piece.patient else LOCK_TIMEOUT


class ScriptPart(msgspec.Struct, frozen=True):
    text: str
    start: int  # offset in the script
    head: str
    varies: bool  # with the target

    @classmethod
    def of(cls, text: str, start: int, head: str) -> Self:
        return cls(text, start, head, "$(" in text and bool(variables.variables(text)))

    @property
    def patient(self) -> bool:
        """It queues for locks without keeping others from theirs, for as long as it takes."""
        return WITHOUT_LOCK_TIMEOUT.match(self.head) is not None

    @property
    def commits_inside(self) -> bool:
        """What it did may stay though it failed, where it is no part of a transaction."""
        return COMMITS_INSIDE.match(self.head) is not None

    @property
    def rolls_back_to_savepoint(self) -> bool:
        return TO_SAVEPOINT.match(self.head) is not None

    def rendered(self, values: Mapping[str, str]) -> str:
        return variables.render(self.text, values) if self.varies else self.text

    def origin(self, position: int, values: Mapping[str, str]) -> int:
        """Where in the script that character of the rendered text comes from; both count from 1."""
        offset, shift = position - 1, 0
        for use, start, end in variables.spans(self.text, values) if self.varies else ():
            if offset < start:
                break
            if offset < end:
                return self.start + use.start + 1
            shift = end - use.end
        return self.start + offset - shift + 1


class Task(msgspec.Struct, frozen=True, dict=True):
    """A row of fetch_dispatches whose kind is 'task'; in the order in which it is asked for."""

    number: int
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
    directory: int  # its revision when the task was taken
    overrides: Mapping[str, Any]
    labels: Mapping[str, Any]

    @classmethod
    def of(cls, row: Sequence[Any]) -> Self:
        *plain, overrides, labels = row
        whole = *plain, _mapping(overrides), _mapping(labels)
        return cls(*whole)

    @cached_property
    def key(self) -> str:
        """By which report finds it: the beginning of a JSON object."""
        run, step, place = self.job_execution_id, self.step_id, self.ordinal
        return (
            f'{{"d":"{self.run_day}","r":"{run}","s":{step},"o":{place},"a":{self.attempt}'
            f',"i":"{self.invocation_id}"'
        )

    @property
    def login(self) -> tuple[object, ...]:
        """Tasks with the same one can use one session."""
        place = self.server_id, self.directory, self.database_name
        return *place, self.credential_id, self.credential_version

    @property
    def most_rows(self) -> int:
        """Of each result set that are kept, where whoever asked wants fewer than we would keep."""
        wanted = self.overrides.get("maxRows")
        return wanted if isinstance(wanted, int) else 2**31

    @property
    def rolls_back(self) -> bool:
        return self.overrides.get("rollback") is True


def application_name(invocation: UUID) -> str:
    """Of the session in which an attempt runs."""
    return f"muster {invocation.hex}"


class RunValues(NamedTuple):
    """What all tasks of a step have in common in a run, made once."""

    values: dict[str, str]
    said: dict[Any, tuple[str, int]]  # made from them; whoever makes one names it


def run_of(task: Task, step: Step) -> RunValues:
    known = step.runs.get(task.job_execution_id)
    if known is None:
        if len(step.runs) >= KEPT_RUNS:
            step.runs.clear()
        known = step.runs[task.job_execution_id] = RunValues(_values_of_run(task, step), {})
    return known


def values(task: Task, step: Step) -> dict[str, str]:
    """Of the variables; what this target does not have is left out."""
    given = run_of(task, step).values.copy()
    given["target_server_name"] = task.server_name
    given["attempt"] = str(task.attempt)
    if task.database_name is not None:
        given["target_database_name"] = task.database_name
    if task.schema_name is not None:
        given["target_schema_name"] = task.schema_name
    for name, value in task.labels.items():
        given[f"target_label.{name}"] = _plain(value)
    return given


def named(text: str, values: Mapping[str, str]) -> str:
    """A role's or user's name with its variables; there is nothing in it that could be quoted."""

    def value(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in values or "\0" in values[name]:
            raise InvalidRequest(f"$({name}) has no value here.", code=variables.UNKNOWN)
        return values[name]

    return variables.USE.sub(value, text)


def as_login(who: VersionedCredential, task: Task, step: Step) -> VersionedCredential:
    """The credential with the user name that it has on this target."""
    if "$(" not in who.username:
        return who
    return msgspec.structs.replace(who, username=named(who.username, values(task, step)))


def at(server: TargetServer, step: Step) -> TargetServer:
    """The server as the step wants to reach it."""
    if step.options.settings.access != "preferStandby":
        return server
    return msgspec.structs.replace(server, target_session_attrs="prefer-standby")


def _values_of_run(task: Task, step: Step) -> dict[str, str]:
    known = {
        "job_name": step.job_name,
        "job_id": str(task.job_id),
        "job_version": str(task.job_version),
        "step_id": str(step.step_id),
        "step_name": step.step_name,
        "job_execution_id": str(task.job_execution_id),
        "job_execution_create_time": task.run_create_time.isoformat(),
    }
    group = step.target_group_name
    return known if group is None else known | {"target_group_name": group}


def _mapping(text: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = NOTHING if text == "{}" else msgspec.json.decode(text)
    return found


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
