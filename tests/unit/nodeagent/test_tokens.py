import base64
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import jwt
import pytest

from muster.core.clock import Clock
from muster.core.errors import Forbidden, Unauthenticated, Unavailable
from muster.core.secrets import Keyring
from muster.core.settings import Secret
from nodeagent.protocol import Class
from nodeagent.tokens import ALGORITHM, LABEL, Tokens, body_digest, demand

BODY = b'{"command": "pause"}'
ACCOUNT, COMMAND = uuid4(), uuid4()


class Stopped(Clock):
    at = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self):
        return self.at


def keyring(*names: str) -> Keyring:
    entries = [f"{n}:{base64.b64encode(n.encode() * 32)[:43].decode()}=" for n in names]
    return Keyring(Secret(",".join(entries)))


@pytest.fixture
def clock():
    return Stopped()


@pytest.fixture
def tokens(clock):
    return Tokens(keyring("a"), clock)


def signed(tokens):
    return tokens.sign(ACCOUNT, COMMAND, Class.OPERATE, BODY)


def test_a_token_is_good_for_what_it_was_made_for(tokens):
    claims = tokens.read(signed(tokens))

    demand(claims, account=ACCOUNT, command=COMMAND, kind=Class.OPERATE, body=body_digest(BODY))
    assert (claims["account"], claims["command"]) == (str(ACCOUNT), str(COMMAND))


@pytest.mark.parametrize(
    "other",
    [{"account": uuid4()}, {"command": uuid4()}, {"kind": Class.ADMINISTER}, {"body": "x"}],
    ids=["account", "command", "class", "body"],
)
def test_it_is_useless_for_anything_else(tokens, other):
    with pytest.raises(Forbidden):
        demand(tokens.read(signed(tokens)), **other)


@pytest.mark.parametrize("passed", [61, 3600, -11])
def test_it_lives_for_a_minute(tokens, clock, passed):
    token = signed(tokens)

    clock.at += timedelta(seconds=passed)

    with pytest.raises(Unauthenticated):
        tokens.read(token)


def test_a_longer_life_can_not_be_asked_for(tokens, clock):
    claims = jwt.decode(signed(tokens), options={"verify_signature": False})
    key = keyring("a").derive(LABEL)
    longer = jwt.encode(
        claims | {"exp": claims["iat"] + 3600}, key, ALGORITHM, headers={"kid": "a"}
    )

    with pytest.raises(Unauthenticated):
        tokens.read(longer)


@pytest.mark.parametrize(
    "token", ["", "x", "a.b.c", jwt.encode({"account": "x"}, None, "none", headers={"kid": "a"})]
)
def test_what_we_did_not_sign_is_refused(tokens, token):
    with pytest.raises(Unauthenticated):
        tokens.read(token)


def test_another_installation_s_token_is_refused(tokens, clock):
    for stranger in (keyring("b"), Keyring(Secret("a:" + base64.b64encode(bytes(32)).decode()))):
        with pytest.raises(Unauthenticated):
            tokens.read(signed(Tokens(stranger, clock)))


def test_both_keys_are_accepted_during_a_rotation(clock):
    old, both = Tokens(keyring("a"), clock), Tokens(keyring("b", "a"), clock)

    assert both.read(signed(old))


def test_each_purpose_and_each_key_has_bytes_of_its_own():
    ring = keyring("a", "b")

    derived = {ring.derive("one"), ring.derive("two"), ring.derive("one", "b")}

    assert len(derived) == 3
    assert ring.derive("one") == keyring("a").derive("one")
    with pytest.raises(Unavailable):
        ring.derive("one", "c")
