"""Attack list, group B: what somebody may do. Numbers are those of the list."""

import re
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from muster.core.settings import Settings
from tests.support import principals
from tests.support import arm
from workflows.roles import CONTRIBUTOR, OWNER, PREFIX, READER

VERSION = {"api-version": arm.SQL}


@pytest.fixture
async def api(settings: Settings) -> Any:
    async with principals.start_api(settings) as made:
        yield made


async def ask(
    api: principals.PrincipalsApi, who: str, method: str, path: str, body: Any = None
) -> httpx.Response:
    async with api.actor(who) as client:
        return await client.request(method, path, params=VERSION, json=body)


def without_ids(text: str) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|servers/\w+", "", text)


async def test_16_17_foreign_and_missing_look_the_same(api: principals.PrincipalsApi) -> None:
    there = await ask(api, "other", "GET", arm.SERVER)
    missing = await ask(api, "other", "GET", arm.SERVER.replace("eu1", "nope"))

    assert (there.status_code, arm.error(there)) == (403, "AuthorizationFailed")
    assert missing.status_code == 403
    assert without_ids(there.text) == without_ids(missing.text)


async def test_18_own_and_missing_is_404(api: principals.PrincipalsApi) -> None:
    answer = await ask(api, "reader", "GET", arm.SERVER.replace("eu1", "nope"))

    assert (answer.status_code, arm.error(answer)) == (404, "ResourceNotFound")


CHANGES = [
    ("PUT", arm.SERVER),
    ("PATCH", arm.SERVER),
    ("DELETE", arm.SERVER),
    ("POST", arm.SERVER + "/check"),
    ("POST", arm.SERVER + "/discover"),
    ("PUT", arm.SERVER + "/databases/x"),
    ("DELETE", arm.GROUP),
]


async def test_19_a_reader_changes_nothing(api: principals.PrincipalsApi) -> None:
    for method, path in CHANGES:
        answer = await ask(api, "reader", method, path, {} if method != "DELETE" else None)

        assert (answer.status_code, arm.error(answer)) == (403, "AuthorizationFailed")


async def test_19_a_refusal_does_not_judge_the_body(api: principals.PrincipalsApi) -> None:
    async with api.actor("reader") as client:
        answer = await client.put(
            arm.SERVER, params=VERSION, content=b"{{{", headers={"Content-Type": "text/xml"}
        )

    assert answer.status_code == 403


async def test_20_a_contributor_of_one_group_is_nobody_in_another(
    api: principals.PrincipalsApi,
) -> None:
    own = principals.ELSEWHERE + "/providers/Microsoft.Sql/servers/mine"
    body = {"location": "local", "properties": {"endpoint": {"host": "10.0.0.5"}}}

    assert (await ask(api, "elsewhere", "PUT", own, body)).status_code == 201
    assert (await ask(api, "elsewhere", "PUT", arm.SERVER, body)).status_code == 403


SPELLINGS = [
    arm.SERVER.upper(),
    arm.SERVER + "/",
    arm.SERVER.replace("g1", "%67%31"),
    arm.SERVER.replace("servers", "sErVeRs"),
    principals.ELSEWHERE + "%2F..%2Fg1/providers/Microsoft.Sql/servers/eu1",
    principals.ELSEWHERE + "/../g1/providers/Microsoft.Sql/servers/eu1",
    principals.ELSEWHERE + "/%2e%2e/g1/providers/Microsoft.Sql/servers/eu1",
    arm.SERVER.replace("/g1", "//g1"),
    "/" + arm.SERVER,
    principals.ELSEWHERE + "/..%2fg1/providers/Microsoft.Sql/servers/eu1",
]


async def test_21_no_spelling_changes_the_decision(api: principals.PrincipalsApi) -> None:
    for path in SPELLINGS:
        transport = httpx.ASGITransport(app=api.app)
        for who, canonical in (("elsewhere", 403), ("reader", 200)):
            async with api.actor(who) as client:
                request = client.build_request("GET", "/", params=VERSION)
                request.url = httpx.URL(
                    scheme="http", host=arm.HOST, raw_path=f"{path}?api-version={arm.SQL}".encode()
                )
                answer = await transport.handle_async_request(request)
                await answer.aread()
            if answer.status_code == 400:
                assert arm.error(answer) == "InvalidResourceId"
            else:
                assert answer.status_code == canonical


IMPOSTORS = [
    {"id": principals.ELSEWHERE + "/providers/Microsoft.Sql/servers/x"},
    {"name": "other"},
    {"type": "Microsoft.Sql/managedInstances"},
]


async def test_22_the_body_does_not_say_who_it_is(api: principals.PrincipalsApi) -> None:
    for body in IMPOSTORS:
        answer = await ask(api, "owner", "PUT", arm.SERVER, {"location": "local", **body})

        assert (answer.status_code, arm.error(answer)) == (400, "InvalidRequestContent")


