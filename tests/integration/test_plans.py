"""Plans, and starts that name their targets: the targets of a run are those that were chosen."""

import json
import re
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from tests.support.effects import COUNT, DATABASES, databases, shared_fleet, together
from tests.support.fleet import Fleet
from tests.support.launching import until

__all__ = ["databases", "shared_fleet"]
pytestmark = [pytest.mark.newest, together]

PAGE = (Path(__file__).parents[2] / "docs/reference/plans.md").read_text("utf-8")
EFFECT = "insert into effect values ($(step_id))"


async def planned(fleet: Fleet, job: str = "job"):
    """The plan and its document, as REST shows it."""
    plan = uuid4()
    await fleet.root.execute(
        "select jobs_internal.create_request($1, 'plan', jsonb_build_object('job', $2::text))",
        plan,
        job,
    )

    async def answered() -> bool:
        return await fleet.root.fetchval(
            "select answered_at is not null from jobs_internal.request where request_id = $1", plan
        )

    await until(answered, 20)
    text = await fleet.root.fetchval(
        "select jobs_internal.get_item('jobs/plans', array[$1::text, $2::text])", job, str(plan)
    )
    return plan, json.loads(text)["properties"]


async def start(fleet: Fleet, **named):
    given = {name: json.dumps(v) if isinstance(v, list) else v for name, v in named.items()}
    run = await fleet.call("sp_start_job", job_name="job", **given)
    await fleet.ended(run)
    return run


def place(database: str | None = None, schema: str | None = None) -> dict[str, str]:
    names = {"serverName": "fleet", "databaseName": database, "schemaName": schema}
    return {name: value for name, value in names.items() if value}


async def names(fleet: Fleet, run, step: int = 1) -> list[str]:
    rows = await fleet.root.fetch(
        "select d.database_name from jobs_internal.target_execution x"
        " join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)"
        " where x.job_execution_id = $1 and x.step_id = $2 order by x.ordinal", run, step)  # fmt: skip
    return [row[0] for row in rows]


async def test_a_plan_shows_targets_budgets_and_what_is_unknown_and_starts_nothing(
    databases: Fleet,
):
    await databases.job(
        "job", EFFECT, options={"rollout": {"waves": [2]}}, max_parallelism=1
    )  # fmt: skip

    _, plan = await planned(databases)

    (step,) = plan["steps"]
    assert (plan["count"], plan["jobVersion"], plan["shortestSeconds"]) == (DATABASES, 1, None)
    assert step["waves"] == [{"wave": 1, "count": 2}, {"wave": 2, "count": DATABASES - 2}]
    assert [each["wave"] for each in step["targets"]] == [1, 1] + [2] * (DATABASES - 2)
    (server,) = step["servers"]
    assert (server["serverName"], server["count"], server["disabled"]) == (
        "fleet", DATABASES, False,
    )  # fmt: skip
    assert server["connections"] > 0
    assert (step["missingCredentials"], step["outsideTransaction"]) == ([], [])
    assert step["leftOutCount"] == len(step["leftOut"])
    assert await databases.everywhere(COUNT) == [0] * DATABASES


async def test_a_plan_shows_the_output_and_its_missing_credential(databases: Fleet):
    place = {
        "output_type": "SqlDatabase", "output_database_name": "d", "output_table_name": "rows",
    }  # fmt: skip
    await databases.root.execute(
        "insert into jobs_internal.server_directory (server_id, name, hosts, port, ssl_mode, disabled, revision)"
        " values ('/away', 'away', '{127.0.0.1}', 65001, 'disable', true, 1)"
    )
    try:
        await databases.job("job", "select 1", output_server_name="fleet", **place)
        await databases.job("other", "select 1", output_server_name="away", **place)
        outputs = [
            (await planned(databases, job))[1]["steps"][0]["output"] for job in ("job", "other")
        ]
    finally:
        await databases.root.execute(
            "delete from jobs_internal.server_directory where name = 'away'"
        )

    shown = {"databaseName": "d", "schemaName": "dbo", "tableName": "rows", "serverExists": True}
    assert outputs == [
        {**shown, "serverName": "fleet", "disabled": False, "missingCredentialCount": 0},
        {**shown, "serverName": "away", "disabled": True, "missingCredentialCount": DATABASES},
    ]


