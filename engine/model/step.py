"""Steps: the script, its options, and what follows from both."""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import Any, Literal, NamedTuple, Self
from uuid import UUID

import msgspec

from engine.model.output import OutputOptions, StepOutput
from engine.model.verification import Verify
from muster.core import script_reader, variables, verify_query
from muster.core.read_only_sql import QUERY, only_reads
from muster.core.script import Analysis, Script, analyse
from muster.core.sqltext import Problem, tokens

BANNER_LENGTH = 300  # characters of the first statement
LOCK_TIMEOUT = 5.0  # seconds
MIN_BATCH_TIMEOUT = 10  # seconds: a step with a shorter timeout is not batched
MAX_PROBLEMS = 3  # of a script that one message names
WAITS_FOR_LOCKS = re.compile(r"vacuum\b|.*\bconcurrently\b")
TO_SAVEPOINT = re.compile(r"rollback(?: work| transaction)? to\b")
COMMITS_INSIDE = re.compile(r"(?:call|do)\b")
SETS_LOCK_TIMEOUT = re.compile(r"(?i)\bset(?:\s+session)?\s+lock_timeout|'lock_timeout'\s*,")


class ScriptSettings(msgspec.Struct, frozen=True, rename="camel"):
    """options.settings: the session settings under which a script runs."""

    lock_timeout_seconds: float | None = None
    role: str | None = None
    search_path: str | None = None
    access: Literal["readWrite", "readOnly", "preferStandby"] = "readWrite"
    parameters: dict[str, str] = {}


class StepOptions(msgspec.Struct, frozen=True, rename="camel"):
    """The options that a host reads; unknown fields are ignored."""

    transaction: Literal["auto", "none"] = "auto"
    settings: ScriptSettings = ScriptSettings()
    guard: bool | Literal["job"] = False  # True: once per run; "job": once per job
    idempotent: bool = False
    retry_on: tuple[str, ...] = ()
    verify: Verify | None = None
    output: OutputOptions = OutputOptions()


