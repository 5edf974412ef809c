"""A server that jobs use is not deleted by accident."""

import contextlib
import json
from uuid import uuid4

import asyncpg
import pytest

from tests.support import arm
from tests.support.executions import EPOCH, end
from tests.support.jobs_fixture import SQL, start_jobs_api, ref
from tests.support.execution_fixture import an_execution

pytestmark = pytest.mark.newest

ELSEWHERE = arm.GROUP.replace("g1", "g2")
OTHER = f"{ELSEWHERE}/providers/Microsoft.Sql/servers/other"
KNOWN = """
insert into jobs_internal.server_directory (server_id, name, hosts, port, ssl_mode, revision)
values ($1, 'other', '{db.example.org}', 5432, 'verify-full', 1)
"""
USERS = "select jobs_internal.read_server_users(array[$1])"
OUTPUT = """
update jobs_internal.job_step
   set output_type = 'SqlDatabase', output_server_name = 'DB.example.org', output_database_name = 'd',
       output_schema_name = 'dbo', output_table_name = 't'
"""
MEMBER = {"type": "SqlDatabase", "serverName": "other.database.windows.net", "databaseName": "d"}


@pytest.fixture
async def jobs_api(settings, targets, tmp_path):
    """With a server in another group that the account knows."""
    async with start_jobs_api(settings, targets, tmp_path) as made:
        body = {"location": "local", "properties": {"endpoint": {"host": "db.example.org"}}}
        await arm.put(made.call, ELSEWHERE, {"location": "local"})
        await arm.put(made.call, OTHER, body)
        await made.metadata("update resource set provisioning_state = 'Succeeded'")
        await made.control(KNOWN, OTHER)
        yield made


@contextlib.asynccontextmanager
async def running_on_other(jobs_api):
    """An execution that has begun, with all its targets on the server; ended afterwards."""
    root = await asyncpg.connect(jobs_api.targets.url(jobs_api.names[0], jobs_api.targets.root))
    try:
        await root.execute(
            "select jobs_internal.install_epoch($1, $2, 'machine', '0.1.0')", EPOCH, uuid4()
        )
        execution = await an_execution(root, root)
        await root.execute("set session_replication_role = replica")
        await root.execute("update jobs_internal.snapshot_target set server_id = $1", OTHER)
        yield execution
        await end(root, execution.run)
    finally:
        await root.close()


def problem(answer):
    error = answer.json()["error"]
    return answer.status_code, error["code"], [each["target"] for each in error["details"]]


async def test_a_server_that_a_group_names_is_deleted_only_by_force(jobs_api):
    await jobs_api.made("targetGroups/some", {"properties": {"members": [MEMBER]}})

    refused = await jobs_api.delete(OTHER)
    mistyped = await jobs_api.delete(OTHER, force="yes")
    forced = await jobs_api.delete(OTHER, force="true")

    assert problem(refused) == (409, "ServerInUse", [ref("targetGroups/some")])
    assert "target group 'some' of job account 'acc'" in refused.json()["error"]["message"]
    assert (mistyped.status_code, mistyped.json()["error"]["target"]) == (400, "force")
    assert forced.status_code == 202
    assert (await jobs_api.delete(OTHER)).status_code == 202  # joins the delete under way


async def test_one_that_nothing_names_is_deleted_at_once(jobs_api):
    assert (await jobs_api.delete(OTHER)).status_code == 202


async def test_a_running_execution_blocks_even_a_forced_delete_and_that_of_the_group(jobs_api):
    async with running_on_other(jobs_api) as execution:
        forced = await jobs_api.delete(OTHER, force="true")
        group = await jobs_api.delete(ELSEWHERE)
        execution_id = ref(f"jobs/nightly/executions/{execution.run}")
        assert problem(forced) == (409, "ExecutionRunning", [execution_id])
        assert problem(group) == (409, "ExecutionRunning", [execution_id])

    assert (await jobs_api.delete(OTHER)).status_code == 202


async def test_it_is_deleted_while_in_use_where_that_is_asked_for(jobs_api):
    async with running_on_other(jobs_api):
        answer = await jobs_api.delete(OTHER, forceDeletionTypes="Microsoft.Sql/servers/databases")

        assert answer.status_code == 202


async def test_an_account_that_can_not_be_asked_is_named(jobs_api):
    server = jobs_api.targets.url(jobs_api.names[0], jobs_api.targets.root)
    root = await asyncpg.connect(server)
    await root.execute("drop function jobs_internal.read_server_users(text[])")
    await root.close()

    refused = await jobs_api.delete(OTHER)
    forced = await jobs_api.call.delete(OTHER, params=SQL | {"force": "true"})

    assert problem(refused) == (409, "ServerUsersUnknown", [ref("").rstrip("/")])
    assert forced.status_code == 202


async def test_a_step_whose_output_goes_to_a_server_uses_it(owner, execution):
    await owner.execute(KNOWN, OTHER)
    before = json.loads(await owner.fetchval(USERS, OTHER.upper()))

    await owner.execute("alter table jobs_internal.job_step disable trigger user")
    await owner.execute(OUTPUT)

    after = json.loads(await owner.fetchval(USERS, OTHER.upper()))
    assert before == {"groups": [], "steps": [], "running": []}
    name = execution.job.name
    assert after == before | {
        "steps": [{"job": name, "step": "step1"}],
        "running": [{"job": name, "execution": str(execution.run)}],
    }
