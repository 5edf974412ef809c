"""Jobs with their steps in order and their schedule: one resource here, several objects in the API."""

from typing import Any

from muster_terraform.api import Api
from muster_terraform.attributes import (
    BOOL,
    NUMBER,
    STRINGS,
    TEXTS,
    Document,
    Nested,
    State,
    field,
    prop,
)
from muster_terraform.resources.accounts import AUTO_DISABLE, RUN_ATTEMPTS
from muster_terraform.types import Finding, ResourceType

NEVER = {  # how the API shows that a job has no schedule
    "type": "Once",
    "enabled": False,
    "endTime": "9999-12-31T11:59:59Z",
    "misfire": {"policy": "runOnce"},
    "overlap": "skipTarget",
    "startTime": "0001-01-01T00:00:00Z",
}


def _number_or_text(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _guard(text: str) -> bool | str:
    return {"true": True, "false": False}.get(text, text)


SCHEDULE = Nested((
    field("type", default="Recurring", choices=("Once", "Recurring")),
    field("enabled", BOOL, default=True),
    field("interval", about="ISO 8601, such as PT15M or P1D."),
    field("cron", about="In the place of `interval`: five fields."),
    field("time_zone", about="Of `cron`, such as Europe/Berlin."),
    field("start_time", default=NEVER["startTime"]),
    field("end_time", default=NEVER["endTime"]),
    field("misfire", Nested((
        field("policy", default="runOnce", choices=("runOnce", "skip")),
        field("within_seconds", NUMBER),
    )), blank=NEVER["misfire"], about="What becomes of a slot that was missed."),
    field("overlap", default="skipTarget", choices=("allow", "cancelPrevious", "queueOne", "skipExecution", "skipTarget")),
))  # fmt: skip
USUAL_OPTIONS = {
    "timeoutSeconds": 43200,
    "retryAttempts": 10,
    "initialRetryIntervalSeconds": 1,
    "maximumRetryIntervalSeconds": 120,
    "retryIntervalBackoffMultiplier": 2,
}
EXECUTION_OPTIONS = Nested(
    (
        field("timeout_seconds", NUMBER, default=43200),
        field("retry_attempts", NUMBER, default=10),
        field("initial_retry_interval_seconds", NUMBER, default=1),
        field("maximum_retry_interval_seconds", NUMBER, default=120),
        field("retry_interval_backoff_multiplier", NUMBER, default=2),
        field("max_parallelism", NUMBER, about="Targets at once."),
    )
)
OUTPUT = Nested(
    (
        field("server_name", required=True, optional=False),
        field("database_name", required=True, optional=False),
        field("table_name", required=True, optional=False),
        field("schema_name"),
        field("subscription_id"),
        field("resource_group_name"),
        field("credential", about="Id of a credential."),
        field("include_target", BOOL),
        field("on_mismatch", choices=("addColumn", "fail")),
    )
)
SETTINGS = Nested(
    (
        field("lock_timeout_seconds", NUMBER),
        field("role"),
        field("search_path"),
        field("access", choices=("preferStandby", "readOnly", "readWrite")),
        field("parameters", TEXTS),
    )
)
ROLLOUT = Nested((
    field(
        "waves", STRINGS, required=True, optional=False, about='Counts and percentages, as in ["1", "5%", "100%"].',
        read=lambda waves: [_text(each) for each in waves], write=lambda waves: [_number_or_text(each) for each in waves],
    ),
    field("order_by"),
    field("halt_after_failures", read=_text, write=_number_or_text, about="A count or a percentage."),
    field("pause_between", about="ISO 8601, such as PT5M."),
    field("gate", choices=("auto", "manual")),
))  # fmt: skip
VERIFY = Nested(
    (
        field("sql", required=True, optional=False, about="One statement that only reads."),
        field("expect", choices=("empty", "nonEmpty", "true", "value")),
        field("value", read=_text),
        field("skip_if_holds", BOOL),
        field("timeout_seconds", NUMBER),
    )
)
STEP = Nested(
    (
        field("name", required=True, optional=False),
        field("target_group", required=True, optional=False, about="Id of the target group."),
        field("sql", at="action.value", required=True, optional=False, about="The script."),
        field("credential", about="Id of the credential; default: that of the target group or server."),
        field("execution_options", EXECUTION_OPTIONS, blank=USUAL_OPTIONS),
        field("output", OUTPUT, about="The table that takes the rows of the script's first result set."),
        field("transaction", choices=("auto", "none")),
        field("settings", SETTINGS),
        field("advance", choices=("barrier", "perTarget")),
        field("on_failure", choices=("continue", "stop")),
        field("rollout", ROLLOUT),
        field("verify", VERIFY),
        field("guard", read=_text, write=_guard, choices=("true", "false", "job"), about="true: once per run and target; job: once for ever."),
        field("idempotent", BOOL),
        field("retry_on", STRINGS, about="SQLSTATEs."),
        field("allow_empty", BOOL),
        field("slots_per_database", NUMBER),
        field("jitter", NUMBER),
    ),
    many=True,
)  # fmt: skip


class JobType(ResourceType):
    def findings(self, config: State) -> list[Finding]:
        names: set[str] = set()
        wrong: list[Finding] = []
        for place, step in enumerate(config["step"] if isinstance(config["step"], list) else ()):
            name = step.get("name") if isinstance(step, dict) else None
            if isinstance(name, str) and name.lower() in names:
                wrong.append((f"Another step has the name '{name}' too.", ["step", place, "name"]))
            elif isinstance(name, str):
                names.add(name.lower())
        return wrong

    def fetch(self, api: Api, id: str) -> Document | None:
        """Its steps are shown in a list of their own, and written in one of its properties."""
        job = api.find(id)
        if job:
            steps = api.all(f"{id}/steps")
            job["properties"]["steps"] = [
                {"name": each["name"]} | each["properties"] for each in steps
            ]
        return job


JOB = JobType(
    name="job",
    collection="jobs",
    parent="account_id",
    in_account=True,
    attributes=(
        prop("description", blank=""),
        prop(
            "schedule", SCHEDULE, blank=NEVER, about="Without it the job runs when it is started."
        ),
        prop("paused", BOOL, default=False),
        prop("owner"),
        prop("labels", TEXTS, blank={}),
        prop("retention_days", NUMBER),
        prop("run_attempts", RUN_ATTEMPTS),
        prop("auto_disable", AUTO_DISABLE),
        prop("step", STEP, at="steps", about="In the order in which they run."),
    ),
    about="A job: its steps in order, and when it runs.",
)
