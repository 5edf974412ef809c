"""Whole lives of servers, databases and groups on a real database, in virtual time."""

import secrets
from datetime import timedelta

import asyncpg
import pytest

from tests.support import postgres
from tests.support.fake_clusters import FakeClusters
from tests.support.lifecycle_fixture import Lifecycles, unhurried

pytestmark = pytest.mark.targets


@pytest.fixture
def lifecycles(db, settings, targets) -> Lifecycles:
    return Lifecycles(db, unhurried(settings), targets, FakeClusters(targets))


async def test_an_embedded_server_comes_to_be_and_goes(lifecycles):
    server = await lifecycles.put_server()
    await lifecycles.run()

    row = await lifecycles.resource(server)
    assert (row["provisioning_state"], row["observed"]["state"]) == ("Succeeded", "Ready")
    assert row["observed"]["endpoint"]["sslMode"] == "disable"
    assert row["observed"]["serverVersion"]
    assert (await lifecycles.operation(server)).status == "Succeeded"

    deleted = await lifecycles.delete(server)
    assert (await lifecycles.resource(server))["provisioning_state"] == "Deleting"
    await lifecycles.run()

    assert await lifecycles.resource(server) is None
    assert (await lifecycles.operation(deleted)).status == "Succeeded"
    assert lifecycles.clusters.known() == []
    assert await lifecycles.path(server) == [
        "reserving", "making", "starting", "verifying", "ready",
        "removing_children", "stopping", "removing", "deleted",
    ]  # fmt: skip


async def test_a_database_is_made_as_the_administrator_and_dropped(lifecycles):
    server = await lifecycles.put_server()
    database = await lifecycles.put_database(server, name='odd "name"; --')
    await lifecycles.run()

    row = await lifecycles.resource(database)
    assert (row["provisioning_state"], row["observed"]["status"]) == ("Succeeded", "Online")
    assert row["observed"]["databaseId"] == str(database.uid)
    assert row["observed"]["sizeBytes"] > 0
    assert "adopted" not in row["observed"]
    assert 'odd "name"; --' in await lifecycles.databases()

    await lifecycles.delete(database)
    await lifecycles.run()

    assert 'odd "name"; --' not in await lifecycles.databases()
    assert await lifecycles.resource(database) is None


async def test_deleting_a_server_takes_its_databases_and_pools_first(lifecycles):
    server = await lifecycles.put_server()
    databases = [await lifecycles.put_database(server) for _ in range(3)]
    await lifecycles.put_pool(server, "p")
    await lifecycles.run()

    handle = await lifecycles.delete(server)
    await lifecycles.run()

    assert (await lifecycles.operation(handle)).status == "Succeeded"
    assert await lifecycles.db.fetchval("select count(*) from resource where name = 'p'") == 0
    for database in databases:
        assert await lifecycles.resource(database) is None
        assert (await lifecycles.path(database))[-1] == "deleted"
        assert database.id.name not in await lifecycles.databases()


async def test_a_group_goes_with_everything_inside(lifecycles):
    server = await lifecycles.put_server()
    await lifecycles.put_database(server)
    await lifecycles.run()

    handle = await lifecycles.delete_group()
    await lifecycles.run()

    assert (await lifecycles.operation(handle)).status == "Succeeded"
    assert await lifecycles.db.fetchval("select count(*) from resource") == 1  # the subscription
    callers = await lifecycles.db.fetch("select distinct caller from operation")
    assert [row["caller"] for row in callers] == ["me"]


async def test_delete_during_creation_interrupts_and_cleans_up(lifecycles):
    server = await lifecycles.put_server()
    runner = lifecycles.runner()
    for _ in range(3):
        await lifecycles.step(server, runner)
    assert await lifecycles.state(server) == "verifying"

    handle = await lifecycles.delete(server)
    await lifecycles.run()

    assert (await lifecycles.operation(server)).error["code"] == "OperationInterrupted"
    assert (await lifecycles.operation(server)).status == "Canceled"
    assert (await lifecycles.operation(handle)).status == "Succeeded"
    assert lifecycles.clusters.known() == []


