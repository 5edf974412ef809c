"""Bearer tokens: which are believed, and what is never asked because of a token."""

from dataclasses import replace
from datetime import timedelta

import pytest

from api.authentication import Authenticator
from api.request_context import RequestContext
from api.jwks import KeySet
from muster.core.clock import Clock
from muster.core.errors import InvalidRequest, Unauthenticated
from muster.core.settings import Secret, Settings
from tests.support.requests import request_context
from tests.support.oidc import ISSUER, JWKS, TENANT, Issuer
from workflows.model.resource import Principal, PrincipalType

SETTINGS = Settings(
    database_url=Secret("postgresql://nowhere"),
    local_token=Secret("the-local-token"),
    oidc_issuer=ISSUER,
    oidc_jwks_url=JWKS,
)


class Hand(Clock):
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.at = 1000.0

    def monotonic(self) -> float:
        return self.at


class Door:
    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.issuer = Issuer()
        self.clock = Hand()
        self.tokens: dict[str, Principal] = {}
        self.asked: list[str] = []
        self.authenticator = Authenticator(
            settings, self.clock, KeySet(settings, self.clock, self.issuer.client()), self.find
        )

    async def find(self, digest: str) -> Principal | None:
        self.asked.append(digest)
        return self.tokens.get(digest)

    async def enter(self, token: str) -> Principal:
        return await self.authenticator.principal(bearer(token))

    async def refused(self, token: str) -> str:
        with pytest.raises(Unauthenticated) as error:
            await self.enter(token)
        assert token not in error.value.message
        return error.value.code


def bearer(token: str) -> RequestContext:
    return request_context(headers={"Authorization": f"Bearer {token}"})


@pytest.fixture
def door() -> Door:
    return Door()


async def test_the_local_token_is_the_owner(door: Door) -> None:
    found = await door.enter("the-local-token")

    assert found.owner
    assert found.tenant_id == SETTINGS.tenant_id
    assert await door.refused("the-local-tokem") == "InvalidAuthenticationToken"


@pytest.mark.parametrize("kid", ["rsa-1", "ec-1"])
async def test_a_jwt_of_the_issuer_names_a_principal(door: Door, kid: str) -> None:
    token = door.issuer.token(
        "alice", kid=kid, groups=["g1", "g2"], preferred_username="a@b.c", jti="t1"
    )

    found = await door.enter(token)

    assert found == Principal(
        id="alice", tenant_id=TENANT, name="a@b.c", groups=("g1", "g2"), token_id="t1"
    )


async def test_an_application_is_told_from_a_user(door: Door) -> None:
    found = await door.enter(door.issuer.token(None, sub="svc", idtyp="app", appid="my-app"))

    assert (found.id, found.type, found.name) == ("svc", PrincipalType.APPLICATION, "my-app")


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer ", "Basic YTpi", "token x"])
async def test_no_bearer_token_is_no_authentication(door: Door, authorization: str | None) -> None:
    given = request_context(
        headers={} if authorization is None else {"Authorization": authorization}
    )

    with pytest.raises(Unauthenticated) as error:
        await door.authenticator.principal(given)

    assert error.value.code == "AuthenticationFailed"


async def test_two_authorization_headers_are_refused(door: Door) -> None:
    pair = (b"authorization", b"Bearer the-local-token")

    with pytest.raises(InvalidRequest) as error:
        await door.authenticator.principal(request_context(pairs=[pair, pair]))

    assert error.value.code == "InvalidRequest"


@pytest.mark.parametrize("token", ["garbage", "a.b.c", "....", "é", "x" * 20_000, "eyJ.eyJ.sig"])
async def test_garbage_is_refused(door: Door, token: str) -> None:
    assert await door.refused(token) == "InvalidAuthenticationToken"


async def test_algorithms_are_ours_to_choose(door: Door) -> None:
    assert await door.refused(door.issuer.forged("none")) == "InvalidAuthenticationToken"
    hs256 = door.issuer.forged("HS256", door.issuer.public_pem())
    assert await door.refused(hs256) == "InvalidAuthenticationToken"
    rs256 = door.issuer.forged("RS256", door.issuer.public_pem())
    assert await door.refused(rs256) == "InvalidAuthenticationToken"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"exp": 1}, "ExpiredAuthenticationToken"),
        ({"nbf": 9_999_999_999}, "InvalidAuthenticationToken"),
        ({"aud": "https://other/"}, "InvalidAuthenticationTokenAudience"),
        ({"iss": "https://evil.test"}, "InvalidAuthenticationTokenTenant"),
        ({"tid": "other"}, "InvalidAuthenticationTokenTenant"),
        ({"tid": None}, "InvalidAuthenticationTokenTenant"),
        ({"exp": None}, "InvalidAuthenticationToken"),
        ({"nbf": None}, "InvalidAuthenticationToken"),
        ({"aud": None}, "InvalidAuthenticationToken"),
        ({"iss": None}, "InvalidAuthenticationToken"),
        ({"oid": None}, "InvalidAuthenticationToken"),
        ({"headers": {"typ": "id+jwt"}}, "InvalidAuthenticationToken"),
    ],
)
async def test_every_claim_counts(door: Door, changes: dict, code: str) -> None:
    assert await door.refused(door.issuer.token(**changes)) == code


