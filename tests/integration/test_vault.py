"""Secrets in a vault, with a server that answers as Vault's documentation says."""

import asyncio
from uuid import UUID

import pytest

from engine.access import vault as reading
from engine.access.credentials import CACHE_TIME, Credentials
from engine.model.credential import Credential
from engine.access.vault import Vault
from muster.core.errors import Fault, InvalidRequest, NotFound, Unavailable
from muster.core.settings import Secret
from tests.support.fake_clock import FakeClock
from tests.support.vault import TOKEN, a_vault

pytestmark = pytest.mark.newest

FLEET = Credential(name="c", username="u", secret="vault:kv/fleet/eu#password")


def opener(
    address: str,
    *,
    clock: FakeClock | None = None,
    token: str = TOKEN,
    namespace: str | None = None,
) -> Credentials:
    there = Vault(address, Secret(token), namespace)
    return Credentials(UUID(int=1), Secret(""), ("vault:kv/",), clock or FakeClock(), there)


async def opened(credentials: Credentials, credential: Credential = FLEET) -> str:
    return (await credentials.open(credential, UUID(int=2))).reveal()


async def refused(credentials: Credentials, credential: Credential = FLEET) -> Fault:
    with pytest.raises(Fault) as caught:
        await opened(credentials, credential)
    fault = caught.value
    assert fault.code == "CredentialUnreadable"
    assert fault.message.startswith(f"The secret of the credential 'c' is {credential.secret}, ")
    assert TOKEN not in f"{fault.message}{fault.context}{fault!r}"
    return fault


async def test_a_secret_is_read_from_its_mount_path_and_key() -> None:
    async with a_vault(kv__fleet__eu={"password": "geheim", "user": "u"}) as there:
        found = await opened(opener(there.address + "/", namespace="team"))

    assert found == "geheim"
    assert (there.asked, there.namespaces) == (["/v1/kv/data/fleet/eu"], ["team"])


async def test_it_is_read_once_for_all_who_log_in_and_again_after_a_while() -> None:
    clock = FakeClock()
    async with a_vault(kv__fleet__eu={"password": "old"}) as there:
        credentials = opener(there.address, clock=clock)
        together = await asyncio.gather(*(opened(credentials) for _ in range(20)))
        there.secrets["kv/fleet/eu"] = {"password": "new"}
        before = await opened(credentials)
        clock.passed += CACHE_TIME
        after = await opened(credentials)

    assert (set(together), before, after) == ({"old"}, "old", "new")
    assert len(there.asked) == 2 and there.namespaces == [None, None]


@pytest.mark.parametrize(
    ("secrets", "kind", "why"),
    [
        ({}, NotFound, "which is not there, or its mount is no key-value store of version 2"),
        ({"kv__fleet__eu": None}, NotFound, "which is not there"),
        ({"kv__fleet__eu": {"user": "u"}}, NotFound, "which has no key 'password'"),
        ({"kv__fleet__eu": {"password": ""}}, NotFound, "which is empty"),
        ({"kv__fleet__eu": {"password": ["geheim"]}}, InvalidRequest, "which is no text"),
        ({"kv__fleet__eu": "geheim"}, InvalidRequest, "which is no text"),
    ],
)
async def test_what_is_not_there_says_what_is_missing(secrets, kind, why) -> None:
    async with a_vault(**secrets) as there:
        fault = await refused(opener(there.address))

    assert type(fault) is kind and why in fault.message
    assert "geheim" not in fault.message


async def test_a_token_that_may_not_read_is_told_and_not_shown() -> None:
    async with a_vault(kv__fleet__eu={"password": "geheim"}) as there:
        fault = await refused(opener(there.address, token="hvs.other"))

    assert type(fault) is InvalidRequest
    assert "token may not read" in fault.message and "hvs" not in fault.message


@pytest.mark.parametrize(
    ("status", "kind"),
    [(503, Unavailable), (500, Unavailable), (429, Unavailable), (307, Unavailable),
     (400, InvalidRequest), (405, InvalidRequest)],
)  # fmt: skip
async def test_a_vault_that_can_not_answer_now_may_later(status, kind) -> None:
    async with a_vault() as there:
        there.status = status
        fault = await refused(opener(there.address))

    assert type(fault) is kind and f"the vault answers {status}" in fault.message
    assert len(there.asked) == 1, "a redirection is not followed with the token"


async def test_a_vault_that_is_away_or_silent_passes(monkeypatch) -> None:
    monkeypatch.setattr(reading, "REPLY_TIMEOUT", 0.2)
    async with a_vault() as there:
        there.silent = True
        silent = await refused(opener(there.address))
    away = await refused(opener("http://127.0.0.1:1"))

    for fault in (silent, away):
        assert type(fault) is Unavailable and "the vault can't be reached" in fault.message


async def test_a_path_stays_what_it_is() -> None:
    odd = Credential(name="c", username="u", secret="vault:kv/a%2e%2e/b?c=d#password")
    async with a_vault() as there:
        await refused(opener(there.address), odd)

    assert there.asked == ["/v1/kv/data/a%252e%252e/b%3Fc%3Dd"]


async def test_without_a_vault_the_setting_is_named() -> None:
    credentials = Credentials(UUID(int=1), Secret(""), ("vault:",), FakeClock())

    assert "MUSTER_VAULT_ADDRESS" in (await refused(credentials)).message
