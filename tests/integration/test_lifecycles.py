"""Whole lives of servers, databases and groups on a real database, in virtual time."""

import secrets
from datetime import timedelta

import asyncpg
import pytest

from tests.support import postgres
from tests.support.fake_clusters import FakeClusters
from tests.support.lifecycle_fixture import World, unhurried

pytestmark = pytest.mark.targets


@pytest.fixture
def world(db, settings, targets) -> World:
    return World(db, unhurried(settings), targets, FakeClusters(targets))


async def test_an_embedded_server_comes_to_be_and_goes(world):
    server = await world.put_server()
    await world.run()

    row = await world.resource(server)
    assert (row["provisioning_state"], row["observed"]["state"]) == ("Succeeded", "Ready")
    assert row["observed"]["endpoint"]["sslMode"] == "disable"
    assert row["observed"]["serverVersion"]
    assert (await world.operation(server)).status == "Succeeded"

    deleted = await world.delete(server)
    assert (await world.resource(server))["provisioning_state"] == "Deleting"
    await world.run()

    assert await world.resource(server) is None
    assert (await world.operation(deleted)).status == "Succeeded"
    assert world.clusters.known() == []
    assert await world.path(server) == [
        "reserving", "making", "starting", "verifying", "ready",
        "removing_children", "stopping", "removing", "deleted",
    ]  # fmt: skip


async def test_a_database_is_made_as_the_administrator_and_dropped(world):
    server = await world.put_server()
    database = await world.put_database(server, name='odd "name"; --')
    await world.run()

    row = await world.resource(database)
    assert (row["provisioning_state"], row["observed"]["status"]) == ("Succeeded", "Online")
    assert row["observed"]["databaseId"] == str(database.uid)
    assert row["observed"]["sizeBytes"] > 0
    assert "adopted" not in row["observed"]
    assert 'odd "name"; --' in await world.databases()

    await world.delete(database)
    await world.run()

    assert 'odd "name"; --' not in await world.databases()
    assert await world.resource(database) is None


async def test_deleting_a_server_takes_its_databases_and_pools_first(world):
    server = await world.put_server()
    databases = [await world.put_database(server) for _ in range(3)]
    await world.put_pool(server, "p")
    await world.run()

    asked = await world.delete(server)
    await world.run()

    assert (await world.operation(asked)).status == "Succeeded"
    assert await world.db.fetchval("select count(*) from resource where name = 'p'") == 0
    for database in databases:
        assert await world.resource(database) is None
        assert (await world.path(database))[-1] == "deleted"
        assert database.id.name not in await world.databases()


async def test_a_group_goes_with_everything_inside(world):
    server = await world.put_server()
    await world.put_database(server)
    await world.run()

    asked = await world.delete_group()
    await world.run()

    assert (await world.operation(asked)).status == "Succeeded"
    assert await world.db.fetchval("select count(*) from resource") == 1  # the subscription
    callers = await world.db.fetch("select distinct caller from operation")
    assert [row["caller"] for row in callers] == ["me"]


async def test_delete_during_creation_interrupts_and_cleans_up(world):
    server = await world.put_server()
    runner = world.runner()
    for _ in range(3):
        await world.step(server, runner)
    assert await world.state(server) == "verifying"

    asked = await world.delete(server)
    await world.run()

    assert (await world.operation(server)).error["code"] == "OperationInterrupted"
    assert (await world.operation(server)).status == "Canceled"
    assert (await world.operation(asked)).status == "Succeeded"
    assert world.clusters.known() == []


async def test_a_wrong_password_fails_at_once_and_an_update_starts_over(world, targets):
    endpoint = {"host": targets.host, "port": targets.port, "sslMode": "disable"}
    server = await world.put_server(
        endpoint=endpoint,
        administratorLogin=targets.administrator.name,
        administratorLoginPassword="wrong",
    )
    await world.run()

    row = await world.resource(server)
    assert (row["provisioning_state"], row["observed"]["state"]) == ("Failed", "Disabled")
    assert row["observed"]["lastError"]["code"] == "TargetAuthenticationFailed"
    assert (await world.operation(server)).status == "Failed"

    again = await world.update(server, password=targets.administrator.password)
    await world.run()

    row = await world.resource(server)
    assert (await world.operation(again)).status == "Succeeded"
    assert row["observed"]["state"] == "Ready"
    assert "lastError" not in row["observed"]
    assert [c["type"] for c in row["observed"]["conditions"]] == ["TlsNotVerified"]
    assert row["observed"]["maxConnections"] == 20


