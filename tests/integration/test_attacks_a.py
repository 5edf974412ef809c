"""Attack list, group A: who asks. Numbers are those of the list."""

import json
from dataclasses import replace
from typing import Any

import pytest

from muster.core import telemetry
from muster.core.settings import Settings
from tests.support import principals
from tests.support import arm
from tests.support.oidc import JWKS

VERSION = {"api-version": arm.SQL}


async def get(
    api: principals.PrincipalsApi, headers: Any, path: str = arm.SERVER, **params: str
) -> Any:
    async with arm.calling(api.app, None) as client:
        return await client.get(path, headers=headers, params=VERSION | params)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
async def api(settings: Settings) -> Any:
    async with principals.start_api(settings) as made:
        yield made


async def test_01_02_no_or_another_scheme(api: principals.PrincipalsApi) -> None:
    for headers in ({}, {"Authorization": "Basic bG9jYWw6eA=="}, {"Authorization": "Bearer"}):
        answer = await get(api, headers)

        assert (answer.status_code, arm.error(answer)) == (401, "AuthenticationFailed")
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_03_to_11_bad_tokens(api: principals.PrincipalsApi) -> None:
    issuer = api.issuer
    cases = {
        "garbage": ("InvalidAuthenticationToken", "garbage"),
        "none": ("InvalidAuthenticationToken", issuer.forged("none")),
        "hs256": ("InvalidAuthenticationToken", issuer.forged("HS256", issuer.public_pem())),
        "expired": ("ExpiredAuthenticationToken", issuer.token("owner", exp=1_700_000_000)),
        "future": ("InvalidAuthenticationToken", issuer.token("owner", nbf=9_999_999_999)),
        "audience": ("InvalidAuthenticationTokenAudience", issuer.token("owner", aud="x")),
        "issuer": ("InvalidAuthenticationTokenTenant", issuer.token("owner", iss="https://x")),
        "tenant": ("InvalidAuthenticationTokenTenant", issuer.token("owner", tid="x")),
        "path": ("InvalidAuthenticationToken", issuer.token(headers={"kid": "../../dev/null"})),
        "sql": ("InvalidAuthenticationToken", issuer.token(headers={"kid": "' or 1=1"})),
        "jku": (
            "InvalidAuthenticationToken",
            issuer.token(headers={"kid": "evil", "jku": "https://evil.test/k", "x5u": "https://e"}),
        ),
    }
    for name, (code, token) in cases.items():
        answer = await get(api, bearer(token))

        assert (answer.status_code, arm.error(answer)) == (401, code), name
        assert "www-authenticate" in answer.headers
    assert set(issuer.fetched) <= {JWKS}


async def test_12_unknown_kids_do_not_make_us_fetch(api: principals.PrincipalsApi) -> None:
    for n in range(200):
        answer = await get(api, bearer(api.issuer.token(headers={"kid": f"k{n}"}, kid="ec-1")))
        assert answer.status_code == 401

    assert len(api.issuer.fetched) <= 1


