"""What a start of a job may choose: a plan, or targets, a limit and other values of step options."""

from typing import ClassVar

from msgspec import UNSET

from workflows.model.step import Rollout
from workflows.model.wire import Maybe, Properties

TARGETS = "Replace the target group of every step: databases, schemas, and servers with all of their databases."
LIMIT = (
    "The first so many targets of each step, in the order of its rollout; a later step keeps those that an earlier one "
    "had."
)


class RunTarget(Properties, frozen=True):
    REQUIRED: ClassVar = frozenset({"serverName"})

    server_name: Maybe[str] = UNSET
    database_name: Maybe[str] = UNSET  # absent: all databases of the server; * and ? as in a member
    schema_name: Maybe[str] = UNSET


class Overrides(Properties, frozen=True):
    """Values for one run, in place of those of each step."""

    timeout_seconds: Maybe[int] = UNSET
    retry_attempts: Maybe[int] = UNSET
    max_parallelism: Maybe[int] = UNSET
    lock_timeout_seconds: Maybe[float] = UNSET
    rollout: Maybe[Rollout] = UNSET


class Start(Properties, frozen=True):
    """Without a body the whole job runs in its current version."""

    ABOUT: ClassVar = {
        "planId": "Runs the version and the targets of this plan; combines with nothing else.",
        "targets": TARGETS,
        "limit": LIMIT,
        "overrides": "Values for this run, in place of those of each step.",
    }

    plan_id: Maybe[str] = UNSET
    targets: Maybe[list[RunTarget]] = UNSET
    limit: Maybe[int] = UNSET
    overrides: Maybe[Overrides] = UNSET


class PlanProperties(Properties, frozen=True):
    """What a start would run; nothing of it can be set."""

    READ_ONLY: ClassVar = frozenset(
        {"jobVersion", "expiresAt", "jobExecutionId", "count", "shortestSeconds", "steps"}
    )