async def test_a_wrong_password_fails_at_once_and_an_update_starts_over(lifecycles, targets):
    endpoint = {"host": targets.host, "port": targets.port, "sslMode": "disable"}
    server = await lifecycles.put_server(
        endpoint=endpoint,
        administratorLogin=targets.administrator.name,
        administratorLoginPassword="wrong",
    )
    await lifecycles.run()

    row = await lifecycles.resource(server)
    assert (row["provisioning_state"], row["observed"]["state"]) == ("Failed", "Disabled")
    assert row["observed"]["lastError"]["code"] == "TargetAuthenticationFailed"
    assert (await lifecycles.operation(server)).status == "Failed"

    again = await lifecycles.update(server, password=targets.administrator.password)
    await lifecycles.run()

    row = await lifecycles.resource(server)
    assert (await lifecycles.operation(again)).status == "Succeeded"
    assert row["observed"]["state"] == "Ready"
    assert "lastError" not in row["observed"]
    assert [c["type"] for c in row["observed"]["conditions"]] == ["TlsNotVerified"]
    assert row["observed"]["maxConnections"] == 20


async def test_an_unreachable_server_is_tried_until_the_deadline(lifecycles, targets):
    server = await lifecycles.put_server(
        endpoint={"host": targets.host, "port": 1025, "sslMode": "disable"}
    )
    await lifecycles.run()

    assert (await lifecycles.operation(server)).error["code"] == "TargetUnreachable"
    assert lifecycles.clock.passed > 59


async def test_a_failed_update_brings_the_old_settings_back(lifecycles, targets):
    server = await registered(lifecycles, targets)
    before = await lifecycles.resource(server)

    endpoint = {"host": targets.host, "port": 1025, "sslMode": "disable"}
    handle = await lifecycles.update(server, password="other", endpoint=endpoint)
    assert (await lifecycles.resource(server))["provisioning_state"] == "Updating"
    await lifecycles.run()

    after = await lifecycles.resource(server)
    assert (await lifecycles.operation(handle)).status == "Failed"
    assert after["provisioning_state"] == "Succeeded"
    assert (after["properties"], after["sealed"]) == (before["properties"], before["sealed"])
    assert after["observed"]["lastError"]["code"] == "TargetUnreachable"


async def test_an_existing_database_is_adopted_and_kept(lifecycles, targets):
    server = await registered(lifecycles, targets)
    name = await make(lifecycles, targets)
    database = await lifecycles.put_database(server, name=name)
    await lifecycles.run()
    assert (await lifecycles.resource(database))["observed"]["adopted"] is True

    await lifecycles.delete(database)
    await lifecycles.run()

    assert name in await lifecycles.databases()
    await drop(targets, name)


@pytest.mark.parametrize(("policy", "kept"), [(None, True), ("Retain", True), ("Drop", False)])
async def test_a_made_database_on_a_registered_server_follows_the_policy(
    lifecycles, targets, policy, kept
):
    server = await registered(lifecycles, targets)
    properties = {"deletionPolicy": policy} if policy else {}
    database = await lifecycles.put_database(server, **properties)
    await lifecycles.run()
    assert "adopted" not in (await lifecycles.resource(database))["observed"]

    await lifecycles.delete(database)
    await lifecycles.run()

    assert (database.id.name in await lifecycles.databases()) is kept
    await drop(targets, database.id.name)


async def test_a_server_that_goes_never_drops_databases_of_a_registered_server(lifecycles, targets):
    server = await registered(lifecycles, targets)
    database = await lifecycles.put_database(server, deletionPolicy="Drop")
    await lifecycles.run()

    await lifecycles.delete_group()
    await lifecycles.run()

    assert database.id.name in await lifecycles.databases()
    await drop(targets, database.id.name)