async def test_25_31_operations_of_others_are_closed(api: principals.PrincipalsApi) -> None:
    answer = await ask(api, "owner", "PATCH", arm.SERVER, {"tags": {"a": "1"}})
    urls = [answer.headers["azure-asyncoperation"], answer.headers["location"]]

    for url in urls:
        async with api.actor("other") as client:
            theirs = await client.get(url)
        assert (theirs.status_code, arm.error(theirs)) == (403, "AuthorizationFailed")
        async with api.actor("elsewhere") as client:
            assert (await client.get(url)).status_code == 403
        guessed = re.sub(r"[0-9a-f-]{36}", "00000000-0000-4000-8000-000000000000", url)
        async with api.actor("owner") as client:
            missing = await client.get(guessed)
        assert (missing.status_code, arm.error(missing)) == (404, "OperationIdNotFound")


async def test_26_lists_show_only_what_is_allowed(api: principals.PrincipalsApi) -> None:
    every = f"{arm.SUBSCRIPTION}/providers/Microsoft.Sql/servers"
    body = {"location": "local", "properties": {"endpoint": {"host": "10.0.0.5"}}}
    await ask(
        api,
        "elsewhere",
        "PUT",
        principals.ELSEWHERE + "/providers/Microsoft.Sql/servers/mine",
        body,
    )

    mine = await ask(api, "elsewhere", "GET", every)
    all_of_them = await ask(api, "reader", "GET", every)

    assert [each["name"] for each in mine.json()["value"]] == ["mine"]
    assert {each["name"] for each in all_of_them.json()["value"]} == {"eu1", "mine"}


FORGED = ["AAAA", "' or 1=1", "%00", "x" * 3000, ""]


async def test_26_forged_tokens_of_pages(api: principals.PrincipalsApi) -> None:
    for token in FORGED:
        path = f"{arm.SUBSCRIPTION}/resourceGroups?api-version=2021-04-01&$skipToken={quote(token)}"
        async with api.actor("owner") as client:
            answer = await client.get(path)

        assert (answer.status_code, arm.error(answer)) == (400, "InvalidSkipToken")


async def test_26_a_token_of_a_page_is_for_the_caller_who_got_it(
    api: principals.PrincipalsApi,
) -> None:
    every = f"{arm.SUBSCRIPTION}/resourceGroups"
    async with api.actor("owner") as client:
        link = (await client.get(every, params=VERSION | {"$top": "1"})).json()["nextLink"]
        own = await client.get(link)
    async with api.actor("reader") as client:
        foreign = await client.get(link)

    assert own.status_code == 200
    assert (foreign.status_code, arm.error(foreign)) == (400, "InvalidSkipToken")


async def test_a_token_without_a_scope_of_its_own_is_not_made_by_an_empty_one(
    api: principals.PrincipalsApi,
) -> None:
    path = f"{principals.AUTHORIZATION}/serviceTokens/"
    for scope in ("", " ", "//", "s1", "/subscriptions"):
        answer = await ask(api, "owner", "PUT", path + "x", {"properties": {"scope": scope}})

        assert (answer.status_code, arm.error(answer)) == (400, "InvalidResourceId"), scope
    assert (await ask(api, "owner", "GET", path + "x")).status_code == 404


async def test_the_scope_of_a_token_holds_with_a_trailing_slash_too(
    api: principals.PrincipalsApi,
) -> None:
    path = f"{principals.AUTHORIZATION}/serviceTokens/x"
    made = await arm.put(api.owner, path, {"properties": {"scope": arm.GROUP + "/"}})
    token = made.json()["properties"]
    await principals.grant(api.owner, "", token["principalId"], READER.id)

    async with arm.calling(api.app, token["token"]) as client:
        inside = await client.get(arm.SERVER, params=VERSION)
        outside = await client.get(principals.ELSEWHERE, params=VERSION)

    assert token["scope"] == arm.GROUP
    assert (inside.status_code, outside.status_code) == (200, 403)


async def test_a_role_assignment_has_the_scope_of_its_url(api: principals.PrincipalsApi) -> None:
    path = f"{arm.GROUP}{principals.AUTHORIZATION}/roleAssignments/{principals.uuid_of('x')}"
    body = {"principalId": "p", "roleDefinitionId": PREFIX + READER.id}
    for scope in ("", "/", arm.SUBSCRIPTION, arm.GROUP + "x"):
        answer = await ask(api, "owner", "PUT", path, {"properties": {**body, "scope": scope}})

        assert answer.status_code == 400, scope
        assert answer.json()["error"]["target"] == "properties.scope"
    made = await ask(
        api, "owner", "PUT", path, {"properties": {**body, "scope": arm.GROUP.upper() + "/"}}
    )
    assert made.status_code == 201
    assert made.json()["properties"]["scope"] == arm.GROUP


