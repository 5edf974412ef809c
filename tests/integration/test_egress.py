"""Where job processes connect to is decided by the control plane: nothing in a control database widens it."""

import asyncio
import contextlib
from uuid import uuid4

import pytest

from fsm.launch.protocol import Kind
from muster.core.settings import Secret
from tests.support.engine_processes import start_processes
from tests.support.launching import QueueFixture

MOVE = "update jobs_internal.server_directory set hosts = '{127.0.0.1}', port = $1"
ALLOW = "insert into account_server (account_uid, server_uid, added_by) values ($1, $2, 'test')"
RESOURCE = """
insert into resource (uid, key, id, tenant_id, subscription_key, type, name, provisioning_state, properties, observed,
                      created_by, created_by_type, modified_by, modified_by_type)
values ($1, $2, $2, 't', $3, 'Microsoft.Sql/servers', $2, $4, $5, $6, 'me', 'User', 'me', 'User')
"""
AGENT = "insert into node_agents (name, url, version) values ('n', 'http://127.0.0.1:7001', '1')"


@contextlib.asynccontextmanager
async def counted_listener():
    """A listener of the control plane; yields its port and who came."""
    came = []

    async def come(_reader, writer):
        came.append(writer.get_extra_info("peername"))
        writer.close()

    server = await asyncio.start_server(come, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], came


@pytest.mark.parametrize("allow", [["127.0.0.0/8"], []], ids=["allowed by a rule", "closed"])
async def test_a_directory_that_points_at_the_control_plane_sends_no_packet_there(
    settings, db, control, targets, tmp_path, allow
):
    async with counted_listener() as (port, came):
        given = {"redis_url": Secret(f"redis://127.0.0.1:{port}"), "targetAllow": allow}
        async with start_processes(
            settings, db, control, targets, tmp_path, databases=1, hosts=1, **given
        ) as processes:
            await processes.fleet.root.execute(MOVE, port)
            run = await processes.fleet.run("select 1")

            (target,) = await processes.fleet.targets_of(run)
    assert (target["lifecycle"], target["end_reason"]) == ("Failed", "TargetNotAllowed")
    assert came == []


async def test_an_embedded_server_is_reached_as_soon_as_the_control_plane_has_it(
    settings, db, control, targets, tmp_path
):
    """Made after the engine and the host began; the directory had it all the time."""
    async with start_processes(
        settings, db, control, targets, tmp_path, databases=1, hosts=1, targetAllow=[]
    ) as processes:
        before = await processes.fleet.run("select 1")
        account = processes.fleet.account.uid
        await a_server(db, "account", uid=account, endpoint={"host": "10.0.0.1"})
        await a_server(db, "made", port=targets.port, used_by=account)
        after = await processes.fleet.run("select 1")

        ends = [(await processes.fleet.targets_of(run))[0] for run in (before, after)]
    assert [(each["lifecycle"], each["end_reason"]) for each in ends] == [
        ("Failed", "TargetNotAllowed"),
        ("Succeeded", None),
    ]


async def a_server(
    db, name, *, state="Succeeded", port=None, endpoint=None, uid=None, used_by=None
):
    uid = uid or uuid4()
    properties = {"endpoint": endpoint} if endpoint else {}
    observed = {"endpoint": {"host": "127.0.0.1", "port": port}} if port else {}
    await db.execute(RESOURCE, uid, f"/{name}", "s1", state, properties, observed)
    if used_by is not None:
        await db.execute(ALLOW, used_by, uid)
    return uid


async def test_an_account_is_handed_the_embedded_servers_that_it_may_use_and_that_stay(
    settings, db
):
    account = await a_server(db, "account", endpoint={"host": "10.0.0.1"})
    mine = {"used_by": account}
    await a_server(db, "ours", port=6001, **mine)
    await a_server(db, "not allowed", port=6002)
    await a_server(db, "leaving", port=6003, state="Deleting", **mine)
    registered = {"host": "127.0.0.1", "port": 6004}
    await a_server(db, "registered", port=6004, endpoint=registered, **mine)
    weak = {"host": "db.b", "directHost": "db.c:6005", "authentication": "password"}
    await a_server(db, "weak", endpoint=weak, **mine)
    await a_server(db, "weak, not allowed", endpoint=weak | {"host": "db.d"})
    await db.execute(AGENT)
    queue = QueueFixture(db, settings)
    host = await queue.at("running", Kind.HOST, account_uid=account)

    async with queue.client(await queue.token(host)) as client:
        handed = (await client.get("/addresses")).json()

    assert handed["embedded"] == [["127.0.0.1", 6001]]
    assert sorted(handed["weak"]) == [
        ["db.b", 5432, "verify-full", "password"],
        ["db.c", 6005, "verify-full", "password"],
    ]
    own = {tuple(pair) for pair in handed["own"]}
    assert {("127.0.0.1", 7001), ("127.0.0.1", 8080), ("127.0.0.1", 8081)} < own
    assert settings.database_url.reveal().partition("@")[2].partition("/")[0] in {
        f"{host}:{port}" for host, port in own
    }


@pytest.mark.parametrize("kind", [Kind.COMMAND, None], ids=["a command", "a launcher"])
async def test_addresses_are_handed_to_engines_and_hosts_alone(settings, db, kind):
    queue = QueueFixture(db, settings)
    token = await queue.token(await queue.at("running", kind)) if kind else None

    async with queue.client(token) as client:
        assert (await client.get("/addresses")).status_code == 403
