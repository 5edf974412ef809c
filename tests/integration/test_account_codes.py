"""Every error code that Azure documents for job agents (rest.md 1.4): its case here, or why it has none."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from muster.core.db import Database
from muster.core.errors import Fault
from muster.core.ids import ResourceId
from tests.support import arm
from tests.support.account_fixture import AccountLifecycles
from tests.support.principals import SETTLE
from tests.support.fake_clusters import FakeClusters
from tests.support.lifecycle_fixture import INSERT, ResourceHandle, unhurried
from workflows import admission
from workflows.accounts import QUOTA

pytestmark = pytest.mark.newest

DOCUMENTED = set(
    """
    SubscriptionDoesNotHaveServer ServerNotInSubscriptionResourceGroup JobAgentNotFound ServerDisabled
    InvalidResourceRequestBody MissingSkuName InvalidDatabaseResourceId MismatchingSubscriptionWithUrl
    MismatchingResourceGroupNameWithUrl MismatchingServerNameWithUrl JobAgentDatabaseEditionUnsupported
    JobAgentDatabaseSecondary JobAgentDatabaseAlreadyLinked DatabaseDoesNotExist
    CannotUseReservedDatabaseName JobAgentExceededQuota JobAgentAlreadyExists InvalidIdentityTenantId
    MissingUserAssignedIdentities MissingIdentityType MultipleIdentitiesOnJobAgent InvalidIdentityType
    SkuMismatchingNameCapacity ElasticJobAgentEditionUnsupported
    ElasticJobAgentObjectiveAssignmentInProgress ElasticJobsNotSupportedOnAutoPauseEnabledDatabase
    SubscriptionNotFound PropertyChangeUnsupported OperationIdNotFound OperationCancelled
    OperationInterrupted ElasticJobAgentOperationUnavailable CannotCancelOperation
    SubscriptionTooManyCreateUpdateRequests SubscriptionTooManyRequests OperationTimedOut TooManyRequests
    """.split()
)
NEVER = {
    "JobAgentDatabaseEditionUnsupported": "a PostgreSQL database has no edition",
    "ElasticJobsNotSupportedOnAutoPauseEnabledDatabase": "nothing pauses a database by itself",
    "ElasticJobAgentObjectiveAssignmentInProgress": "ElasticJobAgentOperationUnavailable says it",
    "OperationCancelled": "no client can cancel an operation; a delete interrupts it",
    "CannotCancelOperation": "no client can cancel an operation",
    "SubscriptionTooManyCreateUpdateRequests": "throttled for all types at once, as by ARM: 429",
    "SubscriptionTooManyRequests": "throttled for all types at once, as by ARM: 429",
    "TooManyRequests": "503 is ServiceUnavailable here; ARM's 429 has this code",
}
ACCOUNT = f"{arm.SERVER}/jobAgents/a"
CONTROL = f"{arm.SERVER}/databases/control"
ELSEWHERE = arm.GROUP.replace("g1", "g2")
LOCATIONS = f"{arm.SUBSCRIPTION}/providers/Microsoft.Sql/locations/local"
VERSION = {"api-version": arm.SQL}
ONE, TWO = {"/identities/one": {}}, {"/identities/one": {}, "/identities/two": {}}
FILL = """
insert into resource (key, id, type, name, subscription_key, tenant_id,
                      created_by, created_by_type, modified_by, modified_by_type)
select s.key || '/jobagents/' || n, s.id || '/jobAgents/' || n, 'Microsoft.Sql/servers/jobAgents', n::text,
       s.subscription_key, s.tenant_id, 'test', 'User', 'test', 'User'
  from resource s, generate_series(1, $1::int) n
 where s.type = 'Microsoft.Sql/servers'
