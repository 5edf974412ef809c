import base64
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from muster.core.errors import InvalidRequest
from muster.core.sealing import belongs_to, belongs_to_server, open_sealed, seal
from muster.core.settings import Secret

PAIR = X25519PrivateKey.generate()
PUBLIC = base64.b64encode(PAIR.public_key().public_bytes_raw()).decode()
PRIVATE = Secret(base64.b64encode(PAIR.private_bytes_raw()).decode())
UID, IDENTITY = UUID(int=1), UUID(int=2)
HERE = belongs_to(UID, IDENTITY, "fleet")


@given(st.text(st.characters(codec="utf-8")))
def test_the_private_key_opens_what_the_public_one_sealed(plain):
    sealed = seal(PUBLIC, Secret(plain), HERE)

    assert open_sealed(PRIVATE, sealed, HERE).reveal() == plain
    assert sealed.startswith("sealed:")
    assert len(plain) < 4 or plain not in sealed.removeprefix("sealed:")


def test_no_two_seals_are_alike():
    assert seal(PUBLIC, Secret("x"), HERE) != seal(PUBLIC, Secret("x"), HERE)


@pytest.mark.parametrize(
    "elsewhere",
    [
        belongs_to(UUID(int=3), IDENTITY, "fleet"),
        belongs_to(UID, UUID(int=3), "fleet"),
        belongs_to(UID, IDENTITY, "other"),
    ],
)
def test_it_opens_only_where_it_belongs(elsewhere):
    sealed = seal(PUBLIC, Secret("x"), HERE)

    with pytest.raises(InvalidRequest):
        open_sealed(PRIVATE, sealed, elsewhere)


@given(name=st.text())
def test_no_credential_is_named_so_that_it_is_taken_for_a_server(name):
    assert belongs_to(UID, IDENTITY, name) != belongs_to_server(UID, IDENTITY, name)
    assert not belongs_to(UID, IDENTITY, name).startswith("client-key/")


def test_the_key_for_a_server_opens_for_that_one_alone():
    sealed = seal(PUBLIC, Secret("x"), belongs_to_server(UID, IDENTITY, "/Servers/A"))

    assert open_sealed(PRIVATE, sealed, belongs_to_server(UID, IDENTITY, "/servers/a")) == Secret(
        "x"
    )
    for other in (
        belongs_to_server(UID, IDENTITY, "/servers/b"),
        belongs_to_server(UID, UID, "/servers/a"),
        belongs_to_server(IDENTITY, IDENTITY, "/servers/a"),
        belongs_to(UID, IDENTITY, "/servers/a"),
    ):
        with pytest.raises(InvalidRequest):
            open_sealed(PRIVATE, sealed, other)


def test_names_ignore_case():
    sealed = seal(PUBLIC, Secret("x"), HERE)

    assert open_sealed(PRIVATE, sealed, belongs_to(UID, IDENTITY, "Fleet")).reveal() == "x"


def test_another_key_does_not_open_it():
    other = Secret(base64.b64encode(X25519PrivateKey.generate().private_bytes_raw()).decode())

    with pytest.raises(InvalidRequest):
        open_sealed(other, seal(PUBLIC, Secret("x"), HERE), HERE)


@pytest.mark.parametrize("broken", ["sealed:", "sealed:AAAA", "sealed:!", "sealed:" + "A" * 80])
def test_what_is_no_seal_is_refused_without_repeating_it(broken):
    with pytest.raises(InvalidRequest) as refused:
        open_sealed(PRIVATE, broken, HERE)

    assert broken not in str(refused.value)