async def test_clocks_may_differ_by_a_minute(door: Door) -> None:
    import time

    now = int(time.time())

    assert await door.enter(door.issuer.token(exp=now - 40))
    assert await door.refused(door.issuer.token(exp=now - 61)) == "ExpiredAuthenticationToken"


@pytest.mark.parametrize("kid", ["../../dev/null", "' or 1=1 --", "x" * 5000, ""])
async def test_a_strange_kid_leads_nowhere(door: Door, kid: str) -> None:
    token = door.issuer.token(headers={"kid": kid})

    assert await door.refused(token) == "InvalidAuthenticationToken"
    assert set(door.issuer.fetched) <= {JWKS}


async def test_a_token_never_says_where_keys_are(door: Door) -> None:
    evil = {"jku": "https://evil.test/keys", "x5u": "https://evil.test/cert", "kid": "mine"}

    assert await door.refused(door.issuer.token(headers=evil)) == "InvalidAuthenticationToken"
    assert door.issuer.fetched == [JWKS]


async def test_unknown_kids_cost_one_fetch_in_five_minutes(door: Door) -> None:
    for n in range(1000):
        assert await door.refused(door.issuer.token(headers={"kid": f"k{n}"}, kid="ec-1"))
    assert len(door.issuer.fetched) == 1

    door.clock.at += SETTINGS.oidc_refresh.total_seconds() + 1
    await door.refused(door.issuer.token(headers={"kid": "again"}))

    assert len(door.issuer.fetched) == 2


async def test_old_keys_serve_for_a_day_while_the_issuer_is_away(door: Door) -> None:
    await door.enter(door.issuer.token())
    door.issuer.down = True

    door.clock.at += 23 * 3600
    await door.enter(door.issuer.token("another"))

    door.clock.at += 2 * 3600
    assert await door.refused(door.issuer.token("third")) == "InvalidAuthenticationToken"


async def test_a_withdrawn_key_is_believed_no_longer_than_a_refresh(door: Door) -> None:
    token = door.issuer.token()
    await door.enter(token)
    del door.issuer.keys["rsa-1"]

    door.clock.at += SETTINGS.oidc_refresh.total_seconds() + 1

    assert await door.refused(token) == "InvalidAuthenticationToken"


async def test_keys_are_found_through_discovery() -> None:
    door = Door(replace(SETTINGS, oidc_jwks_url=None))

    await door.enter(door.issuer.token())

    assert door.issuer.fetched == [f"{ISSUER}/.well-known/openid-configuration", JWKS]


async def test_a_service_token_is_looked_up_by_its_digest_at_each_request() -> None:
    import hashlib

    door = Door(replace(SETTINGS, role_cache=timedelta(seconds=5)))
    digest = hashlib.sha256(b"mst_secret").hexdigest()
    door.tokens[digest] = Principal(id="t", tenant_id=TENANT)

    assert (await door.enter("mst_secret")).id == "t"
    assert (await door.enter("mst_secret")).id == "t"
    assert door.asked == [digest, digest]
    door.tokens.clear()
    assert await door.refused("mst_secret") == "InvalidAuthenticationToken"


@pytest.mark.parametrize(
    ("claims", "token_id"), [({"uti": "u1", "jti": "j1"}, "u1"), ({"jti": "j1"}, "j1")]
)
async def test_the_id_of_a_token_is_its_own(door: Door, claims, token_id) -> None:
    assert (await door.enter(door.issuer.token("alice", **claims))).token_id == token_id


async def test_a_token_without_an_id_has_one_that_does_not_open_anything(door: Door) -> None:
    token = door.issuer.token("alice")

    found = await door.enter(token)

    assert found.token_id.startswith("sha256:") and len(found.token_id) == 23
    assert found.token_id != (await door.enter("the-local-token")).token_id
    assert found.token_id not in token


async def test_without_an_issuer_no_jwt_is_believed() -> None:
    settings = replace(SETTINGS, oidc_issuer=None)
    door = Door()
    alone = Authenticator(settings, Clock(), None, door.find)

    with pytest.raises(Unauthenticated):
        await alone.principal(bearer(door.issuer.token()))
