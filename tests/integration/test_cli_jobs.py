"""Jobs and steps at the command line: everything can be set, and an update changes only what is said."""

import pytest

from tests.support.cli_bridge import bridge
from tests.support.jobs_fixture import ref, start_jobs_api

pytestmark = pytest.mark.newest

OF_STEP = [
    "--credential", "login", "--timeout", "2h", "--retry-attempts", "3", "--retry-interval", "2s",
    "--retry-maximum", "1m", "--retry-factor", "1.5", "--retry-on", "42P01,23", "--jitter", "0.5",
    "--max-parallelism", "4", "--slots-per-database", "2", "--lock-timeout", "7s", "--role", "owner",
    "--search-path", "app, public", "--access", "readWrite", "--parameter", "work_mem=64MB",
    "--parameter", "app.tenant=x", "--transaction", "auto", "--guard", "job", "--idempotent",
    "--allow-empty", "--advance", "barrier", "--on-failure", "continue", "--waves", "1,5%,100%",
    "--halt-after", "10%", "--pause-between", "10m", "--gate", "manual", "--order-by", "tier",
    "--verify", "select 1", "--verify-expect", "true", "--verify-timeout", "5s", "--skip-if-holds",
    "--output-server", "srv", "--output-database", "d", "--output-table", "t", "--output-schema", "s",
    "--output-credential", "login", "--output-include-target", "--output-on-mismatch", "addColumn",
]  # fmt: skip
STEP = {
    "stepId": 1,
    "targetGroup": ref("targetGroups/fleet"),
    "credential": ref("credentials/login"),
    "action": {"type": "TSql", "source": "Inline", "value": "select 2"},
    "executionOptions": {
        "timeoutSeconds": 7200, "retryAttempts": 3, "initialRetryIntervalSeconds": 2, "maximumRetryIntervalSeconds": 60,
        "retryIntervalBackoffMultiplier": 1.5, "maxParallelism": 4,
    },
    "retryOn": ["42P01", "23"], "jitter": 0.5, "slotsPerDatabase": 2, "allowEmpty": True,
    "settings": {
        "lockTimeoutSeconds": 7, "role": "owner", "searchPath": "app, public", "access": "readWrite",
        "parameters": {"work_mem": "64MB", "app.tenant": "x"},
    },
    "transaction": "auto", "guard": "job", "idempotent": True, "advance": "barrier", "onFailure": "continue",
    "rollout": {"waves": [1, "5%", "100%"], "haltAfterFailures": "10%", "pauseBetween": "PT600S", "gate": "manual", "orderBy": "tier"},
    "verify": {"sql": "select 1", "expect": "true", "timeoutSeconds": 5, "skipIfHolds": True},
    "output": {
        "type": "SqlDatabase", "serverName": "srv", "databaseName": "d", "tableName": "t", "schemaName": "s",
        "credential": ref("credentials/login"), "includeTarget": True, "onMismatch": "addColumn",
    },
}  # fmt: skip
OF_JOB = [
    "--description", "Every night.", "--owner", "ops", "--label", "team=data", "--label", "tier=gold",
    "--retention-days", "9", "--cron", "30 3 * * *", "--time-zone", "Europe/Berlin", "--start", "2031-01-01T00:00:00",
    "--end", "2032-01-01T00:00:00Z", "--overlap", "queueOne", "--misfire", "runOnce", "--misfire-within", "10m",
    "--run-attempts", "on", "--max-attempts-in-a-row", "3", "--max-attempts-without-progress", "4",
    "--max-attempts-with-progress", "5", "--attempt-backoff", "1s,2m", "--auto-disable", "30/7",
]  # fmt: skip
JOB = {
    "description": "Every night.", "owner": "ops", "labels": {"team": "data", "tier": "gold"}, "retentionDays": 9,
    "paused": False, "priority": 0,
    "schedule": {
        "type": "Recurring", "cron": "30 3 * * *", "timeZone": "Europe/Berlin", "enabled": True,
        "startTime": "2030-12-31T23:00:00Z", "endTime": "2032-01-01T00:00:00Z", "overlap": "queueOne",
        "misfire": {"policy": "runOnce", "withinSeconds": 600},
    },
    "runAttempts": {
        "enabled": True, "maxSuccessiveWithoutProgress": 3, "maxWithoutProgress": 4, "maxWithProgress": 5,
        "backoffSeconds": [1, 120],
    },
    "autoDisable": {"failures": 30, "days": 7},
}  # fmt: skip
OBSERVED = {"version", "health", "lastRun", "nextRunTime"}