async def test_27_what_is_read_only_is_never_stored(api: principals.PrincipalsApi) -> None:
    body = {
        "location": "local",
        "systemData": {"createdBy": "mallory", "createdAt": "1999-01-01T00:00:00Z"},
        "etag": "mine",
        "properties": {"provisioningState": "Failed", "state": "Mallory"},
    }
    current = (await ask(api, "owner", "GET", arm.SERVER)).json()
    body["properties"] |= {
        "administratorLogin": "boss",
        "endpoint": current["properties"]["endpoint"],
    }

    answer = await ask(api, "owner", "PUT", arm.SERVER, body)

    assert answer.status_code == 200
    assert "mallory" not in answer.text.lower()
    assert "1999" not in answer.text


async def test_28_a_contributor_grants_nothing(api: principals.PrincipalsApi) -> None:
    for scope in (principals.ELSEWHERE, arm.GROUP, ""):
        path = f"{scope}{principals.AUTHORIZATION}/roleAssignments/{principals.uuid_of(scope)}"
        body = {"properties": {"principalId": "elsewhere", "roleDefinitionId": PREFIX + OWNER.id}}
        answer = await ask(api, "elsewhere", "PUT", path, body)

        assert (answer.status_code, arm.error(answer)) == (403, "AuthorizationFailed")


async def test_29_a_removed_role_is_refused_at_once(api: principals.PrincipalsApi) -> None:
    name = await principals.grant(api.owner, arm.GROUP, "guest", READER.id)
    assert (await ask(api, "guest", "GET", arm.SERVER)).status_code == 200

    path = f"{arm.GROUP}{principals.AUTHORIZATION}/roleAssignments/{name}"
    assert (await api.owner.delete(path, params=VERSION)).status_code == 200

    assert (await ask(api, "guest", "GET", arm.SERVER)).status_code == 403


async def test_30_nothing_internal_is_on_the_public_port(api: principals.PrincipalsApi) -> None:
    for path in (
        "/internal",
        "/agent/commands",
        "/workloads",
        "/debug/pprof",
        "/admin",
        "/refused",
        "/Servers_Get",
        "/schema",
        "/schema/openapi.json",
        "/redoc",
        "/docs/",
        "/docs/../page.js",
    ):
        answer = await ask(api, "owner", "GET", path)
        assert answer.status_code == 404, path


async def test_secrets_never_come_back(api: principals.PrincipalsApi) -> None:
    secret = "a-good-password-1"
    key = "-----BEGIN PRIVATE KEY-----canary-----END PRIVATE KEY-----"
    for path in (
        arm.SERVER,
        f"{arm.SUBSCRIPTION}/providers/Microsoft.Sql/servers",
        arm.SERVER + "/history",
        f"{arm.SUBSCRIPTION}/providers/Microsoft.Insights/eventtypes/management/values",
    ):
        answer = await ask(api, "owner", "GET", path)
        assert answer.status_code == 200
        assert secret not in answer.text
        assert "administratorLoginPassword" not in answer.text
    patched = await ask(
        api, "owner", "PATCH", arm.SERVER, {"properties": {"endpoint": {"clientKey": key}}}
    )
    assert "canary" not in patched.text
    assert "canary" not in (await ask(api, "owner", "GET", arm.SERVER)).text


async def test_numbers_are_for_readers_of_the_tenant(api: principals.PrincipalsApi) -> None:
    for who, status in (("reader", 200), ("elsewhere", 403), ("none", 401)):
        async with api.actor(who) as client:
            assert (await client.get("/metrics")).status_code == status, who


async def test_every_denial_is_in_the_audit(api: principals.PrincipalsApi) -> None:
    await ask(api, "other", "DELETE", arm.SERVER)
    await ask(api, "elsewhere", "PUT", arm.SERVER, {})
    path = f"{arm.SUBSCRIPTION}/providers/Microsoft.Insights/eventtypes/management/values"
    async with api.actor("owner") as client:
        answer = await client.get(path, params=VERSION | {"$filter": "status eq 'Denied'"})

    callers = {each["caller"] for each in answer.json()["value"]}
    assert "elsewhere" in callers


async def test_contributors_may_read_what_they_may_not_change(
    api: principals.PrincipalsApi,
) -> None:
    await principals.grant(api.owner, arm.GROUP, "helper", CONTRIBUTOR.id)

    assert (
        await ask(api, "helper", "GET", f"{arm.GROUP}{principals.AUTHORIZATION}/roleAssignments")
    ).status_code == 200
