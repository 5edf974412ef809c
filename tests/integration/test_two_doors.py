"""One scenario through both doors: the same views and the same answers, whoever came in where."""

import re
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid5

import asyncpg
import pytest

from tests.support.jobs_fixture import SERVER, JobsApi, start_jobs_api

pytestmark = pytest.mark.newest

SPACE = UUID(int=4)
RUN = uuid5(SPACE, "run")
VIEWS = (
    "jobs", "job_versions", "jobsteps", "jobstep_versions", "target_groups",
    "target_group_members", "job_executions", "job_cancellations",
)  # fmt: skip
LISTS = (
    "credentials", "targetGroups", "jobs", "jobs/nightly/versions", "jobs/nightly/steps",
    "jobs/nightly/versions/1/steps", "jobs/nightly/executions", "executions",
    f"jobs/nightly/executions/{RUN}",
)  # fmt: skip
# What tells one world from the other: names of accounts, people, doors, instants, random ids.
OWN = re.compile(r"_id$|_time$|_at$|_by$|^actor$|^door$|^row_version$|_as_given$")
SHOWN = re.compile(
    r"(?:systemData|etag|actor|door|targetId|createTime|endTime|startTime|requestedBy)$"
)


class Rest:
    name = "acc"

    def __init__(self, jobs_api: JobsApi) -> None:
        self.jobs_api = jobs_api

    async def credential(self, name: str) -> None:
        await self._put(f"credentials/{name}", username="u", reference="env:FLEET")

    async def group(self, name: str, *members: dict[str, Any]) -> None:
        listed = [
            {_camel(key): value for key, value in member.items()}
            | {"refreshCredential": self._ref("credentials/login")}
            for member in members
        ]
        for each in listed:
            each["type"] = each.pop("targetType")
        await self._put(f"targetGroups/{name}", members=listed)

    async def job(self, name: str, description: str, **schedule: Any) -> None:
        await self._put(f"jobs/{name}", description=description, schedule=schedule)

    async def step(self, job: str, name: str, script: str, **options: int) -> None:
        await self._put(
            f"jobs/{job}/steps/{name}",
            targetGroup=self._ref("targetGroups/fleet"),
            credential=self._ref("credentials/login"),
            action={"value": script},
            executionOptions=options,
        )

    async def drop_step(self, job: str, name: str) -> None:
        answer = await self.jobs_api.delete(self._ref(f"jobs/{job}/steps/{name}"))
        assert answer.status_code == 200

    async def start(self, job: str) -> None:
        answer = await self.jobs_api.put(self._ref(f"jobs/{job}/executions/{RUN}"))
        assert answer.status_code == 201, answer.text

    async def stop(self, job: str) -> None:
        answer = await self.jobs_api.post(self._ref(f"jobs/{job}/executions/{RUN}/cancel"))
        assert answer.status_code == 200

    async def _put(self, path: str, **properties: Any) -> None:
        await self.jobs_api.made(self._ref(path), {"properties": properties})

    def _ref(self, path: str) -> str:
        return f"{SERVER}/jobAgents/{self.name}/{path}"


class Psql:
    name = "other"

    def __init__(self, connection: asyncpg.Connection) -> None:
        self.connection = connection

    async def credential(self, name: str) -> None:
        await self._call(
            "sp_add_credential", credential_name=name, identity="u", secret="env:FLEET"
        )

    async def group(self, name: str, *members: dict[str, Any]) -> None:
        await self._call("sp_add_target_group", target_group_name=name)
        for member in members:
            await self._call(
                "sp_add_target_group_member",
                target_group_name=name, refresh_credential_name="login", **member,
            )  # fmt: skip

    async def job(self, name: str, description: str, **schedule: Any) -> None:
        known = await self.connection.fetchval(
            "select count(*) from jobs.jobs where job_name = $1", name
        )
        await self._call(
            "sp_update_job" if known else "sp_add_job",
            job_name=name, description=description, enabled=schedule["enabled"],
            schedule_cron=schedule["cron"], schedule_time_zone=schedule["timeZone"],
        )  # fmt: skip

    async def step(self, job: str, name: str, script: str, **options: int) -> None:
        known = await self.connection.fetchval(
            "select count(*) from jobs.jobsteps where job_name = $1 and step_name = $2", job, name
        )
        await self._call(
            "sp_update_jobstep" if known else "sp_add_jobstep",
            job_name=job, step_name=name, command=script, credential_name="login",
            target_group_name="fleet", **{_snake(key): value for key, value in options.items()},
        )  # fmt: skip

    async def drop_step(self, job: str, name: str) -> None:
        await self._call("sp_delete_jobstep", job_name=job, step_name=name)

    async def start(self, job: str) -> None:
        await self._call("sp_start_job", job_name=job, job_execution_id=RUN)

    async def stop(self, job: str) -> None:
        await self._call("sp_stop_job", job_execution_id=RUN)

    async def _call(self, function: str, **named: Any) -> None:
        given = ", ".join(f"{name} => ${number}" for number, name in enumerate(named, 1))
        await self.connection.execute(f"select * from jobs.{function}({given})", *named.values())


