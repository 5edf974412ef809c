"""A credential that lists servers logs in there alone, and only at the endpoint that each had then."""

import asyncio
import contextlib
import json

import pytest

from tests.support import arm
from tests.support.control_db import installed
from tests.support.definitions import SERVERS, a_definer
from tests.support.fleet import start_fleet
from tests.support.jobs_fixture import start_jobs_api

LISTED = "select servers from jobs_internal.credential"
MOVE = "update jobs_internal.server_directory set port = $1, revision = revision + 1"
RISE = "update jobs_internal.directory_revision set revision = revision + 1"
C1 = {"credential_name": "c1", "identity": "u", "secret": "env:P"}


@contextlib.asynccontextmanager
async def counted_listener():
    """Yields its port and who came."""
    came = []

    async def come(_reader, writer):
        came.append(writer.get_extra_info("peername"))
        writer.close()

    server = await asyncio.start_server(come, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], came


async def ended(fleet, run):
    (target,) = await fleet.targets_of(run)
    return target["lifecycle"], target["end_reason"]


async def test_a_listed_server_is_logged_in_at_until_its_endpoint_changes(
    settings, db, targets, tmp_path
):
    async with (
        counted_listener() as (port, came),
        start_fleet(settings, db, targets, tmp_path, databases=1) as fleet,
    ):
        await fleet.call("sp_update_credential", credential_name="fleet", servers=["fleet"])
        before = await fleet.run("select 1")
        await fleet.root.execute(MOVE, port)
        await fleet.root.execute(RISE)
        lapsed = await fleet.run("select 1")

        assert await ended(fleet, before) == ("Succeeded", None)
        assert await ended(fleet, lapsed) == ("Failed", "CredentialNotForServer")
        (task,) = await fleet.tasks(lapsed)
        assert "has changed since the credential 'fleet' listed it" in task["message"]
        assert came == []


@pytest.mark.parametrize("group", ["everything", "schemas"])
async def test_a_server_that_is_not_listed_gets_no_connection(
    settings, db, targets, tmp_path, group
):
    async with (
        counted_listener() as (port, came),
        start_fleet(settings, db, targets, tmp_path, databases=1) as fleet,
    ):
        await fleet.schema_group()
        await fleet.root.execute(MOVE, port)
        other = "insert into jobs_internal.server_directory (server_id, name, hosts, port, ssl_mode, revision)"
        await fleet.root.execute(
            f"{other} values ('/eu1', 'eu1', '{{10.0.0.1}}', 5432, 'disable', 1)"
        )
        await fleet.call("sp_update_credential", credential_name="fleet", servers=["eu1"])

        run = await fleet.run("select 1", group=group)

        assert await ended(fleet, run) == ("Failed", "CredentialNotForServer")
        assert came == []


@pytest.fixture
async def admin(settings, db, targets):
    account = await installed(settings, db, targets)
    await account.execute(SERVERS)
    async with a_definer(account) as made:
        made.account = account
        yield made


async def item(admin):
    rows = await admin.account.fetch(
        "select jobs_internal.get_item('credentials', '{c1}')::jsonb -> 'properties'"
    )
    return json.loads(rows[0][0])


async def test_servers_are_listed_kept_replaced_and_taken_back(admin):
    await admin.call("sp_add_credential", **C1, servers=("EU1", "us1.example.com"))
    assert (await item(admin))["servers"] == ["eu1", "us1"]

    await admin.call("sp_update_credential", credential_name="c1", identity="v")
    assert (await item(admin))["servers"] == ["eu1", "us1"]

    await admin.account.execute(
        "update jobs_internal.server_directory set port = 5433 where name = 'us1'"
    )
    shown = await item(admin)
    assert (shown["servers"], shown["lapsedServers"]) == (["eu1"], ["/us1"])

    await admin.call("sp_update_credential", credential_name="c1", servers=("us1",))
    shown = await item(admin)
    assert (shown["servers"], shown["lapsedServers"]) == (["us1"], [])

    await admin.call("sp_update_credential", credential_name="c1", servers=("*",))
    assert await item(admin) == {"username": "v", "reference": "env:P"}


async def test_a_list_that_names_nothing_or_nobody_is_refused(admin):
    empty = await admin.refused("MU012", "sp_add_credential", **C1, servers=())
    unknown = await admin.refused("MU015", "sp_add_credential", **C1, servers=("eu2",))

    assert (empty.column_name, unknown.column_name) == ("servers", "servers")


async def test_rest_lists_servers_keeps_them_and_names_what_is_wrong(settings, targets, tmp_path):
    login = {"username": "u", "password": "a long password"}

    async with start_jobs_api(settings, targets, tmp_path) as jobs_api:

        async def put(**more):
            return await jobs_api.put("credentials/c", {"properties": login | more})

        made = await put(servers=["srv"])
        kept = await put()
        unknown = await put(servers=["nowhere"])
        empty = await put(servers=[])
        mixed = await put(servers=["*", "srv"])
        freed = await put(servers=["*"])

    assert made.json()["properties"] == {"username": "u", "servers": ["srv"], "lapsedServers": []}
    assert kept.json()["properties"]["servers"] == ["srv"]
    assert (unknown.status_code, arm.error(unknown)) == (400, "InvalidTargetServer")
    assert [each.json()["error"]["target"] for each in (empty, mixed)] == ["properties.servers"] * 2
    assert freed.json()["properties"] == {"username": "u"}
