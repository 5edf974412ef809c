"""Secrets are opened where they belong, as far as the operator allows, and never told."""

import asyncio
import base64
from pathlib import Path
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from engine.access.credentials import CACHE_TIME, Credentials
from engine.model.credential import Credential, CredentialServer
from engine.model.server import Server
from muster.core.errors import Fault, InvalidRequest, Unavailable
from muster.core.sealing import belongs_to, belongs_to_server, seal
from muster.core.settings import Secret
from tests.support.fake_clock import FakeClock

ACCOUNT, IDENTITY = UUID(int=1), UUID(int=2)
SERVER = Server(
    server_id="/s", name="s", hosts=("h",), port=5432, ssl_mode="disable", endpoint_id="1"
)
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


def a_server(**more: str | None) -> Server:
    given = {"ssl_mode": "verify-full", "client_certificate": "PEM"} | more
    return Server(server_id="/s/A", name="eu1", hosts=("h",), port=5432, **given)


def test_a_server_without_a_certificate_is_dialed_as_it_is() -> None:
    server = a_server(client_certificate=None)

    assert opener().certify(server.endpoint, server, IDENTITY) == server.endpoint


def test_the_key_of_a_certificate_is_opened_for_the_one_connect() -> None:
    sealed = seal(PUBLIC, Secret("the key"), belongs_to_server(ACCOUNT, IDENTITY, "/s/a"))
    server = a_server(client_key=sealed)

    shown = opener().certify(server.endpoint.direct(), server, IDENTITY)

    assert (shown.client_certificate, shown.client_key) == ("PEM", "the key")
    assert server.endpoint.client_key is None


def test_where_there_is_no_tls_no_key_is_opened() -> None:
    server = a_server(client_key="sealed:broken", ssl_mode="disable")

    assert opener().certify(server.endpoint, server, IDENTITY).client_key is None


@pytest.mark.parametrize(
    "context",
    [belongs_to(ACCOUNT, IDENTITY, "/s/a"), belongs_to_server(ACCOUNT, UUID(int=9), "/s/a")],
)
def test_a_key_that_belongs_elsewhere_names_the_server_and_what_to_do(context) -> None:
    server = a_server(client_key=seal(PUBLIC, Secret("the key"), context))

    with pytest.raises(InvalidRequest) as caught:
        opener().certify(server.endpoint, server, IDENTITY)

    assert caught.value.code == "ClientKeyUnreadable"
    assert "'eu1'" in caught.value.message and "endpoint.clientKey" in caught.value.message
    assert "sealed:" not in str(caught.value) and "the key" not in str(caught.value)