async def test_an_unreachable_server_is_tried_until_the_deadline(world, targets):
    server = await world.put_server(
        endpoint={"host": targets.host, "port": 1025, "sslMode": "disable"}
    )
    await world.run()

    assert (await world.operation(server)).error["code"] == "TargetUnreachable"
    assert world.clock.passed > 59


async def test_a_failed_update_brings_the_old_settings_back(world, targets):
    server = await registered(world, targets)
    before = await world.resource(server)

    endpoint = {"host": targets.host, "port": 1025, "sslMode": "disable"}
    asked = await world.update(server, password="other", endpoint=endpoint)
    assert (await world.resource(server))["provisioning_state"] == "Updating"
    await world.run()

    after = await world.resource(server)
    assert (await world.operation(asked)).status == "Failed"
    assert after["provisioning_state"] == "Succeeded"
    assert (after["properties"], after["sealed"]) == (before["properties"], before["sealed"])
    assert after["observed"]["lastError"]["code"] == "TargetUnreachable"


async def test_an_existing_database_is_adopted_and_kept(world, targets):
    server = await registered(world, targets)
    name = await make(world, targets)
    database = await world.put_database(server, name=name)
    await world.run()
    assert (await world.resource(database))["observed"]["adopted"] is True

    await world.delete(database)
    await world.run()

    assert name in await world.databases()
    await drop(targets, name)


@pytest.mark.parametrize(("policy", "kept"), [(None, True), ("Retain", True), ("Drop", False)])
async def test_a_made_database_on_a_registered_server_follows_the_policy(
    world, targets, policy, kept
):
    server = await registered(world, targets)
    properties = {"deletionPolicy": policy} if policy else {}
    database = await world.put_database(server, **properties)
    await world.run()
    assert "adopted" not in (await world.resource(database))["observed"]

    await world.delete(database)
    await world.run()

    assert (database.id.name in await world.databases()) is kept
    await drop(targets, database.id.name)


async def test_a_server_that_goes_never_drops_databases_of_a_registered_server(world, targets):
    server = await registered(world, targets)
    database = await world.put_database(server, deletionPolicy="Drop")
    await world.run()

    await world.delete_group()
    await world.run()

    assert database.id.name in await world.databases()
    await drop(targets, database.id.name)


async def test_databases_of_a_server_without_a_login_are_not_looked_at(world, targets):
    endpoint = {"host": targets.host, "port": targets.port, "sslMode": "disable"}
    server = await world.put_server(endpoint=endpoint, administratorLogin=None)
    database = await world.put_database(server)
    await world.run()

    shown = (await world.resource(database))["observed"]
    assert [c["type"] for c in shown["conditions"]] == ["NotVerified"]
    assert shown["adopted"] is True
    assert database.id.name not in await world.databases()


async def shown(world, server) -> tuple[str, str, list[str]]:
    row = await world.resource(server)
    observed = row["observed"]
    types = [each["type"] for each in observed["conditions"]]
    return row["provisioning_state"], observed["state"], types


async def test_a_server_without_a_login_is_ready_once_it_was_reached(world, targets):
    plain = {"host": targets.host, "port": targets.port, "sslMode": "disable"}
    server = await world.put_server(endpoint=plain | {"port": 1025}, administratorLogin=None)
    await world.run()
    unreachable = await shown(world, server)
    message = (await world.resource(server))["observed"]["conditions"][1]["message"]

    corrected = await world.update(server, endpoint=plain)
    await world.run()

    assert unreachable == ("Succeeded", "NotVerified", ["TlsNotVerified", "NotVerified"])
    assert message.startswith(f"The server {targets.host} can't be reached: ")
    assert (await world.operation(corrected)).status == "Succeeded"
    assert await shown(world, server) == ("Succeeded", "Ready", ["TlsNotVerified"])


async def test_a_server_without_the_tls_that_was_asked_for_is_not_verified(world, targets):
    endpoint = {"host": targets.host, "port": targets.port}
    server = await world.put_server(endpoint=endpoint, administratorLogin=None)

    await world.run()

    assert await shown(world, server) == ("Succeeded", "NotVerified", ["NotVerified"])


async def test_a_new_password_of_an_embedded_server_works(world):
    server = await world.put_server()
    await world.run()

    asked = await world.update(server, password="second-password")
    database = await world.put_database(server)
    await world.run()

    assert (await world.operation(asked)).status == "Succeeded"
    assert (await world.operation(database)).status == "Succeeded"


