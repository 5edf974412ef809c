"""A secret that was given for a server goes to that server alone: not to where its endpoint is moved."""

import asyncio
import contextlib

import pytest

from muster.core.errors import InvalidRequest
from tests.support.plane import SERVER, a_call, a_server, make_plane, registered, settle
from workflows import servers
from workflows.model.resource import Body

PASSWORD = "properties.administratorLoginPassword"  # a field


@pytest.fixture
def plane(settings, db):
    return make_plane(settings, db)


@contextlib.asynccontextmanager
async def a_fake_server():
    """Lets anybody in and keeps what it was sent; yields its port and that."""
    sent = bytearray()

    async def serve(reader, writer):
        with contextlib.suppress(ConnectionError):
            sent.extend(await reader.read(1000))
            writer.write(b"R\0\0\0\x08\0\0\0\x03")  # asks for the password in clear text
            sent.extend(await reader.read(1000))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], sent


async def stored(plane):
    rows = await plane.db.fetch("select sealed from resource where type = 'Microsoft.Sql/servers'")
    return set(rows[0]["sealed"])


def moved(targets, **endpoint):
    given = {"host": "127.0.0.1", "port": targets.port, "sslMode": "disable"} | endpoint
    return {"endpoint": given, "administratorLogin": targets.administrator.name}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"host": "127.0.0.2"}, "host"),
        ({"port": 1025}, "port"),
        ({"directHost": "127.0.0.2:1025"}, "directHost"),
        ({"sslMode": "require"}, "sslMode"),
    ],
)
@pytest.mark.parametrize("verb", [servers.put, servers.patch])
async def test_another_endpoint_needs_the_password_again(plane, targets, change, named, verb):
    await a_server(plane, targets)

    with pytest.raises(InvalidRequest) as refused:
        body = Body(location="local", properties=moved(targets, **change))
        await verb(plane, a_call(), SERVER, body)

    assert refused.value.target == PASSWORD
    assert f"The endpoint's {named} changed" in refused.value.message
    assert await stored(plane) == {"administratorLoginPassword"}


async def test_a_new_endpoint_never_gets_the_old_password(plane, targets):
    await a_server(plane, targets)
    async with a_fake_server() as (port, sent):
        there = moved(targets, port=port)["endpoint"]
        with pytest.raises(InvalidRequest):
            await servers.patch(plane, a_call(), SERVER, Body(properties={"endpoint": there}))
        without = Body(properties={"endpoint": there, "administratorLogin": None})
        await servers.patch(plane, a_call(), SERVER, without)
        await settle(plane)
        assert await stored(plane) == set()
        back = Body(properties={"administratorLogin": targets.administrator.name})
        with pytest.raises(InvalidRequest, match="A password is required"):
            await servers.patch(plane, a_call(), SERVER, back)
        await settle(plane)

    assert targets.administrator.password.encode() not in sent


async def test_the_password_given_again_goes_with_the_new_endpoint(plane, targets):
    await a_server(plane, targets)
    hosts = {"hosts": ["127.0.0.1", "127.0.0.2"], "port": targets.port, "sslMode": "disable"}

    await servers.put(plane, a_call(), SERVER, registered(targets, endpoint=hosts))
    await settle(plane)

    shown = await servers.get(plane, a_call("GET"), SERVER)
    assert (shown.provisioning_state, shown.properties["endpoint"]) == ("Succeeded", hosts)


async def test_what_leaves_the_endpoint_as_it_is_leaves_the_password_too(plane, targets):
    await a_server(plane, targets)

    body = Body(location="local", properties=moved(targets, maintenanceDatabase="template1"))
    await servers.put(plane, a_call(), SERVER, body)
    await settle(plane)

    assert await stored(plane) == {"administratorLoginPassword"}
