"""Secrets are opened where they belong, as far as the operator allows, and never told."""

import base64
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from engine.credentials import KEPT, Credentials
from engine.directory import Credential
from muster.core.errors import Fault, InvalidRequest
from muster.core.sealing import belongs_to, seal
from muster.core.settings import Secret
from tests.support.fake_clock import FakeClock

ACCOUNT, IDENTITY = UUID(int=1), UUID(int=2)
PAIR = X25519PrivateKey.generate()
PRIVATE = Secret(base64.b64encode(PAIR.private_bytes_raw()).decode())
PUBLIC = base64.b64encode(PAIR.public_key().public_bytes_raw()).decode()


def opener(*allowed: str, clock: FakeClock | None = None) -> Credentials:
    return Credentials(ACCOUNT, PRIVATE, allowed, clock or FakeClock())


def named(secret: str, name: str = "c") -> Credential:
    return Credential(name=name, username="u", secret=secret)


async def refused(credentials: Credentials, credential: Credential) -> str:
    with pytest.raises(Fault) as caught:
        await credentials.open(credential, IDENTITY)
    assert caught.value.code == "CredentialUnreadable"
    return caught.value.message


async def test_a_sealed_secret_opens_for_its_own_credential_alone() -> None:
    sealed = seal(PUBLIC, Secret("geheim"), belongs_to(ACCOUNT, IDENTITY, "C"))

    assert (await opener().open(named(sealed), IDENTITY)).reveal() == "geheim"
    assert "sealed for another" in await refused(opener(), named(sealed, "another"))


async def test_references_are_read_as_far_as_they_are_allowed(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("FLEET_A", "from the environment")
    file = tmp_path / "b"
    file.write_text("from a file\n")
    credentials = opener("env:FLEET_", f"file:{tmp_path}/", "vault:")

    assert (
        await credentials.open(named("env:FLEET_A"), IDENTITY)
    ).reveal() == "from the environment"
    assert (await credentials.open(named(f"file:{file}"), IDENTITY)).reveal() == "from a file"
    for other in ("env:HOME", "file:/etc/passwd", f"file:{tmp_path}/../b"):
        assert "does not allow" in await refused(credentials, named(other))
    assert "not there" in await refused(credentials, named("env:FLEET_GONE"))
    assert "vault" in await refused(credentials, named("vault:kv/fleet#password"))


async def test_a_reference_is_read_again_after_a_while_and_when_it_was_refused(tmp_path) -> None:
    clock, file = FakeClock(), tmp_path / "b"
    file.write_text("old")
    credentials, credential = opener("file:", clock=clock), named(f"file:{file}")

    async def now() -> str:
        return (await credentials.open(credential, IDENTITY)).reveal()

    assert await now() == "old"
    file.write_text("new")
    assert await now() == "old"
    clock.passed += KEPT
    assert await now() == "new"
    file.write_text("newest")
    credentials.forget(credential)
    assert await now() == "newest"


async def test_a_login_that_is_refused_is_tried_once_more_with_what_changed(tmp_path) -> None:
    file, tried = tmp_path / "b", []
    file.write_text("old")
    credentials, credential = opener("file:"), named(f"file:{file}")
    await credentials.open(credential, IDENTITY)

    async def dial(password: Secret) -> str:
        tried.append(password.reveal())
        raise InvalidRequest("No.", code="TargetAuthenticationFailed")

    for _ in range(2):
        with pytest.raises(InvalidRequest):
            await credentials.log_in(credential, IDENTITY, dial)
        file.write_text("new")

    assert tried == ["old", "old", "new"], "what did not change is not tried again"
