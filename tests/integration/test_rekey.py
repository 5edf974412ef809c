"""Envelope keys are rotated by adding a new one in front and starting the runner again."""

import asyncio
import base64
from dataclasses import replace

import pytest

from fsm import rekey
from fsm.context import Services
from fsm.lifecycles import LIFECYCLES
from muster.core.errors import Unavailable
from muster.core.secrets import Keyring
from muster.core.settings import Secret
from tests.support.plane import SERVER, a_call, a_server, make_plane
from workflows import resources, servers, tokens
from workflows.model.resource import Body
from muster.core.ids import ResourceId

OLD = "test:" + base64.b64encode(bytes(32)).decode()
NEW = "fresh:" + base64.b64encode(bytes(range(32))).decode()
TOKEN = ResourceId.parse("/providers/Microsoft.Authorization/serviceTokens/ci")


async def test_a_new_key_takes_over_and_the_old_one_can_go(settings, db, targets):
    await a_server(make_plane(settings, db), targets)
    await tokens.put(make_plane(settings, db), a_call(), TOKEN, Body())
    digest = await db.fetchval("select sealed from resource where key = $1", TOKEN.key)
    before = await resources.get(make_plane(settings, db), a_call("GET"), SERVER)

    rotated = make_plane(replace(settings, keys=Secret(f"{NEW},{OLD}")), db)
    services = Services(
        settings=rotated.settings,
        db=db,
        keyring=rotated.keyring,
        connector=rotated.connector,
        lifecycles=LIFECYCLES,
    )
    await rekey.run(services, asyncio.Event())

    only_new = make_plane(replace(settings, keys=Secret(NEW)), db)
    assert (await servers.discover(only_new, a_call("POST"), SERVER, {}))["value"]
    assert (await resources.get(only_new, a_call("GET"), SERVER)).etag == before.etag
    assert await db.fetchval("select sealed from resource where key = $1", TOKEN.key) == digest
    assert await rekey.rewrap(services) == 0


async def test_a_missing_key_is_an_outage_and_never_plain_text(settings, db, targets):
    await a_server(make_plane(settings, db), targets)
    without = make_plane(replace(settings, keys=Secret(NEW)), db)

    with pytest.raises(Unavailable, match="Envelope key 'test' is missing"):
        Keyring(Secret(NEW)).open(
            (
                await db.fetchval(
                    "select sealed ->> 'administratorLoginPassword' from resource where key = $1",
                    SERVER.key,
                )
            ),
            "x",
        )
    services = Services(
        settings=without.settings,
        db=db,
        keyring=without.keyring,
        connector=without.connector,
        lifecycles=LIFECYCLES,
    )
    with pytest.raises(Unavailable):
        await rekey.rewrap(services)
