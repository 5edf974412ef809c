"""A step of a job: a script that runs on every target of a group."""

from typing import Any, ClassVar, Literal

from msgspec import UNSET

from workflows.model.wire import Maybe, Properties


class ActionProperties(Properties, frozen=True):
    REQUIRED: ClassVar = frozenset({"value"})

    type: Maybe[Literal["TSql"]] = UNSET
    source: Maybe[Literal["Inline"]] = UNSET
    value: Maybe[str] = UNSET


class OutputProperties(Properties, frozen=True):
    REQUIRED: ClassVar = frozenset({"serverName", "databaseName", "tableName"})
    ABOUT: ClassVar = {
        "schemaName": "Default: dbo, which stands for public where there is no schema dbo.",
        "credential": "Default: that of the step, of the target group, or the jobCredential of the server.",
        "includeTarget": (
            "Writes the columns target_server, target_database, target_schema and attempt too."
        ),
        "onMismatch": "What happens when the table lacks a column of the result; default: fail.",
    }

    type: Maybe[Literal["SqlDatabase"]] = UNSET
    subscription_id: Maybe[str] = UNSET
    resource_group_name: Maybe[str] = UNSET
    server_name: Maybe[str] = UNSET
    database_name: Maybe[str] = UNSET
    schema_name: Maybe[str] = UNSET
    table_name: Maybe[str] = UNSET
    credential: Maybe[str] = UNSET
    # Ours
    include_target: Maybe[bool] = UNSET
    on_mismatch: Maybe[Literal["fail", "addColumn"]] = UNSET


class ExecutionOptions(Properties, frozen=True):
    timeout_seconds: Maybe[int] = UNSET
    retry_attempts: Maybe[int] = UNSET
    initial_retry_interval_seconds: Maybe[int] = UNSET
    maximum_retry_interval_seconds: Maybe[int] = UNSET
    retry_interval_backoff_multiplier: Maybe[float] = UNSET
    # Ours
    max_parallelism: Maybe[int] = UNSET


class StepSettings(Properties, frozen=True):
    lock_timeout_seconds: Maybe[float] = UNSET
    role: Maybe[str] = UNSET
    search_path: Maybe[str] = UNSET
    access: Maybe[Literal["readWrite", "readOnly", "preferStandby"]] = UNSET
    parameters: Maybe[dict[str, str]] = UNSET


class Rollout(Properties, frozen=True):
    REQUIRED: ClassVar = frozenset({"waves"})

    waves: Maybe[list[Any]] = UNSET  # counts and percentages, as in [1, "5%", "100%"]
    order_by: Maybe[str] = UNSET
    halt_after_failures: Maybe[Any] = UNSET  # a count or a percentage
    pause_between: Maybe[str] = UNSET
    gate: Maybe[Literal["auto", "manual"]] = UNSET


class Verify(Properties, frozen=True):
    REQUIRED: ClassVar = frozenset({"sql"})
    ABOUT: ClassVar = {
        "sql": "Exactly one statement that only reads; variables as in a script.",
        "expect": (
            "nonEmpty (default): at least one row; empty: no row; true: one row with one column that is true; "
            "value: one row whose first column, as text, is `value`."
        ),
        "value": "A text, a number or a boolean; with expect 'value' only.",
        "skipIfHolds": "Asked before the script too; if it holds, nothing is done (AlreadyHolds).",
        "timeoutSeconds": "statement_timeout of the query; default 60.",
    }

    sql: Maybe[str] = UNSET
    expect: Maybe[Literal["nonEmpty", "empty", "true", "value"]] = UNSET
    value: Maybe[Any] = UNSET
    skip_if_holds: Maybe[bool] = UNSET
    timeout_seconds: Maybe[int] = UNSET


class StepContent(Properties, frozen=True):
    REQUIRED: ClassVar = frozenset({"targetGroup", "action"})
    ABOUT: ClassVar = {
        "output": (
            "The rows of the script's first result set are written to this table after the commit, in one "
            "transaction per target; the script is not repeated for it. The table is created if it does not exist."
        ),
        "rollout": (
            "Targets start in waves: each entry of 'waves' says how many targets have started with it in all, as "
            "a count or a percentage; targets that no entry covers start in a last wave. The run is halted when "
            "'haltAfterFailures' targets (default 1; a percentage counts the targets of the waves so far) have "
            "failed, and waits after each wave for 'pauseBetween', or with the gate 'manual' for a resume."
        ),
        "verify": (
            "A query that is asked after the script's commit, in a READ ONLY transaction of its own; it decides "
            "whether the target ends Succeeded or Failed (VerifyFailed). The script is not repeated for it."
        ),
        "advance": (
            "When the step begins on a target: with 'barrier', the default, when the previous step has ended "
            "everywhere and has not failed; with 'perTarget' as soon as the target has succeeded in the previous "
            "step, whose rollout holds for this step too. Not of the first step."
        ),
        "guard": (
            "true: the script is applied once per run and target, whatever happens to an attempt; the "
            "next run applies it again. 'job': it is applied once per job, step, text of the script and "
            "target, for ever; a later run ends Succeeded with the reason AlreadyApplied."
        ),
    }

    target_group: Maybe[str] = UNSET
    credential: Maybe[str] = UNSET
    action: Maybe[ActionProperties] = UNSET
    output: Maybe[OutputProperties] = UNSET
    execution_options: Maybe[ExecutionOptions] = UNSET
    # Ours
    transaction: Maybe[Literal["auto", "none"]] = UNSET
    settings: Maybe[StepSettings] = UNSET
    advance: Maybe[Literal["barrier", "perTarget"]] = UNSET
    on_failure: Maybe[Literal["stop", "continue"]] = UNSET
    rollout: Maybe[Rollout] = UNSET
    verify: Maybe[Verify] = UNSET
    guard: Maybe[bool | Literal["job"]] = UNSET
    idempotent: Maybe[bool] = UNSET
    retry_on: Maybe[list[str]] = UNSET
    allow_empty: Maybe[bool] = UNSET
    slots_per_database: Maybe[int] = UNSET
    jitter: Maybe[float] = UNSET


class StepProperties(StepContent, frozen=True):
    step_id: Maybe[int] = UNSET


class StepOfJob(StepContent, frozen=True):
    """A step in the list of its job; its number is its place there."""

    READ_ONLY: ClassVar = frozenset({"stepId"})
    REQUIRED: ClassVar = StepContent.REQUIRED | {"name"}

    name: Maybe[str] = UNSET