class RunValues(NamedTuple):
    """What all tasks of a step have in common in one run, computed once."""

    values: dict[str, str]  # of the variables
    setup_texts: dict[tuple[str, bool, bool], tuple[str, int]]  # see attempt/session_setup.py


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
    options: StepOptions = StepOptions()
    content_hash: str = ""  # hex
    output: StepOutput | None = None

    def with_overrides(self, overrides: Mapping[str, Any]) -> Self:
        """With the values that one run has instead of the step's own."""
        settings, timeout = self.options.settings, overrides.get("timeoutSeconds")
        lock_timeout = overrides.get("lockTimeoutSeconds", settings.lock_timeout_seconds)
        settings = msgspec.structs.replace(settings, lock_timeout_seconds=lock_timeout)
        return msgspec.structs.replace(
            self,
            timeout_seconds=timeout or self.timeout_seconds,
            options=msgspec.structs.replace(self.options, settings=settings),
        )

    @cached_property
    def analysis(self) -> Analysis:
        """A host analyses the script beforehand: see `prepare`."""
        return analyse(self.script, self.options.transaction)

    async def prepare(self) -> None:
        """Analyses the script in another process, within a time limit; fills the cache of `analysis`."""
        self.__dict__["analysis"] = await script_reader.analyse(
            self.script, self.options.transaction
        )
        if (verify := self.options.verify) is not None:
            self.__dict__["verify_analysis"] = await script_reader.analyse(verify.sql, "auto")

    @cached_property
    def verify_analysis(self) -> Analysis | None:
        verify = self.options.verify
        return None if verify is None else analyse(verify.sql, "auto")

    @cached_property
    def verify_query(self) -> "ScriptPart":
        """The only statement of options.verify."""
        assert self.verify_analysis is not None
        (query,) = self.verify_analysis.script.statements
        return ScriptPart.of(query.text, query.start, query.head)

    @property
    def parsed(self) -> Script:
        return self.analysis.script

    @cached_property
    def refusal(self) -> str:
        """Why the step can't run as it is written; only the API checks scripts when a step is written."""
        sentences = _sentences(self.analysis.problems)
        if not sentences and self.options.guard and not self.guarded:
            sentences.append("guard needs a script that writes, in a transaction of its own.")
        if not sentences and self.verify_analysis is not None:
            problems = verify_query.problems(self.verify_analysis)
            sentences = [f"options.verify: {each}" for each in _sentences(problems)]
        return " ".join(sentences)

    @cached_property
    def parts(self) -> tuple["ScriptPart", ...]:
        """The statements, sent one by one; a text that the grammar refuses is sent whole."""
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
        """The script may change its session, so it needs one that no pooler shares; a reset undoes the changes."""
        return self.autocommit or any(each.lasting for each in self.parsed.statements)

    @cached_property
    def whole(self) -> bool:
        """The script can't be split into statements, so it is sent as it is."""
        return not self.autocommit and not self.parsed.parsed

    @cached_property
    def banner(self) -> str:
        """A comment before the first statement, for readers of pg_stat_activity."""
        text = f"{self.job_name} / {self.step_name}: {self.parts[0].text[:BANNER_LENGTH]}"
        bare = text.replace("\0", "").replace("/*", "/ *").replace("*/", "* /")
        return f"/* {bare} */ "

    @cached_property
    def runs(self) -> dict[UUID, RunValues]:
        """A cache: see `task.run_values`."""
        return {}

    @cached_property
    def read_only(self) -> bool:
        return self.options.settings.access != "readWrite"

    @cached_property
    def guarded(self) -> bool:
        """The guard's row is written in the script's own transaction, so there must be one."""
        return bool(self.options.guard) and not self.autocommit and not self.read_only

    @cached_property
    def script_hash(self) -> str:
        return sha256(self.script.encode()).hexdigest()

    @cached_property
    def batchable(self) -> bool:
        """Tasks of the step may share a read batch: the script is one query that writes nothing.

        A host may learn that it writes after all: see `attempt/read_batch.py`.
        """
        if len(self.parsed.statements) != 1 or self.refusal or self.whole or self.needs_session:
            return False
        (query,) = self.parsed.statements
        reads = self.read_only and query.head.split(" ", 1)[0] in QUERY
        plain = not self.guarded and not self.options.settings.parameters and not self.output
        plain = plain and self.timeout_seconds >= MIN_BATCH_TIMEOUT and not self.options.verify
        return plain and (reads or only_reads(tokens(query.text)))

    @cached_property
    def lock_timeout(self) -> float:
        """Seconds, for the first statement; 0 = none."""
        return self.lock_timeout_of(self.parts[0])

    @cached_property
    def _sets_lock_timeout(self) -> bool:
        return SETS_LOCK_TIMEOUT.search(self.script) is not None

    def lock_timeout_of(self, part: "ScriptPart") -> float:
        option = self.options.settings.lock_timeout_seconds
        if option is not None:
            return option
        if self._sets_lock_timeout:
            part = self.parts[0]
        return 0.0 if self.autocommit and part.waits_for_locks else LOCK_TIMEOUT


class ScriptPart(msgspec.Struct, frozen=True):
    """A statement of the script, or the whole script."""

    text: str
    start: int  # offset in the script
    head: str
    varies: bool  # with the target

    @classmethod
    def of(cls, text: str, start: int, head: str) -> Self:
        return cls(text, start, head, "$(" in text and bool(variables.variables(text)))

    @property
    def waits_for_locks(self) -> bool:
        """The statement waits for locks without blocking other sessions, so it needs no lock timeout."""
        return WAITS_FOR_LOCKS.match(self.head) is not None

    @property
    def commits_inside(self) -> bool:
        """Outside of a transaction, a failure may leave committed effects of the statement."""
        return COMMITS_INSIDE.match(self.head) is not None

    @property
    def rolls_back_to_savepoint(self) -> bool:
        return TO_SAVEPOINT.match(self.head) is not None

    def rendered(self, values: Mapping[str, str]) -> str:
        return variables.render(self.text, values) if self.varies else self.text

    def origin(self, position: int, values: Mapping[str, str]) -> int:
        """The position in the script of a character of the rendered text; both count from 1."""
        offset, shift = position - 1, 0
        for use, start, end in variables.spans(self.text, values) if self.varies else ():
            if offset < start:
                break
            if offset < end:
                return self.start + use.start + 1
            shift = end - use.end
        return self.start + offset - shift + 1


def _sentences(problems: Iterable[Problem]) -> list[str]:
    return [f"{each.message} {each.advice}" for each in islice(problems, MAX_PROBLEMS)]
