"""A password is shown to a server only where an Owner allowed it, by the method that was allowed, on real PostgreSQL."""

import asyncio
import shutil
import tempfile
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from muster.core.address_source import Fixed
from muster.core.connect import Connector, Endpoint
from muster.core.egress import Addresses
from muster.core.errors import Forbidden, InvalidRequest
from muster.core.ids import ResourceId
from tests.support.fleet import start_fleet
from tests.support.plane import (
    GROUP,
    SERVER,
    TENANT_ID,
    a_call,
    a_group,
    make_plane,
    registered,
    settle,
)
from tests.support.postgres import HOST, owner, running
from workflows import assignments, servers
from workflows.model.resource import Body, Principal
from workflows.roles import CONTRIBUTOR, PREFIX

CLEAR_TEXT, HASHED = "clear_text", "hashed"
HBA = f"""
host all {CLEAR_TEXT} {HOST}/32 password
host all {HASHED} {HOST}/32 md5
host all fleet_admin {HOST}/32 password
host all all {HOST}/32 scram-sha-256
"""
HELPER = Principal(id="helper", tenant_id=TENANT_ID, name="helper")


@pytest.fixture(scope="module")
def weak_server():
    """Asks each of its logins for the password in another way."""
    home = Path(tempfile.mkdtemp(prefix="muster-weak-"))
    try:
        (home / "hba").write_text(HBA)
        for path in (home, home / "hba"):
            if who := owner():
                shutil.chown(path, **who)
        with running(migrated=False, hba_file=str(home / "hba")) as server:
            asyncio.run(add_logins(server))
            yield server
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def add_logins(server):
    connection = await asyncpg.connect(server.url("postgres", server.root))
    await connection.execute("set password_encryption = 'md5'")
    for name in (CLEAR_TEXT, HASHED):
        await connection.execute(f"create role {name} login password 'canary'")
    await connection.close()


@pytest.fixture
def plane(settings, db):
    return make_plane(settings, db)


async def a_helper(plane):
    """A Contributor of the resource group."""
    id = ResourceId.parse(f"{GROUP}/providers/Microsoft.Authorization/roleAssignments/{uuid4()}")
    given = {"principalId": HELPER.id, "roleDefinitionId": PREFIX + CONTRIBUTOR.id}
    await assignments.put(plane, a_call(), id, Body(properties=given))


def weakly(server, **more):
    endpoint = {
        "host": HOST,
        "port": server.port,
        "sslMode": "disable",
        "authentication": "password",
    }
    return registered(server, endpoint=endpoint | more)


@pytest.mark.parametrize("method", ["scram-sha-256", "md5", "password"])
@pytest.mark.parametrize(("login", "allowed"), [(CLEAR_TEXT, "password"), (HASHED, "md5")])
async def test_a_login_is_made_by_the_method_that_the_server_was_given(
    settings, weak_server, login, allowed, method
):
    endpoint = Endpoint(host=HOST, port=weak_server.port, ssl_mode="disable", authentication=method)
    session = Connector(settings).session(
        endpoint, user=login, password="canary", application_name="test"
    )

    if method == allowed:
        async with session as connection:
            assert await connection.fetchval("select current_user") == login
    else:
        with pytest.raises(InvalidRequest, match="it asked for the password"):
            async with session:
                pass


async def test_a_server_that_speaks_scram_is_spoken_to_by_scram_whatever_is_allowed(
    settings, targets
):
    endpoint = Endpoint(host=HOST, port=targets.port, ssl_mode="disable", authentication="password")
    who = targets.administrator
    async with Connector(settings).session(
        endpoint, user=who.name, password=who.password, application_name="test"
    ) as connection:
        assert await connection.fetchval("select 1") == 1


@pytest.mark.parametrize("authority", [None, "of its own"])
async def test_a_server_with_a_ca_of_its_own_does_not_get_the_weak_login_of_another_at_its_address(
    settings, weak_server, authority
):
    weak = Addresses(weak=frozenset({(HOST, weak_server.port, "disable", "password")}))
    connector = Connector(settings, Fixed(weak))
    endpoint = Endpoint(
        host=HOST, port=weak_server.port, ssl_mode="disable", ca_certificate=authority
    )
    opened = connector.session(
        endpoint, user=CLEAR_TEXT, password="canary", application_name="test"
    )

    if authority is None:
        async with opened as connection:
            assert await connection.fetchval("select current_user") == CLEAR_TEXT
    else:
        with pytest.raises(InvalidRequest, match="in clear text"):
            await opened.__aenter__()


async def test_an_owner_allows_a_weaker_login_and_everybody_sees_it(plane, weak_server):
    await a_group(plane)

    await servers.put(plane, a_call(), SERVER, weakly(weak_server))
    await settle(plane)

    shown = await servers.get(plane, a_call("GET"), SERVER)
    assert shown.provisioning_state == "Succeeded"
    assert "WeakAuthentication" in {each["type"] for each in shown.observed["conditions"]}


async def test_a_contributor_neither_allows_a_weaker_login_nor_moves_it(plane, weak_server):
    await a_group(plane)
    await a_helper(plane)
    with pytest.raises(Forbidden, match="weakenAuthentication"):
        await servers.put(plane, a_call(principal=HELPER), SERVER, weakly(weak_server))
    await servers.put(plane, a_call(), SERVER, weakly(weak_server))
    await settle(plane)

    for change in (
        {"host": "127.0.0.2"},
        {"port": 1025},
        {"sslMode": "require"},
        {"authentication": "md5"},
    ):
        with pytest.raises(Forbidden, match="weakenAuthentication"):
            await servers.put(
                plane, a_call(principal=HELPER), SERVER, weakly(weak_server, **change)
            )
    kept = Body(properties={"maxConnections": 7})
    await servers.patch(plane, a_call("PATCH", principal=HELPER), SERVER, kept)
    await settle(plane)
    scram = Body(properties={"endpoint": {"authentication": "scram-sha-256"}, "maxConnections": 8})
    await servers.patch(plane, a_call("PATCH", principal=HELPER), SERVER, scram)


@pytest.mark.parametrize("handed", [True, False], ids=["handed by the control plane", "not handed"])
async def test_a_job_logs_in_weakly_only_where_the_control_plane_allows_it(
    settings, db, targets, weak_server, tmp_path, handed
):
    weak = [[HOST, weak_server.port, "disable", "password"]] if handed else []
    async with start_fleet(
        settings, db, targets, tmp_path, databases=1, addresses={"weak": weak}
    ) as fleet:
        password = tmp_path / "canary"
        password.write_text("canary")
        await fleet.root.execute(
            "update jobs_internal.server_directory set port = $1", weak_server.port
        )
        await fleet.root.execute(
            "update jobs_internal.credential set username = $1, secret = $2",
            CLEAR_TEXT,
            f"file:{password}",
        )
        await fleet.root.execute(
            "update jobs_internal.target_group_member set database_name = 'postgres'"
        )
        run = await fleet.run("select 1")

        (target,) = await fleet.targets_of(run)
    expected = ("Succeeded", None) if handed else ("Failed", "ConnectFailed")
    assert (target["lifecycle"], target["end_reason"]) == expected