async def test_databases_of_a_server_without_a_login_are_not_looked_at(lifecycles, targets):
    endpoint = {"host": targets.host, "port": targets.port, "sslMode": "disable"}
    server = await lifecycles.put_server(endpoint=endpoint, administratorLogin=None)
    database = await lifecycles.put_database(server)
    await lifecycles.run()

    shown = (await lifecycles.resource(database))["observed"]
    assert [c["type"] for c in shown["conditions"]] == ["NotVerified"]
    assert shown["adopted"] is True
    assert database.id.name not in await lifecycles.databases()


async def shown(lifecycles, server) -> tuple[str, str, list[str]]:
    row = await lifecycles.resource(server)
    observed = row["observed"]
    types = [each["type"] for each in observed["conditions"]]
    return row["provisioning_state"], observed["state"], types


async def test_a_server_without_a_login_is_ready_once_it_was_reached(lifecycles, targets):
    plain = {"host": targets.host, "port": targets.port, "sslMode": "disable"}
    server = await lifecycles.put_server(endpoint=plain | {"port": 1025}, administratorLogin=None)
    await lifecycles.run()
    unreachable = await shown(lifecycles, server)
    message = (await lifecycles.resource(server))["observed"]["conditions"][1]["message"]

    corrected = await lifecycles.update(server, endpoint=plain)
    await lifecycles.run()

    assert unreachable == ("Succeeded", "NotVerified", ["TlsNotVerified", "NotVerified"])
    assert message.startswith(f"The server {targets.host} can't be reached: ")
    assert (await lifecycles.operation(corrected)).status == "Succeeded"
    assert await shown(lifecycles, server) == ("Succeeded", "Ready", ["TlsNotVerified"])


async def test_a_server_without_the_tls_that_was_asked_for_is_not_verified(lifecycles, targets):
    endpoint = {"host": targets.host, "port": targets.port}
    server = await lifecycles.put_server(endpoint=endpoint, administratorLogin=None)

    await lifecycles.run()

    assert await shown(lifecycles, server) == ("Succeeded", "NotVerified", ["NotVerified"])


async def test_a_new_password_of_an_embedded_server_works(lifecycles):
    server = await lifecycles.put_server()
    await lifecycles.run()

    handle = await lifecycles.update(server, password="second-password")
    database = await lifecycles.put_database(server)
    await lifecycles.run()

    assert (await lifecycles.operation(handle)).status == "Succeeded"
    assert (await lifecycles.operation(database)).status == "Succeeded"


async def test_a_delete_that_fails_tries_again_by_itself(lifecycles, targets):
    server = await registered(lifecycles, targets)
    database = await lifecycles.put_database(server, deletionPolicy="Drop")
    await lifecycles.run()
    holder = await connect(targets, database.id.name)
    handle = await lifecycles.delete(database, force=False)
    for _ in range(40):
        if await lifecycles.state(database) == "delete_failed":
            break
        await lifecycles.step(database)
        await lifecycles.advance(timedelta(minutes=4))
    assert (await lifecycles.operation(handle)).error["code"] == "DatabaseInUse"
    row = await lifecycles.resource(database)
    assert (row["provisioning_state"], row["observed"]["status"]) == ("Failed", "Stopping")

    payload = await lifecycles.db.fetchval(
        "select scratch -> 'signal' from machine where uid = $1", database.uid
    )
    assert payload == {"force": False}  # what it was asked for stays known

    await holder.close()
    await lifecycles.run()

    assert await lifecycles.resource(database) is None
    assert database.id.name not in await lifecycles.databases()


async def test_a_forced_delete_ends_the_sessions_that_are_there(lifecycles, targets):
    server = await registered(lifecycles, targets)
    database = await lifecycles.put_database(server, deletionPolicy="Drop")
    await lifecycles.run()
    holder = await connect(targets, database.id.name)

    handle = await lifecycles.delete(database, force=True)
    await lifecycles.run()

    assert (await lifecycles.operation(handle)).status == "Succeeded"
    assert database.id.name not in await lifecycles.databases()
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)):
        await holder.fetch("select 1")
    await holder.close()


