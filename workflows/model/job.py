"""A job: a versioned list of steps, and when it runs."""

from typing import ClassVar, Literal

from msgspec import UNSET

from workflows.model.step import StepOfJob
from workflows.model.wire import Maybe, Properties


class MisfireProperties(Properties, frozen=True):
    policy: Maybe[Literal["runOnce", "skip"]] = UNSET
    within_seconds: Maybe[int] = UNSET


class ScheduleProperties(Properties, frozen=True):
    start_time: Maybe[str] = UNSET
    end_time: Maybe[str] = UNSET
    type: Maybe[Literal["Once", "Recurring"]] = UNSET
    enabled: Maybe[bool] = UNSET
    interval: Maybe[str] = UNSET
    # Ours
    cron: Maybe[str] = UNSET
    time_zone: Maybe[str] = UNSET
    misfire: Maybe[MisfireProperties] = UNSET
    overlap: Maybe[
        Literal["skipTarget", "skipExecution", "queueOne", "allow", "cancelPrevious"]
    ] = UNSET


class RunAttemptsProperties(Properties, frozen=True):
    REQUIRED: ClassVar = frozenset({"enabled"})
    ABOUT: ClassVar = {
        "enabled": "true: a run repeats its targets that have not succeeded, in further attempts.",
        "maxSuccessiveWithoutProgress": "Attempts in a row in which no target newly succeeded. Default: 5.",
        "maxWithoutProgress": "Attempts in which no target newly succeeded. Default: 10.",
        "maxWithProgress": "Failed attempts in which a target newly succeeded. Default: 20.",
        "backoffSeconds": "Pauses after the first, second, … successive attempt without progress; the last one holds for "
        "all that follow. Default: 10, 30, 90, 270.",
    }

    enabled: Maybe[bool] = UNSET
    max_successive_without_progress: Maybe[int] = UNSET
    max_without_progress: Maybe[int] = UNSET
    max_with_progress: Maybe[int] = UNSET
    backoff_seconds: Maybe[list[int]] = UNSET


class AutoDisable(Properties, frozen=True):
    """The schedule is disabled when both limits are reached; without values: 30 failures, 7 days."""

    failures: Maybe[int] = UNSET  # in a row; 0: never
    days: Maybe[float] = UNSET  # since the last success
    warning_failures: Maybe[int] = UNSET  # default: two thirds of `failures`
    warning_days: Maybe[float] = UNSET  # default: four sevenths of `days`


class JobProperties(Properties, frozen=True):
    READ_ONLY: ClassVar = frozenset({"version", "health", "lastRun", "nextRunTime"})
    WRITE_ONLY: ClassVar = frozenset({"steps"})
    ABOUT: ClassVar = {
        "steps": (
            "All steps of the job, in their order: they are written together with it, as one new version; steps that "
            "the list does not have are removed. Without it the steps stay as they are. It is shown at jobs/{jobName}/steps."
        ),
        "priority": "Values other than 0 are not supported by this version and refused.",
    }

    description: Maybe[str] = UNSET
    schedule: Maybe[ScheduleProperties] = UNSET
    # Ours
    paused: Maybe[bool] = UNSET
    priority: Maybe[int] = UNSET
    owner: Maybe[str] = UNSET
    labels: Maybe[dict[str, str]] = UNSET
    retention_days: Maybe[int] = UNSET
    run_attempts: Maybe[RunAttemptsProperties] = UNSET
    auto_disable: Maybe[AutoDisable] = UNSET  # default: that of the account
    steps: Maybe[list[StepOfJob]] = UNSET


class JobVersionProperties(Properties, frozen=True):
    """A version is a number and its steps."""