async def test_references_are_read_as_far_as_they_are_allowed(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("FLEET_A", "from the environment")
    file = tmp_path / "b"
    file.write_text("from a file\n")
    credentials = opener("env:FLEET_", f"file:{tmp_path}/")

    assert (
        await credentials.open(named("env:FLEET_A"), IDENTITY)
    ).reveal() == "from the environment"
    assert (await credentials.open(named(f"file:{file}"), IDENTITY)).reveal() == "from a file"


async def test_what_can_not_be_opened_says_which_reference_and_why(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("FLEET_GONE", raising=False)
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff")
    credentials = opener("env:FLEET_", f"file:{tmp_path}/")

    for reference, why in (
        ("env:FLEET_GONE", "which the launcher's environment does not have"),
        (f"file:{tmp_path}/gone", "which can't be read: No such file or directory"),
        (f"file:{tmp_path}/folder", "which can't be read: Is a directory"),
        (f"file:{tmp_path}/empty", "which is empty"),
        (f"file:{tmp_path}/bytes", "which is no text in UTF-8"),
    ):
        told = await refused(credentials, named(reference))
        assert told == f"The secret of the credential 'c' is {reference}, {why}."


async def test_what_is_not_allowed_names_the_setting_and_what_is_no_reference_is_not_repeated(
    tmp_path,
) -> None:
    credentials = opener("env:FLEET_", f"file:{tmp_path}/")

    for reference in ("env:HOME", "file:/etc/passwd"):
        told = await refused(credentials, named(reference))
        assert reference in told and "(MUSTER_CREDENTIAL_REFERENCES: env:FLEET_, file:/" in told
    for text in (f"file:{tmp_path}/../b", "env:1X", "vault:kv/", "geheim"):
        assert text not in await refused(credentials, named(text))


async def test_a_file_that_may_not_be_read_says_so(monkeypatch, tmp_path) -> None:
    def refuses(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuses)

    told = await refused(opener("file:"), named("file:/run/secrets/fleet"))

    assert "file:/run/secrets/fleet, which can't be read: Permission denied." in told


async def test_a_reference_is_read_again_after_a_while_and_when_it_was_refused(tmp_path) -> None:
    clock, file = FakeClock(), tmp_path / "b"
    file.write_text("old")
    credentials, credential = opener("file:", clock=clock), named(f"file:{file}")

    async def now() -> str:
        return (await credentials.open(credential, IDENTITY)).reveal()

    assert await now() == "old"
    file.write_text("new")
    assert await now() == "old"
    clock.passed += CACHE_TIME
    assert await now() == "new"
    file.write_text("newest")
    assert await credentials.log_in(credential, SERVER, IDENTITY, only("newest")) == "newest"
    assert await now() == "newest"


def only(right: str):
    """A door that opens to one password."""

    async def dial(password: Secret) -> str:
        if password.reveal() != right:
            raise InvalidRequest("No.", code="TargetAuthenticationFailed")
        return right

    return dial


async def test_many_who_wait_for_a_reference_hear_of_one_failure_together(monkeypatch) -> None:
    credentials, reads = opener("env:"), []

    async def away(self, credential):
        reads.append(credential.name)
        await asyncio.sleep(0)
        raise Unavailable("Not now.", code="CredentialUnreadable")

    monkeypatch.setattr(Credentials, "_read_reference", away)
    opening = [credentials.open(named("env:X"), IDENTITY) for _ in range(50)]

    heard = await asyncio.gather(*opening, return_exceptions=True)

    assert {type(each) for each in heard} == {Unavailable}
    assert len(reads) == 1
    with pytest.raises(Unavailable):  # and who comes later asks anew
        await credentials.open(named("env:X"), IDENTITY)
    assert len(reads) == 2


async def test_what_was_read_since_a_refusal_is_kept(tmp_path) -> None:
    file, refused_twice = tmp_path / "b", asyncio.Event()
    file.write_text("old")
    credentials, credential = opener("file:"), named(f"file:{file}")

    async def late(password: Secret) -> str:
        """Refused only after somebody else has read the new one."""
        if password.reveal() == "old":
            file.write_text("new")
            await credentials.log_in(credential, SERVER, IDENTITY, only("new"))
            file.write_text("newest")
            refused_twice.set()
        return await only("new")(password)

    assert await credentials.log_in(credential, SERVER, IDENTITY, late) == "new"
    assert refused_twice.is_set()


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
            await credentials.log_in(credential, SERVER, IDENTITY, dial)
        file.write_text("new")

    assert tried == ["old", "old", "new"], "what did not change is not tried again"


async def test_a_secret_is_not_even_read_for_a_server_that_the_credential_does_not_list() -> None:
    """One that can't be read would be told otherwise."""
    elsewhere, moved, here = (
        Credential(
            name="c",
            username="u",
            secret="env:NOT_ALLOWED",
            servers=(CredentialServer(server_id=id, endpoint=endpoint),),
        )
        for id, endpoint in (("/other", "1"), ("/s", "2"), ("/s", "1"))
    )

    async def code(credential: Credential) -> str:
        with pytest.raises(InvalidRequest) as told:
            await opener().log_in(credential, SERVER, IDENTITY, only("never"))
        return told.value.code

    assert await code(elsewhere) == "CredentialNotForServer"
    assert await code(moved) == "CredentialNotForServer"
    assert await code(here) == "CredentialUnreadable"