"""


@dataclass
class AccountApi:
    call: httpx.AsyncClient
    db: Database

    async def settle(self) -> None:
        async with self.db.connection() as connection:
            await connection.execute(SETTLE)

    async def put(self, path: str = ACCOUNT, /, **body: Any) -> httpx.Response:
        given = {"location": "local", "properties": {"databaseId": CONTROL}} | body
        return await self.call.put(path, params=VERSION, json=given)

    async def patch(self, path: str = ACCOUNT, /, **body: Any) -> httpx.Response:
        return await self.call.patch(path, params=VERSION, json=body)

    async def get(self, path: str) -> httpx.Response:
        return await self.call.get(path, params=VERSION)

    async def linked_to(self, database: str) -> httpx.Response:
        return await self.put(properties={"databaseId": database})


@pytest.fixture
async def account_api(settings, db):
    async with arm.client(settings) as call:
        await arm.fill(call)
        made = AccountApi(call, db)
        await made.settle()
        await arm.put(call, CONTROL, {})
        await made.settle()
        yield made


Case = Callable[[AccountApi], Awaitable[httpx.Response]]


async def _elsewhere(account_api: AccountApi) -> httpx.Response:
    await arm.put(account_api.call, ELSEWHERE, {"location": "local"})
    return await account_api.get(ACCOUNT.replace(arm.GROUP, ELSEWHERE))


async def _disabled(account_api: AccountApi) -> httpx.Response:
    await account_api.patch(arm.SERVER, properties={"disabled": True})
    await account_api.settle()
    return await account_api.put()


async def _linked(account_api: AccountApi) -> httpx.Response:
    await account_api.put()
    return await account_api.put(ACCOUNT + "2")


async def _moved(account_api: AccountApi) -> httpx.Response:
    await account_api.put()
    await account_api.settle()
    return await account_api.linked_to(CONTROL + "2")


async def _busy(account_api: AccountApi) -> httpx.Response:
    await account_api.put()
    return await account_api.patch(sku={"name": "JA200"})


async def _crowded(account_api: AccountApi) -> httpx.Response:
    await account_api.db.execute(FILL, QUOTA)
    return await account_api.put()


async def _at_the_same_time(account_api: AccountApi) -> httpx.Response:
    """Another request has made it, and commits while ours waits."""
    id = ResourceId.parse(ACCOUNT)
    tenant = await account_api.db.fetchval("select tenant_id from resource where name = 'control'")
    row = (uuid4(), id.text, id.type, id.name, id.parent.key, "s1", None, {}, {})
    async with account_api.db.connection() as connection, asyncio.TaskGroup() as group:
        async with connection.transaction():
            await connection.execute(INSERT.replace("'t'", f"'{tenant}'"), *row)
            ours = group.create_task(account_api.put())
            await _waits_for_a_lock(account_api.db)
    return ours.result()


async def _waits_for_a_lock(db: Database) -> None:
    for _ in range(1000):
        if await db.fetchval("select exists (select from pg_locks where not granted)"):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("nobody waits")


# fmt: off
ANSWERS: dict[str, tuple[int, Case]] = {
    "SubscriptionNotFound":                (404, lambda h: h.put(ACCOUNT.replace("/s1/", "/s9/"))),
    "SubscriptionDoesNotHaveServer":       (404, lambda h: h.get(ACCOUNT.replace("eu1", "nope"))),
    "ServerNotInSubscriptionResourceGroup": (404, _elsewhere),
    "JobAgentNotFound":                    (404, lambda h: h.patch(tags={"a": "b"})),
    "ServerDisabled":                      (409, _disabled),
    "InvalidResourceRequestBody":          (400, lambda h: h.put(properties={})),
    "MissingSkuName":                      (400, lambda h: h.put(sku={"capacity": 100})),
    "SkuMismatchingNameCapacity":          (400, lambda h: h.put(sku={"name": "JA100", "capacity": 5})),
    "ElasticJobAgentEditionUnsupported":   (400, lambda h: h.put(sku={"name": "GOLD"})),
    "InvalidDatabaseResourceId":           (400, lambda h: h.linked_to(arm.SERVER)),
    "MismatchingSubscriptionWithUrl":      (400, lambda h: h.linked_to(CONTROL.replace("/s1/", "/s2/"))),
    "MismatchingResourceGroupNameWithUrl": (400, lambda h: h.linked_to(CONTROL.replace("/g1/", "/g2/"))),
    "MismatchingServerNameWithUrl":        (400, lambda h: h.linked_to(CONTROL.replace("/eu1/", "/eu2/"))),
    "CannotUseReservedDatabaseName":       (400, lambda h: h.linked_to(f"{arm.SERVER}/databases/postgres")),
    "DatabaseDoesNotExist":                (400, lambda h: h.linked_to(f"{arm.SERVER}/databases/nowhere")),
    "JobAgentDatabaseAlreadyLinked":       (400, _linked),
    "JobAgentExceededQuota":               (400, _crowded),
    "JobAgentAlreadyExists":               (400, _at_the_same_time),
    "InvalidIdentityType":                 (400, lambda h: h.put(identity={"type": "SystemAssigned"})),
    "InvalidIdentityTenantId":             (400, lambda h: h.put(identity={"type": "None", "tenantId": "x"})),
    "MissingIdentityType":                 (400, lambda h: h.put(identity={"userAssignedIdentities": ONE})),
    "MissingUserAssignedIdentities":       (400, lambda h: h.put(identity={"type": "UserAssigned"})),
    "MultipleIdentitiesOnJobAgent":        (400, lambda h: h.put(identity={"type": "UserAssigned", "userAssignedIdentities": TWO})),
    "PropertyChangeUnsupported":           (404, _moved),
    "ElasticJobAgentOperationUnavailable": (409, _busy),
    "OperationIdNotFound":                 (404, lambda h: h.get(f"{LOCATIONS}/jobAgentAzureAsyncOperation/{uuid4()}")),
}
# fmt: on


@pytest.mark.parametrize("code", ANSWERS)
async def test_each_case_is_answered_with_its_code(account_api, code):
    status, case = ANSWERS[code]

    answer = await case(account_api)

    assert (answer.status_code, arm.error(answer)) == (status, code), answer.text
    assert "retry-after" not in answer.headers


# What is told by the operation, since it is found later


async def _standby(lifecycles: AccountLifecycles) -> ResourceHandle:
    lifecycles.agent.read_only = True
    handle = await lifecycles.put_account()
    await lifecycles.run()
    return handle


async def _deleted_meanwhile(lifecycles: AccountLifecycles) -> ResourceHandle:
    handle = await lifecycles.put_account()
    await lifecycles.step(handle)
    await lifecycles.delete(handle)
    await lifecycles.run()
    return handle


async def _no_heartbeat(lifecycles: AccountLifecycles) -> ResourceHandle:
    """A launcher starts the engine, which never shows itself in the control database."""
    lifecycles.settings = replace(lifecycles.settings, poll_busy=timedelta(minutes=1))
    lifecycles.launcher._comes_up = lambda _: True
    handle = await lifecycles.put_account()
    await lifecycles.run()
    return handle


OUTCOMES = {
    "JobAgentDatabaseSecondary": ("Failed", _standby),
    "OperationInterrupted": ("Canceled", _deleted_meanwhile),
    "OperationTimedOut": ("Failed", _no_heartbeat),
}


@pytest.mark.parametrize("code", OUTCOMES)
async def test_each_case_ends_its_operation_with_its_code(db, settings, targets, code):
    lifecycles = AccountLifecycles(db, unhurried(settings), targets, FakeClusters(targets))
    status, case = OUTCOMES[code]

    operation = await lifecycles.operation(await case(lifecycles))

    assert (operation.status, operation.error["code"]) == (status, code)


def test_every_documented_code_has_a_case_or_a_reason():
    places = [*ANSWERS, *OUTCOMES, *NEVER]

    assert sorted(places) == sorted(DOCUMENTED)


# The same thing missing, by other ways


@pytest.mark.parametrize(
    "method", ["GET", "PUT", "PATCH", "DELETE", "list", "pause", "acknowledge"]
)
@pytest.mark.parametrize("where", ["nowhere", "in another group"])
async def test_a_server_that_is_not_there_has_the_same_code_for_every_verb(
    account_api, method, where
):
    path = ACCOUNT.replace("eu1", "nope")
    if where != "nowhere":
        await arm.put(account_api.call, ELSEWHERE, {"location": "local"})
        path = ACCOUNT.replace(arm.GROUP, ELSEWHERE)

    answer = await {
        "list": lambda: account_api.get(path.removesuffix("/a")),
        "pause": lambda: account_api.call.post(f"{path}/pause", params=VERSION),
        "acknowledge": lambda: account_api.call.post(f"{path}/acknowledge", params=VERSION),
    }.get(
        method,
        lambda: account_api.call.request(method, path, params=VERSION, json={"location": "l"}),
    )()

    code = {
        "nowhere": "SubscriptionDoesNotHaveServer",
        "in another group": "ServerNotInSubscriptionResourceGroup",
    }[where]
    assert (answer.status_code, arm.error(answer)) == (404, code)


async def test_an_account_that_is_not_there(account_api):
    """A GET says it as ARM does, and a delete has nothing to do."""
    actions = ["pause", "resume", "acknowledge", "doctor"]

    got = await account_api.get(ACCOUNT)
    deleted = await account_api.call.delete(ACCOUNT, params=VERSION)
    posted = [await account_api.call.post(f"{ACCOUNT}/{each}", params=VERSION) for each in actions]

    assert (got.status_code, arm.error(got)) == (404, "ResourceNotFound")
    assert deleted.status_code == 204
    assert {(each.status_code, arm.error(each)) for each in posted} == {(404, "JobAgentNotFound")}


async def test_what_stands_below_an_account_that_is_not_there_says_so(account_api):
    tenant = await account_api.db.fetchval("select tenant_id from resource where name = 'control'")
    job = ResourceId.parse(f"{ACCOUNT}/jobs/nightly")

    with pytest.raises(Fault) as missing:
        async with account_api.db.connection() as connection:
            await admission.parents(connection, job, tenant)

    assert missing.value.code == "JobAgentNotFound"


async def test_databases_keep_the_codes_of_arm(account_api):
    answer = await account_api.get(CONTROL.replace("eu1", "nope"))

    assert (answer.status_code, arm.error(answer)) == (404, "ParentResourceNotFound")