async def test_a_delete_that_fails_tries_again_by_itself(world, targets):
    server = await registered(world, targets)
    database = await world.put_database(server, deletionPolicy="Drop")
    await world.run()
    holder = await connect(targets, database.id.name)
    asked = await world.delete(database, force=False)
    for _ in range(40):
        if await world.state(database) == "delete_failed":
            break
        await world.step(database)
        await world.advance(timedelta(minutes=4))
    assert (await world.operation(asked)).error["code"] == "DatabaseInUse"
    row = await world.resource(database)
    assert (row["provisioning_state"], row["observed"]["status"]) == ("Failed", "Stopping")

    payload = await world.db.fetchval(
        "select scratch -> 'signal' from machine where uid = $1", database.uid
    )
    assert payload == {"force": False}  # what it was asked for stays known

    await holder.close()
    await world.run()

    assert await world.resource(database) is None
    assert database.id.name not in await world.databases()


async def test_a_forced_delete_ends_the_sessions_that_are_there(world, targets):
    server = await registered(world, targets)
    database = await world.put_database(server, deletionPolicy="Drop")
    await world.run()
    holder = await connect(targets, database.id.name)

    asked = await world.delete(database, force=True)
    await world.run()

    assert (await world.operation(asked)).status == "Succeeded"
    assert database.id.name not in await world.databases()
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)):
        await holder.fetch("select 1")
    await holder.close()


async def test_a_second_delete_joins_the_one_under_way(world, targets):
    server = await registered(world, targets)
    database = await world.put_database(server, deletionPolicy="Drop")
    await world.run()
    holder = await connect(targets, database.id.name)
    await world.delete(database)
    while await world.state(database) != "delete_failed":
        await world.step(database)
        await world.advance(timedelta(minutes=4))
    await world.advance(world.settings.retry_ceiling)
    await world.step(database)
    assert await world.state(database) == "dropping"

    joined = await world.delete(database)
    await holder.close()
    await world.run()

    assert (await world.operation(joined)).status == "Succeeded"


async def test_a_server_that_is_too_old_is_refused(world, targets, monkeypatch):
    monkeypatch.setattr("fsm.server_steps.OLDEST", 990_000)
    server = await world.put_server()
    await world.run()

    assert (await world.operation(server)).error["code"] == "ServerVersionUnsupported"


async def test_an_administrator_without_rights_is_told_the_exact_statement(world, targets):
    login = f"poor_{secrets.token_hex(4)}"
    root = await asyncpg.connect(targets.url("postgres", targets.root))
    await root.execute(f"create role {login} login password 'x'")
    await root.close()
    endpoint = {"host": targets.host, "port": targets.port, "sslMode": "disable"}
    server = await world.put_server(
        endpoint=endpoint, administratorLogin=login, administratorLoginPassword="x"
    )
    database = await world.put_database(server)
    await world.run()

    conditions = [c["type"] for c in (await world.resource(server))["observed"]["conditions"]]
    assert conditions == ["TlsNotVerified", "CreateDatabaseNotAllowed"]
    error = (await world.operation(database)).error
    assert error["code"] == "DatabaseCreateDenied"
    assert f'create database {database.id.name} owner "{login}";' in error["message"]


async def test_a_stranger_who_was_quicker_keeps_his_database(world, targets):
    server = await world.put_server()
    await world.run()
    database = await world.put_database(server)
    await world.step(database)
    assert await world.state(database) == "creating"
    connection = await connect(targets)
    await connection.execute(f'create database "{database.id.name}"')
    await connection.close()
    await world.run()
    assert (await world.resource(database))["observed"]["adopted"] is True

    await world.delete(database)
    await world.run()

    assert database.id.name in await world.databases()
    await drop(targets, database.id.name)


async def test_role_assignments_go_with_their_resource(world):
    server = await world.put_server()
    await world.run()
    assignment = server.id.child(("providers", "Microsoft.Authorization"), ("roleAssignments", "a"))
    await world._insert(assignment, __import__("uuid").uuid4())

    await world.delete(server)
    await world.run()

    assert await world.db.fetchval("select count(*) from resource where name = 'a'") == 0


async def registered(world, targets):
    endpoint = {"host": targets.host, "port": targets.port, "sslMode": "disable"}
    server = await world.put_server(
        endpoint=endpoint,
        administratorLogin=targets.administrator.name,
        administratorLoginPassword=targets.administrator.password,
    )
    await world.run()
    assert (await world.operation(server)).status == "Succeeded"
    return server


async def connect(targets, name="postgres"):
    return await asyncpg.connect(targets.url(name, targets.administrator))


async def make(world, targets):
    name = f"there_{secrets.token_hex(4)}"
    connection = await connect(targets)
    await connection.execute(f'create database "{name}"')
    await connection.close()
    return name


async def drop(targets, name):
    connection = await connect(targets)
    await postgres.drop(connection, name)
    await connection.close()