@pytest.fixture
async def jobs_api(settings, targets, tmp_path):
    async with start_jobs_api(settings, targets, tmp_path) as made:
        yield made


@pytest.fixture
async def muster(jobs_api, monkeypatch, capsys):
    """With the job `nightly`, which has every option that there is."""
    await jobs_api.a_job("other")
    muster = bridge(jobs_api, monkeypatch, capsys)
    words = ["-g", "fleet", "-c", "select 2", "--step", "main"]
    await muster("job", "create", "nightly", *words, *OF_JOB, *OF_STEP)
    return muster


async def the_job(jobs_api):
    shown = (await jobs_api.seen("jobs/nightly"))["properties"]
    return {name: value for name, value in shown.items() if name not in OBSERVED}


async def the_step(jobs_api, name="main"):
    return (await jobs_api.seen(f"jobs/nightly/steps/{name}"))["properties"]


def without(document, *way):
    *above, last = way
    if above:
        return document | {above[0]: without(document[above[0]], *above[1:], last)}
    return {name: value for name, value in document.items() if name != last}


UPDATES_OF_JOB = (
    (["--owner", "dba"], JOB | {"owner": "dba"}),
    (["--label", "tier=silver", "--remove-label", "team"], JOB | {"labels": {"tier": "silver"}}),
    (["--cron", "0 5 * * *"], JOB | {"schedule": JOB["schedule"] | {"cron": "0 5 * * *"}}),
    (["--time-zone", "UTC"], JOB | {"schedule": JOB["schedule"] | {"timeZone": "UTC"}}),
    (["--misfire", "skip", "--reset", "misfire-within"], JOB | {"schedule": JOB["schedule"] | {"misfire": {"policy": "skip"}}}),
    (["--every", "1h"], JOB | {"schedule": without(without(JOB["schedule"], "cron"), "timeZone") | {"interval": "PT1H"}}),
    (["--at", "2031-02-01T00:00:00Z"],
     JOB | {"schedule": without(without(JOB["schedule"], "cron"), "timeZone") | {"type": "Once", "startTime": "2031-02-01T00:00:00Z"}}),
    (["--disabled"], JOB | {"schedule": JOB["schedule"] | {"enabled": False}}),
    (["--max-attempts-in-a-row", "9"], JOB | {"runAttempts": JOB["runAttempts"] | {"maxSuccessiveWithoutProgress": 9}}),
    (["--run-attempts", "off"], JOB | {"runAttempts": {"enabled": False}}),
    (["--auto-disable", "off"], JOB | {"autoDisable": {"failures": 0}}),
    (["--reset", "retention-days", "--reset", "run-attempts"], without(without(JOB, "retentionDays"), "runAttempts")),
    (["--reset", "overlap"], JOB | {"schedule": JOB["schedule"] | {"overlap": "skipTarget"}}),
    (["--reset", "label", "--reset", "description"], without(JOB, "description") | {"labels": {}}),
)  # fmt: skip
UPDATES_OF_STEP = (
    (["-c", "select 3"], STEP | {"action": STEP["action"] | {"value": "select 3"}}),
    (["--retry-attempts", "0"], STEP | {"executionOptions": STEP["executionOptions"] | {"retryAttempts": 0}}),
    (["--parameter", "work_mem=1MB", "--remove-parameter", "app.tenant"],
     STEP | {"settings": STEP["settings"] | {"parameters": {"work_mem": "1MB"}}}),
    (["--verify-value", "7"], STEP | {"verify": STEP["verify"] | {"expect": "value", "value": "7"}}),
    (["--verify-timeout", "9s"], STEP | {"verify": STEP["verify"] | {"timeoutSeconds": 9}}),
    (["--reset", "verify"], without(STEP, "verify")),
    (["--reset", "waves"], without(STEP, "rollout")),
    (["--reset", "gate"], without(STEP, "rollout", "gate")),
    (["--reset", "output-server"], without(STEP, "output")),
    (["--reset", "output-credential"], without(STEP, "output", "credential")),
    (["--output-table", "u"], STEP | {"output": STEP["output"] | {"tableName": "u"}}),
    (["--reset", "credential", "--reset", "guard"], without(without(STEP, "credential"), "guard")),
    (["--reset", "timeout"], STEP | {"executionOptions": STEP["executionOptions"] | {"timeoutSeconds": 43200}}),
    (["--reset", "idempotent", "--on-failure", "stop"], without(STEP, "idempotent") | {"onFailure": "stop"}),
)  # fmt: skip


