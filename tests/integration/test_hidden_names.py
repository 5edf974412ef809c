"""A refusal names nothing that the caller may not read; what is in the way is counted instead."""

from dataclasses import replace
from uuid import uuid4

import asyncpg
import pytest

from tests.support import principals
from tests.support import arm
from tests.support.jobs_fixture import ACCOUNT, SERVER, SQL, start_jobs_api, ref
from workflows.roles import CONTRIBUTOR

pytestmark = pytest.mark.newest

ELSEWHERE = arm.GROUP.replace("g1", "g2")
OTHER = f"{ELSEWHERE}/providers/Microsoft.Sql/servers/other"
MEMBER = {"type": "SqlDatabase", "serverName": "other", "databaseName": "d"}


@pytest.fixture
async def jobs_api(settings, targets, tmp_path):
    """With a server in another group that a target group of the account names."""
    async with start_jobs_api(settings, targets, tmp_path) as made:
        body = {"location": "local", "properties": {"endpoint": {"host": "db.example.org"}}}
        await arm.put(made.call, ELSEWHERE, {"location": "local"})
        await arm.put(made.call, OTHER, body)
        await made.metadata("update resource set provisioning_state = 'Succeeded'")
        await made.made("targetGroups/secretgroup", {"properties": {"members": [MEMBER]}})
        yield made


async def a_contributor(jobs_api, at, **token):
    path = f"{principals.AUTHORIZATION}/serviceTokens/t{uuid4().hex[:8]}"
    made = (await arm.put(jobs_api.call, path, {"properties": token})).json()["properties"]
    await principals.grant(jobs_api.call, at, made["principalId"], CONTRIBUTOR.id)
    return replace(jobs_api, call=arm.calling(jobs_api.app, made["token"]))


async def test_users_of_a_server_that_the_caller_may_not_read_are_counted(jobs_api):
    caller = await a_contributor(jobs_api, OTHER)

    async with caller.call:
        refused = await caller.delete(OTHER)
    seen = await jobs_api.delete(OTHER)

    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (409, "ServerInUse")
    assert "is used by 1 that you may not read." in error["message"]
    assert "secretgroup" not in refused.text
    assert "jobAgents" not in refused.text
    assert seen.json()["error"]["details"][0]["target"] == ref("targetGroups/secretgroup")


async def test_an_account_that_can_not_be_asked_is_not_named_to_those_who_may_not_read_it(jobs_api):
    root = await asyncpg.connect(jobs_api.targets.url(jobs_api.names[0], jobs_api.targets.root))
    await root.execute("drop function jobs_internal.read_server_users(text[])")
    await root.close()
    caller = await a_contributor(jobs_api, OTHER)

    async with caller.call:
        refused = await caller.delete(OTHER)

    assert (refused.status_code, arm.error(refused)) == (409, "ServerUsersUnknown")
    assert "'acc'" not in refused.text
    assert "jobAgents" not in refused.text


async def test_the_account_of_a_control_database_is_named_only_to_its_readers(jobs_api):
    database = f"{SERVER}/databases/control_acc"
    caller = await a_contributor(jobs_api, database)

    async with caller.call:
        refused = await caller.delete(database)
    seen = await jobs_api.delete(database)

    assert (refused.status_code, arm.error(refused)) == (409, "ControlDatabaseInUse")
    assert "jobAgents" not in refused.text
    assert seen.json()["error"]["details"][0]["target"] == ACCOUNT


async def test_databases_of_a_pool_are_named_only_to_their_readers(jobs_api):
    pool = f"{SERVER}/elasticPools/p1"
    await arm.put(jobs_api.call, pool, {"location": "local"})
    body = {"properties": {"elasticPoolId": pool}}
    database = f"{SERVER}/databases/control_acc"
    await jobs_api.call.patch(database, params=SQL, json=body)
    caller = await a_contributor(jobs_api, pool)

    async with caller.call:
        refused = await caller.delete(pool)

    assert (refused.status_code, arm.error(refused)) == (409, "ElasticPoolNotEmpty")
    assert "1 that you may not read" in refused.text
    assert "control_acc" not in refused.text
    assert "control_acc" in (await jobs_api.delete(pool)).text


async def test_users_of_a_credential_are_named_only_to_readers_of_the_account(jobs_api):
    await jobs_api.a_job()
    caller = await a_contributor(jobs_api, ACCOUNT, scope=ref("credentials/login"))

    async with caller.call:
        refused = await caller.delete("credentials/login")
    seen = await jobs_api.delete("credentials/login")

    assert (refused.status_code, arm.error(refused)) == (400, "ElasticJobsOperationFailed")
    assert "nightly" not in refused.text
    assert "fleet" not in refused.text
    assert 'job "nightly"' in seen.json()["error"]["message"]


async def test_a_lock_above_is_told_by_its_scope_and_not_by_its_name(jobs_api):
    lock = f"{arm.SUBSCRIPTION}{principals.AUTHORIZATION}/locks/secretlock"
    await arm.put(jobs_api.call, lock, {"properties": {"level": "CanNotDelete"}})
    caller = await a_contributor(jobs_api, ACCOUNT)

    async with caller.call:
        refused = await caller.delete("targetGroups/secretgroup")

    assert (refused.status_code, arm.error(refused)) == (409, "ScopeLocked")
    assert f"'{arm.SUBSCRIPTION}'" in refused.text
    assert "secretlock" not in refused.text
