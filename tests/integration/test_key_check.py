"""A process with envelope keys of another database does not start, and changes nothing there."""

import asyncio
import base64
from dataclasses import replace

import pytest

from muster.core.errors import Unavailable
from muster.core.secrets import Keyring
from muster.core.settings import Secret
from muster.roles import api, fsm, nodeagent
from muster.roles.key_check import check_keys

pytestmark = pytest.mark.newest


def a_key(key_id, byte):
    return f"{key_id}:{base64.b64encode(bytes([byte]) * 32).decode()}"


def a_keyring(*keys):
    return Keyring(Secret(",".join(keys)))


async def known(db):
    rows = await db.fetch("select key_id, check_value from envelope_key order by key_id")
    return {row["key_id"]: row["check_value"] for row in rows}


async def test_keys_are_recorded_once_and_rotated(db):
    old, new = a_key("old", 1), a_key("new", 2)

    for ring in (a_keyring(old), a_keyring(old), a_keyring(new, old), a_keyring(new)):
        await check_keys(db, ring)

    assert set(await known(db)) == {"old", "new"}
    assert bytes([1]) * 32 not in (await known(db)).values()


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ([a_key("other", 2)], "EnvelopeKeyMissing"),
        ([a_key("old", 2)], "EnvelopeKeyMismatch"),
        ([a_key("new", 3), a_key("old", 2)], "EnvelopeKeyMismatch"),
    ],
)
async def test_keys_of_another_database_are_refused(db, keys, code):
    await check_keys(db, a_keyring(a_key("old", 1)))
    before = await known(db)

    with pytest.raises(Unavailable, match="secrets/keys") as refused:
        await check_keys(db, a_keyring(*keys))

    assert refused.value.code == code
    assert await known(db) == before


async def test_without_keys_there_is_nothing_to_compare(db):
    await check_keys(db, a_keyring(a_key("old", 1)))
    before = await known(db)

    await check_keys(db, Keyring(None))

    assert await known(db) == before


@pytest.mark.parametrize("role", [api, fsm, nodeagent])
async def test_a_role_with_a_wrong_key_does_not_start(db, settings, role):
    await check_keys(db, Keyring(settings.keys))
    wrong = replace(settings, keys=Secret(a_key("test", 9)), listen="127.0.0.1:0")

    with pytest.raises(Unavailable, match="'test'"):
        await role.run(wrong, asyncio.Event(), lambda _: pytest.fail("the role must not start"))