async def scenario(door: Rest | Psql) -> None:
    await door.credential("login")
    await door.group(
        "fleet",
        {"membership_type": "Include", "target_type": "SqlServer", "server_name": "SRV"},
        {"membership_type": "Exclude", "target_type": "SqlDatabase", "server_name": "srv",
         "database_name": "not this"},
    )  # fmt: skip
    weekdays = {"cron": "30 3 * * MON-FRI", "timeZone": "Europe/Berlin", "type": "Recurring"}
    await door.job("nightly", "first", enabled=False, **weekdays)
    await door.step("nightly", "one", "select 1")
    await door.step("nightly", "two", "select $(job_version)", retryAttempts=3)
    await door.start("nightly")
    await door.step("nightly", "two", "select 'changed'", retryAttempts=4)
    await door.drop_step("nightly", "one")
    await door.job("nightly", "second", enabled=True, **weekdays)
    await door.stop("nightly")


async def test_one_scenario_gives_the_same_through_both_doors(settings, targets, tmp_path):
    async with start_jobs_api(
        replace(settings, credential_references=("env:",)), targets, tmp_path
    ) as jobs_api:
        await jobs_api.an_account("other")
        connection = await asyncpg.connect(targets.url("control_other", targets.administrator))
        try:
            rest, psql = Rest(jobs_api), Psql(connection)
            await scenario(rest)
            await scenario(psql)

            for view in VIEWS:
                assert await rows(jobs_api, 0, view) == await rows(jobs_api, 1, view), view
            for path in LISTS:
                assert await answer(jobs_api, rest.name, path) == await answer(
                    jobs_api, psql.name, path
                ), path
        finally:
            await connection.close()


async def test_what_was_done_through_psql_is_in_the_activity_log_of_the_account(
    settings, targets, tmp_path
):
    async with start_jobs_api(settings, targets, tmp_path) as jobs_api:
        await jobs_api.made("jobs/by-rest", {"properties": {"description": "d"}})
        connection = await asyncpg.connect(targets.url("control_acc", targets.administrator))
        try:
            await connection.execute("select * from jobs.sp_add_job(job_name => 'by-psql')")
            await connection.execute("select * from jobs.sp_delete_job(job_name => 'by-psql')")
        finally:
            await connection.close()

        log = (await jobs_api.seen("activityLog"))["value"]
        who = targets.administrator.name
        assert [
            (each["action"], each["door"], each["login"], each["caller"]) for each in log[:2]
        ] == [
            ("sp_delete_job", "psql", who, who),
            ("sp_add_job", "psql", who, who),
        ]
        assert log[0]["detail"]["job_name"] == "by-psql"
        assert (log[2]["door"], log[2]["caller"]) == ("rest", "local")
        first = await jobs_api.seen("activityLog", door="psql", __top="1")
        assert [each["action"] for each in first["value"]] == ["sp_delete_job"]
        second = (await jobs_api.call.get(first["nextLink"])).json()
        assert [each["action"] for each in second["value"]] == ["sp_add_job"]
        assert "nextLink" not in second
        wrong = await jobs_api.get("activityLog", door="window")
        assert (wrong.status_code, wrong.json()["error"]["target"]) == (400, "door")


async def rows(jobs_api: JobsApi, database: int, view: str) -> list[dict[str, Any]]:
    url = jobs_api.targets.url(jobs_api.names[database], jobs_api.targets.root)
    connection = await asyncpg.connect(url)
    try:
        found = await connection.fetch(f"select * from jobs.{view}")
    finally:
        await connection.close()
    assert found, f"{view} shows nothing"
    plain = [
        {name: str(value) for name, value in row.items() if not OWN.search(name)} for row in found
    ]
    return sorted(plain, key=str)


async def answer(jobs_api: JobsApi, account: str, path: str) -> Any:
    shown = await jobs_api.seen(f"{SERVER}/jobAgents/{account}/{path}")
    return _plain(shown, account)


def _plain(value: Any, account: str) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v, account) for k, v in value.items() if not SHOWN.search(k)}
    if isinstance(value, list):
        return [_plain(each, account) for each in value]
    return (
        value.replace(f"/jobAgents/{account}/", "/jobAgents/X/")
        if isinstance(value, str)
        else value
    )


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(map(str.title, tail))


def _snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), name)