async def test_every_option_of_rest_is_set(muster, jobs_api):
    assert await the_job(jobs_api) == JOB
    assert await the_step(jobs_api) == STEP


async def test_an_update_of_a_job_changes_only_what_is_said(muster, jobs_api):
    for words, expected in UPDATES_OF_JOB:
        await jobs_api.made("jobs/nightly", {"properties": JOB})

        await muster("job", "update", "nightly", *words)

        after = await the_job(jobs_api)
        assert {name: value for name, value in after.items() if value != ""} == expected, words
    assert await the_step(jobs_api) == STEP


async def test_an_update_of_a_step_changes_only_what_is_said(muster, jobs_api):
    for words, expected in UPDATES_OF_STEP:
        await jobs_api.made("jobs/nightly/steps/main", {"properties": STEP})

        await muster("step", "update", "nightly", "MAIN", *words)

        assert await the_step(jobs_api) == expected, words
    assert await the_job(jobs_api) == JOB


async def test_steps_are_added_moved_and_removed(muster, jobs_api):
    async def order():
        return [each["name"] for each in (await muster.json("step", "list", "nightly"))["value"]]

    add = ["-g", "fleet", "-c", "select 1"]
    await muster("step", "add", "nightly", "last", *add)
    await muster("step", "add", "nightly", "first", *add, "--before", "main")
    await muster(
        "step", "add", "nightly", "third", *add, "--after", "main", "--retry-attempts", "1"
    )
    assert await order() == ["first", "main", "third", "last"]
    assert "there already" in await muster("step", "add", "nightly", "third", *add, code=1)

    await muster("step", "move", "nightly", "first", "--after", "third")
    assert await order() == ["main", "third", "first", "last"]
    await muster("step", "move", "nightly", "last", "--before", "main")
    assert await order() == ["last", "main", "third", "first"]
    await muster("step", "move", "nightly", "main", "--position", "4")
    assert await order() == ["last", "third", "first", "main"]
    assert await the_step(jobs_api) == STEP | {"stepId": 4}, "nothing of it is lost"

    assert "needs --yes" in await muster("step", "remove", "nightly", "third", code=1)
    await muster("step", "remove", "nightly", "third", "--yes")
    assert await order() == ["last", "first", "main"]
    assert "did you mean first" in await muster("step", "show", "nightly", "frist", code=6)
    assert "there is no job 'nightlx'" in await muster("step", "list", "nightlx", code=6)

    newest, *_, oldest = (await muster.json("job", "versions", "nightly"))["value"]
    assert (newest["name"], oldest["name"]) == ("8", "0")
    was = await muster.json("job", "versions", "nightly", "4")
    assert [each["name"] for each in was["value"]] == ["first", "main", "third", "last"]


async def test_a_step_is_shown_as_the_options_that_made_it(muster):
    lines = (await muster("step", "show", "nightly", "main")).splitlines()

    shown = dict(line.split(maxsplit=1) for line in lines[1:] if line and line != "select 2")
    assert (shown["group"], shown["timeout"], shown["retry-maximum"]) == ("fleet", "2h", "1m")
    assert (shown["retry-on"], shown["waves"], shown["guard"]) == ("42P01,23", "1,5%,100%", "job")
    assert (shown["credential"], shown["output-credential"]) == ("login", "login")
    assert lines[-1] == "select 2"


REFUSED = (
    (["job", "update", "nightly"], "nothing to change was said"),
    (["step", "update", "nightly", "main"], "nothing to change was said"),
    (["step", "move", "nightly", "main"], "--position, --before or --after"),
    (
        ["step", "update", "nightly", "main", "--gate", "auto", "--reset", "gate"],
        "say different things",
    ),
    (["step", "update", "nightly", "main", "--guard", "ever"], "choose from"),
    (["job", "update", "nightly", "--now"], "--now is for --every"),
)


async def test_half_a_change_is_refused(muster, jobs_api):
    for words, why in REFUSED:
        assert why in await muster(*words, code=1), words
    assert await the_step(jobs_api) == STEP