async def test_plans_are_listed_in_pages_the_newest_first_until_they_expire(databases: Fleet):
    await databases.job("job", EFFECT)
    plans = [str((await planned(databases))[0]) for _ in range(3)]
    await databases.root.execute(
        "update jobs_internal.plan set expires_at = now() where plan_id::text = $1", plans[0]
    )
    found, after = [], None
    for _ in plans:
        text = await databases.root.fetchval(
            "select jobs_internal.list_items('jobs/plans', '{job}', $1, 1, '{}')",
            json.dumps(after) if after else None,
        )
        page = json.loads(text)
        found += [item["path"][-1] for item in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert found == [plans[2], plans[1]]


async def test_the_shortest_duration_comes_from_earlier_attempts(databases: Fleet):
    await databases.job("job", "select pg_sleep(0.2)", max_parallelism=2)
    await start(databases)

    _, plan = await planned(databases)

    (step,) = plan["steps"]
    assert step["earlierAttempts"]["count"] == DATABASES
    average = step["earlierAttempts"]["averageSeconds"]
    assert average >= 0.2
    assert plan["shortestSeconds"] == pytest.approx(average * DATABASES / 2)


async def test_what_is_planned_runs_although_job_and_group_have_changed(databases: Fleet):
    # given a plan of the job on all databases
    await databases.job("job", EFFECT, "insert into effect values (2)")
    plan, _ = await planned(databases)
    # when the job gets another script, and a database is excluded
    await databases.call(
        "sp_update_jobstep", job_name="job", step_name="step1", command="select 1/0"
    )
    await databases.root.execute(
        "insert into jobs_internal.target_group_member (target_group_id, target_id, position, membership_type,"
        " target_type, server_name, server_id, database_name) select g.target_group_id, gen_random_uuid(), 100,"
        " 'Exclude', 'SqlDatabase', 'fleet', (select server_id from jobs_internal.server_directory), $1"
        " from jobs_internal.target_group g where g.name = 'everything'", databases.databases[0],
    )  # fmt: skip
    run = await start(databases, plan_id=plan)
    await databases.root.execute(
        "delete from jobs_internal.target_group_member where position = 100"
    )
    # then the plan's version runs on the plan's targets
    assert await databases.lifecycle(run) == "Succeeded"
    assert await databases.everywhere(COUNT) == [2] * DATABASES
    row = await databases.root.fetchrow(
        "select origin, plan_of, job_version from jobs_internal.job_execution where job_execution_id = $1",
        run,
    )
    assert tuple(row) == ("plan", plan, 2)


async def test_a_plan_is_started_once_and_not_after_it_has_expired(databases: Fleet):
    await databases.job("job", EFFECT)
    plan, _ = await planned(databases)
    run = await start(databases, plan_id=plan)
    with pytest.raises(asyncpg.PostgresError, match=f"started before, as execution {run}"):
        await start(databases, plan_id=plan)

    other, _ = await planned(databases)
    await databases.root.execute("update jobs_internal.plan set expires_at = now()")
    with pytest.raises(asyncpg.PostgresError, match="has expired"):
        await start(databases, plan_id=other)
    await databases.root.execute("select jobs_internal.delete_orphans(now() + interval '1 day')")
    assert await databases.root.fetchval("select count(*) from jobs_internal.plan") == 0


async def test_a_planned_target_whose_server_is_gone_fails_visibly(databases: Fleet):
    await databases.job("job", EFFECT, retry_attempts=0)
    plan, _ = await planned(databases)
    await databases.root.execute(
        "update jobs_internal.snapshot_target set server_id = '/gone', server_name = 'gone'"
        " where ordinal = 1"
    )
    run = await start(databases, plan_id=plan)
    assert await databases.lifecycle(run) == "Failed"
    rows = await databases.root.fetch(
        "select last_message from jobs_internal.target_execution where job_execution_id = $1"
        " and lifecycle = 'Failed'", run,
    )  # fmt: skip
    assert [row[0] for row in rows] == ["The server 'gone' is no longer in the directory."]


async def test_named_targets_replace_the_group_of_every_step(databases: Fleet):
    await databases.job("job", EFFECT, EFFECT)
    run = await start(databases, targets=[place(name) for name in databases.databases[2:4]])
    assert await databases.lifecycle(run) == "Succeeded"
    assert await databases.everywhere(COUNT) == [0, 0, 2, 2] + [0] * (DATABASES - 4)


async def test_a_named_server_means_all_of_its_databases(databases: Fleet):
    await databases.job("job", "select 1")
    run = await start(databases, targets=[place()])
    assert await databases.lifecycle(run) == "Succeeded"
    assert set(databases.databases) < set(await names(databases, run))


async def test_the_example_of_the_reference_runs(databases: Fleet):
    (example,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    await databases.job("job", EFFECT)
    text = example.replace("refresh", "job").replace("tenant_1", databases.databases[3])
    run = await databases.root.fetchval(text)
    assert await databases.ended(run) == "Succeeded"
    assert await names(databases, run) == [databases.databases[3]]


async def test_a_limit_keeps_the_targets_of_the_first_step(databases: Fleet):
    await databases.job("job", EFFECT, EFFECT)
    run = await start(databases, target_limit=3)
    assert await names(databases, run, 1) == databases.databases[:3]
    assert await names(databases, run, 2) == databases.databases[:3]
    shown = await databases.root.fetchval(
        "select jobs_internal.summarize_run(x) #>> '{summary,limit}' from jobs_internal.job_execution x"
        " where x.job_execution_id = $1", run,
    )  # fmt: skip
    assert shown == "3"


async def test_a_named_schema_that_does_not_exist_is_not_replaced_by_another(databases: Fleet):
    await databases.job("job", EFFECT)
    name = databases.databases[0]
    run = await start(databases, targets=[place(name, "publi_"), place(name, "public")])
    assert await databases.lifecycle(run) == "Failed"
    message = await databases.root.fetchval(
        "select last_message from jobs_internal.step_execution where job_execution_id = $1", run
    )
    assert f"There is no schema 'publi_' in fleet/{name}" in message
    run = await start(databases, targets=[place(name, "public")])
    assert await databases.lifecycle(run) == "Succeeded"


async def test_a_rerun_of_named_targets_goes_on_to_steps_whose_group_lacks_them(databases: Fleet):
    # given a run on a database that the group does not have, and a failure in the first step
    await databases.call("sp_add_target_group", target_group_name="one")
    await databases.call(
        "sp_add_target_group_member", target_group_name="one", target_type="SqlDatabase",
        server_name="fleet", database_name=databases.databases[1],
    )  # fmt: skip
    await databases.job("job", "select 1/0", EFFECT, group="one", retry_attempts=0)
    run = await start(databases, targets=[place(databases.databases[0])])
    await databases.call("sp_update_jobstep", job_name="job", step_name="step1", command=EFFECT)
    # when it runs again, and that run again
    again = await databases.call("sp_rerun_execution", job_execution_id=run)
    await databases.ended(again)
    third = await databases.call(
        "sp_rerun_execution", job_execution_id=again, outcomes=["succeeded"]
    )
    await databases.ended(third)
    # then both steps run on the database
    assert await databases.everywhere(COUNT) == [4] + [0] * (DATABASES - 1)


async def test_a_run_has_its_own_timeout_retries_and_rollout(databases: Fleet):
    await databases.job("job", "select pg_sleep(60)", options={"rollout": {"waves": ["100%"]}})
    overrides = {"timeoutSeconds": 1, "rollout": {"waves": [1], "haltAfterFailures": 1}}
    run = await databases.call("sp_start_job", job_name="job", overrides=overrides)

    async def halted() -> bool:
        return await databases.root.fetchval(
            "select count(*) = 1 from jobs_internal.step_execution"
            " where job_execution_id = $1 and halted_at is not null", run,
        )  # fmt: skip

    await until(halted, 20)
    await databases.call("sp_abort_execution", job_execution_id=run)
    await databases.ended(run)
    lifecycles = await databases.lifecycles(run)
    assert lifecycles == {"TimedOut": 1, "Canceled": DATABASES - 1}


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"targets": []}, "targets is a list of 1 to 10000"),
        ({"targets": [{"serverName": "nowhere"}]}, '"nowhere" is not in the directory'),
        ({"targets": [{"databaseName": "a"}]}, r"targets\[0\]: serverName has 1 to 253 bytes"),
        ({"targets": [{"serverName": "fleet", "schemaName": "a"}]}, "schemaName needs a databaseName"),
        ({"targets": [{"serverName": "fleet", "database": "a"}]}, "database is not one of serverName"),
        ({"target_limit": 0}, "target_limit is a number, 1 or more"),
        ({"overrides": {"guard": "job"}}, "overrides.guard can't be set for one run"),
        ({"overrides": {"timeoutSeconds": 0}}, "overrides.timeoutSeconds is a number from 1 to 2147483"),
        ({"overrides": {"lockTimeoutSeconds": -1}}, "lockTimeoutSeconds is seconds, 0 or more"),
        ({"overrides": {"rollout": {"waves": [0]}}}, "options.rollout.waves is a list"),
        ({"overrides": {"rollout": {"waves": [1] * 101}}}, "has at most 100 waves"),
        ({"overrides": {"rollout": None}}, "options.rollout is an object"),
        ({"overrides": {"rollout": {"waves": [1], "gate": None}}}, "options.rollout.gate is auto or manual"),
        ({"targets": [{"serverName": "fleet", "databaseName": None}]}, r"targets\[0\]: databaseName is a text"),
        ({"targets": [{"serverName": "fleet", "databaseName": {"a": 1}}]}, "databaseName is a text"),
        ({"targets": [{"serverName": "fleet", "databaseName": "a\u202eb"}]}, "no invisible characters"),
        ({"overrides": {}}, "with at least one option"),
        ({"plan_id": uuid4(), "target_limit": 1}, "a plan is started as it is"),
        ({"plan_id": uuid4()}, "has no plan"),
    ],
)  # fmt: skip
async def test_a_start_that_says_something_wrong_is_refused(databases: Fleet, named, message):
    await databases.job("job", EFFECT)
    with pytest.raises(asyncpg.PostgresError, match=message):
        await start(databases, **named)


async def test_a_plan_is_started_once_also_when_the_history_of_its_run_is_gone(databases: Fleet):
    await databases.job("job", EFFECT)
    plan, _ = await planned(databases)
    await start(databases, plan_id=plan)
    await databases.root.execute("select jobs.sp_purge_jobhistory('job')")

    with pytest.raises(asyncpg.PostgresError, match="was started before"):
        await start(databases, plan_id=plan)