async def test_a_second_delete_joins_the_one_under_way(lifecycles, targets):
    server = await registered(lifecycles, targets)
    database = await lifecycles.put_database(server, deletionPolicy="Drop")
    await lifecycles.run()
    holder = await connect(targets, database.id.name)
    await lifecycles.delete(database)
    while await lifecycles.state(database) != "delete_failed":
        await lifecycles.step(database)
        await lifecycles.advance(timedelta(minutes=4))
    await lifecycles.advance(lifecycles.settings.retry_ceiling)
    await lifecycles.step(database)
    assert await lifecycles.state(database) == "dropping"

    joined = await lifecycles.delete(database)
    await holder.close()
    await lifecycles.run()

    assert (await lifecycles.operation(joined)).status == "Succeeded"


async def test_a_server_that_is_too_old_is_refused(lifecycles, targets, monkeypatch):
    monkeypatch.setattr("fsm.server_steps.OLDEST", 990_000)
    server = await lifecycles.put_server()
    await lifecycles.run()

    assert (await lifecycles.operation(server)).error["code"] == "ServerVersionUnsupported"


async def test_an_administrator_without_rights_is_told_the_exact_statement(lifecycles, targets):
    login = f"poor_{secrets.token_hex(4)}"
    root = await asyncpg.connect(targets.url("postgres", targets.root))
    await root.execute(f"create role {login} login password 'x'")
    await root.close()
    endpoint = {"host": targets.host, "port": targets.port, "sslMode": "disable"}
    server = await lifecycles.put_server(
        endpoint=endpoint, administratorLogin=login, administratorLoginPassword="x"
    )
    database = await lifecycles.put_database(server)
    await lifecycles.run()

    conditions = [c["type"] for c in (await lifecycles.resource(server))["observed"]["conditions"]]
    assert conditions == ["TlsNotVerified", "CreateDatabaseNotAllowed"]
    error = (await lifecycles.operation(database)).error
    assert error["code"] == "DatabaseCreateDenied"
    assert f'create database {database.id.name} owner "{login}";' in error["message"]


async def test_a_stranger_who_was_quicker_keeps_his_database(lifecycles, targets):
    server = await lifecycles.put_server()
    await lifecycles.run()
    database = await lifecycles.put_database(server)
    await lifecycles.step(database)
    assert await lifecycles.state(database) == "creating"
    connection = await connect(targets)
    await connection.execute(f'create database "{database.id.name}"')
    await connection.close()
    await lifecycles.run()
    assert (await lifecycles.resource(database))["observed"]["adopted"] is True

    await lifecycles.delete(database)
    await lifecycles.run()

    assert database.id.name in await lifecycles.databases()
    await drop(targets, database.id.name)


async def test_role_assignments_go_with_their_resource(lifecycles):
    server = await lifecycles.put_server()
    await lifecycles.run()
    assignment = server.id.child(("providers", "Microsoft.Authorization"), ("roleAssignments", "a"))
    await lifecycles._insert(assignment, __import__("uuid").uuid4())

    await lifecycles.delete(server)
    await lifecycles.run()

    assert await lifecycles.db.fetchval("select count(*) from resource where name = 'a'") == 0


async def registered(lifecycles, targets):
    endpoint = {"host": targets.host, "port": targets.port, "sslMode": "disable"}
    server = await lifecycles.put_server(
        endpoint=endpoint,
        administratorLogin=targets.administrator.name,
        administratorLoginPassword=targets.administrator.password,
    )
    await lifecycles.run()
    assert (await lifecycles.operation(server)).status == "Succeeded"
    return server


async def connect(targets, name="postgres"):
    return await asyncpg.connect(targets.url(name, targets.administrator))


async def make(lifecycles, targets):
    name = f"there_{secrets.token_hex(4)}"
    connection = await connect(targets)
    await connection.execute(f'create database "{name}"')
    await connection.close()
    return name


async def drop(targets, name):
    connection = await connect(targets)
    await postgres.drop(connection, name)
    await connection.close()