async def test_13_a_token_in_the_query_is_no_token(
    api: principals.PrincipalsApi, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("access_token", "token", "Authorization"):
        answer = await get(api, {}, **{name: arm.TOKEN})
        assert answer.status_code == 401

    out, err = capfd.readouterr()
    assert arm.TOKEN not in out + err


async def test_14_two_authorization_headers(api: principals.PrincipalsApi) -> None:
    answer = await get(
        api, [("Authorization", f"Bearer {arm.TOKEN}"), ("Authorization", "Bearer x")]
    )

    assert (answer.status_code, arm.error(answer)) == (400, "InvalidRequest")


async def test_a_service_token_works_in_its_scope_until_it_is_revoked(
    api: principals.PrincipalsApi,
) -> None:
    path = f"{principals.AUTHORIZATION}/serviceTokens/ci"
    body = {"properties": {"scope": arm.GROUP, "expiresOn": "2099-01-01T00:00:00Z"}}
    made = (await arm.put(api.owner, path, body)).json()["properties"]
    assert made["token"].startswith("mst_")
    again = await api.owner.get(path, params=VERSION)
    assert made["token"] not in again.text
    await principals.grant(api.owner, arm.GROUP, made["principalId"], principals.READER.id)

    assert (await get(api, bearer(made["token"]))).status_code == 200
    assert (await get(api, bearer(made["token"]), principals.ELSEWHERE)).status_code == 403
    assert (await get(api, bearer("mst_wrong"))).status_code == 401


async def test_a_group_and_a_principal_with_the_same_id_have_different_roles(
    api: principals.PrincipalsApi,
) -> None:
    await principals.grant(api.owner, arm.GROUP, "x", principals.READER.id, "Group")
    await principals.grant(api.owner, arm.GROUP, "y", principals.READER.id)
    token = api.issuer.token

    statuses = [
        (await get(api, bearer(each))).status_code
        for each in (token("x"), token("m", groups=["x"]), token("y"), token("n", groups=["y"]))
    ]

    assert statuses == [403, 200, 200, 403]
    # Both may have the same role; and neither assignment becomes the other.
    name = await principals.grant(api.owner, arm.GROUP, "x", principals.READER.id)
    changed = {"principalId": "x", "principalType": "Group"}
    changed["roleDefinitionId"] = principals.PREFIX + principals.READER.id
    answer = await api.owner.put(
        f"{arm.GROUP}{principals.AUTHORIZATION}/roleAssignments/{name}",
        params=VERSION,
        json={"properties": changed},
    )
    assert arm.error(answer) == "RoleAssignmentUpdateNotPermitted"


async def test_a_deleted_service_token_is_refused_at_once_by_every_process(
    api: principals.PrincipalsApi,
) -> None:
    path = f"{principals.AUTHORIZATION}/serviceTokens/ci"
    made = (await arm.put(api.owner, path, {"properties": {}})).json()["properties"]
    await principals.grant(api.owner, "", made["principalId"], principals.READER.id)
    async with arm.plane(api.plane.settings) as other:
        elsewhere = replace(api, app=arm.build(other, http=api.issuer.client()))
        for process in (api, elsewhere):
            assert (await get(process, bearer(made["token"]))).status_code == 200

        assert (await api.owner.delete(path, params=VERSION)).status_code == 200

        for process in (api, elsewhere):
            answer = await get(process, bearer(made["token"]))
            assert (answer.status_code, arm.error(answer)) == (401, "InvalidAuthenticationToken")


async def test_a_401_is_counted_and_logged_with_address_and_reason_and_without_the_token(
    api: principals.PrincipalsApi, capfd: pytest.CaptureFixture[str]
) -> None:
    before = _unauthenticated("ExpiredAuthenticationToken")
    token = api.issuer.token("owner", exp=1_700_000_000)
    capfd.readouterr()

    await get(api, bearer(token))

    assert _unauthenticated("ExpiredAuthenticationToken") == before + 1
    (line,) = [json.loads(each) for each in capfd.readouterr().err.splitlines() if each[:1] == "{"]
    assert (line["event"], line["code"]) == ("authentication failed", "ExpiredAuthenticationToken")
    assert (line["address"], line["why"]) == ("127.0.0.1", "The access token has expired.")
    assert token not in json.dumps(line)


async def test_a_403_is_logged_with_address_and_principal(
    api: principals.PrincipalsApi, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()

    await get(api, bearer(api.issuer.token("elsewhere")))

    (line,) = [json.loads(each) for each in capfd.readouterr().err.splitlines() if each[:1] == "{"]
    assert (line["event"], line["code"]) == ("request denied", "AuthorizationFailed")
    assert (line["address"], line["principal"]) == ("127.0.0.1", "elsewhere")


async def test_77_a_cookie_is_no_credential(api: principals.PrincipalsApi) -> None:
    for name in ("token", "session", "Authorization"):
        async with arm.calling(api.app, None, cookies={name: arm.TOKEN}) as client:
            answer = await client.post(f"{arm.SERVER}/check", params=VERSION)

        assert (answer.status_code, arm.error(answer)) == (401, "AuthenticationFailed")


def _unauthenticated(code: str) -> float:
    labels = {"listener": "api", "code": code}
    return (
        telemetry.REGISTRY.get_sample_value("muster_unauthenticated_requests_total", labels) or 0.0
    )


async def test_the_door_tells_strangers_nothing(api: principals.PrincipalsApi) -> None:
    for path in ("/metrics", "/openapi.json", "/nothing", arm.SERVER + "x", "/../etc/passwd"):
        answer = await get(api, {}, path)
        assert (answer.status_code, arm.error(answer)) == (401, "AuthenticationFailed"), path
    assert (await get(api, {}, "/livez")).json() == {"status": "ok"}
    assert (await get(api, {}, "/readyz")).json() == {"status": "ok"}
    assert "Microsoft" not in (await get(api, {}, "/docs")).text
