"""A job account, ARM's `jobAgents`: a Jobs application linked to a control database."""

from typing import ClassVar

from msgspec import UNSET

from workflows.model.job import RunAttemptsProperties
from workflows.model.wire import Maybe, Properties

ACCOUNT = "Microsoft.Sql/servers/jobAgents"

CAPACITIES = {"JA100": 100, "JA200": 200, "JA400": 400, "JA800": 800}  # concurrent targets
OWN_SKU = "MUSTER"  # any capacity
OLD_SKU = "Agent"  # what the first clients sent; means the smallest


class AccountProperties(Properties, frozen=True):
    READ_ONLY: ClassVar = frozenset(
        {"state", "provisioningState", "instance", "lastError", "conditions", "paused"}
    )

    database_id: Maybe[str] = UNSET
    default_credential: Maybe[str] = UNSET  # its name: for targets where nothing else names one
    # So many targets in a row with the same error halt a step without a rollout; 0: no limit.
    halt_after_consecutive_same_error: Maybe[int] = UNSET
    run_attempts: Maybe[RunAttemptsProperties] = UNSET  # where a job says nothing about it


class AllowedServer(Properties, frozen=True):
    REQUIRED: ClassVar = frozenset({"server"})

    server: Maybe[str] = UNSET  # its name


class DisallowedServer(AllowedServer, frozen=True):
    force: Maybe[bool] = UNSET  # also while target groups name it or executions run there
