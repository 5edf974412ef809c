"""The use cases on a real database, with a real runner and a real registered server."""

import asyncpg
import pytest

from engine.pool.dialer import APPLICATION
from fsm import operations
from muster.core.errors import Conflict, Fault, InvalidRequest, NotFound, PreconditionFailed
from muster.core.ids import ResourceId
from tests.support.plane import (
    GROUP,
    SERVER,
    SUBSCRIPTION,
    a_call,
    a_group,
    a_server,
    database_id,
    make_plane,
    registered,
    settle,
)
from workflows import (
    audit,
    databases,
    groups,
    history,
    locks,
    pools,
    providers,
    resources,
    servers,
    subscriptions,
)
from workflows.model.resource import Body
from workflows.targets import Q as T

pytestmark = pytest.mark.targets


@pytest.fixture
def plane(settings, db):
    return make_plane(settings, db)


async def code_of(awaitable) -> str:
    with pytest.raises(Fault) as caught:
        await awaitable
    return caught.value.code


async def test_a_server_and_its_database_live_and_end(plane, targets):
    await a_server(plane, targets)

    made = await databases.put(plane, a_call(), database_id("tenant_one"), Body())
    assert made.created
    assert made.resource.provisioning_state == "Creating"
    assert made.resource.observed["status"] == "Creating"
    await settle(plane)
    shown = await databases.get(plane, a_call("GET"), database_id("TENANT_ONE"))
    assert (shown.name, shown.provisioning_state, shown.observed["status"]) == (
        "tenant_one",
        "Succeeded",
        "Online",
    )
    operation = await operations.get(plane.db, made.operation.operation_id)
    assert operation.status == "Succeeded"

    gone = await databases.delete(plane, a_call("DELETE"), database_id("tenant_one"))
    await settle(plane)
    assert (await operations.get(plane.db, gone.operation.operation_id)).status == "Succeeded"
    assert (
        await code_of(databases.get(plane, a_call("GET"), database_id("tenant_one")))
        == "ResourceNotFound"
    )


async def test_an_unregistered_database_stays_on_a_registered_server_unless_the_policy_says_drop(
    plane, targets
):
    await a_server(plane, targets)
    for name, policy in (("kept", None), ("dropped", "Drop")):
        body = Body(properties={"deletionPolicy": policy} if policy else {})
        await databases.put(plane, a_call(), database_id(name), body)
    await settle(plane)

    for name in ("kept", "dropped"):
        await databases.delete(plane, a_call("DELETE"), database_id(name))
    await settle(plane)

    found = await servers.discover(plane, a_call("POST"), SERVER, {})
    names = {row["name"] for row in found["value"]}
    assert "kept" in names
    assert "dropped" not in names
    async with plane_admin(plane, targets) as admin:
        await admin.execute('drop database "kept"')


async def test_a_drop_is_refused_while_somebody_works_there_or_rows_are_inside(plane, targets):
    await a_server(plane, targets, deletionPolicy="Drop")
    await databases.put(plane, a_call(), database_id("full"), Body())
    await settle(plane)
    role = targets.administrator
    tenant = await asyncpg.connect(targets.url("full", role))
    await tenant.execute("create table t (x int); insert into t values (1)")

    assert (
        await code_of(databases.delete(plane, a_call("DELETE"), database_id("full")))
        == "DatabaseInUse"
    )
    await tenant.close()
    assert (
        await code_of(databases.delete(plane, a_call("DELETE"), database_id("full")))
        == "DatabaseNotEmpty"
    )

    forced = a_call("DELETE", query={"forceDeletionTypes": "Microsoft.Sql/servers/databases"})
    await databases.delete(plane, forced, database_id("full"))
    await settle(plane)
    found = await servers.discover(plane, a_call("POST"), SERVER, {})
    assert "full" not in {row["name"] for row in found["value"]}


async def test_an_idle_session_of_a_job_account_is_no_reason_to_refuse_a_drop(plane, targets):
    await a_server(plane, targets, deletionPolicy="Drop")
    await databases.put(plane, a_call(), database_id("done"), Body())
    await settle(plane)
    name = {"application_name": APPLICATION}
    pooled = await asyncpg.connect(targets.url("done", targets.administrator), server_settings=name)
    await pooled.execute("begin")
    assert (
        await code_of(databases.delete(plane, a_call("DELETE"), database_id("done")))
        == "DatabaseInUse"
    )

    await pooled.execute("rollback")
    await databases.delete(plane, a_call("DELETE"), database_id("done"))
    await pooled.close()
    await settle(plane)
    found = await servers.discover(plane, a_call("POST"), SERVER, {})
    assert "done" not in {row["name"] for row in found["value"]}


async def test_hostile_names_go_round_unharmed(plane, targets):
    await a_server(plane, targets, deletionPolicy="Drop")
    names = ['a"; drop table x;--', "$$ %I", "Ünï 🐘", "sp ace"]

    for name in names:
        await databases.put(plane, a_call(), database_id(name), Body())
    await settle(plane)

    page = await databases.list_page(plane, a_call("GET"), SERVER, None, 100)
    assert sorted(item.name for item in page.items) == sorted(names)
    assert {item.provisioning_state for item in page.items} == {"Succeeded"}
    for name in names:
        await databases.delete(plane, a_call("DELETE"), database_id(name))
    await settle(plane)
    found = await servers.discover(plane, a_call("POST"), SERVER, {})
    assert not set(names) & {row["name"] for row in found["value"]}


async def test_a_group_is_deleted_with_all_it_holds_and_drops_nothing_on_registered_servers(
    plane, targets
):
    await a_server(plane, targets, deletionPolicy="Drop")
    await databases.put(plane, a_call(), database_id("survivor"), Body())
    await pools.put(plane, a_call(), SERVER.child(("elasticPools", "p")), Body())
    await settle(plane)

    gone = await groups.delete(plane, a_call("DELETE"), GROUP)
    await settle(plane)

    assert (await operations.get(plane.db, gone.operation.operation_id)).status == "Succeeded"
    assert await code_of(groups.get(plane, a_call("GET"), GROUP)) == "ResourceGroupNotFound"
    assert await plane.db.fetchval("select count(*) from resource") == 1
    async with plane_admin(plane, targets) as admin:
        assert (
            await admin.fetchval("select count(*) from pg_database where datname = 'survivor'") == 1
        )
        await admin.execute("drop database survivor")


async def test_a_lock_inside_stops_a_cascade_before_its_first_effect(plane, targets):
    await a_server(plane, targets)
    lock = SERVER.child(("providers", "Microsoft.Authorization"), ("locks", "keep"))
    await locks.put(plane, a_call(), lock, Body(properties={"level": "CanNotDelete"}))

    with pytest.raises(Conflict) as refused:
        await groups.delete(plane, a_call("DELETE"), GROUP)
    assert refused.value.code == "ScopeLocked"
    assert [detail.target for detail in refused.value.details] == [SERVER.text]
    assert (await groups.get(plane, a_call("GET"), GROUP)).provisioning_state == "Succeeded"
    assert await code_of(servers.delete(plane, a_call("DELETE"), SERVER)) == "ScopeLocked"

    await locks.delete(plane, a_call("DELETE"), lock)
    await groups.delete(plane, a_call("DELETE"), GROUP)
    await settle(plane)


async def test_a_read_only_lock_stops_writes_below_it(plane):
    await a_group(plane)
    lock = SUBSCRIPTION.child(("providers", "Microsoft.Authorization"), ("locks", "freeze"))
    await locks.put(plane, a_call(), lock, Body(properties={"level": "ReadOnly"}))

    assert (
        await code_of(groups.patch(plane, a_call("PATCH"), GROUP, Body(tags={"a": "b"})))
        == "ScopeLocked"
    )


async def test_a_failed_update_keeps_the_old_settings(plane, targets):
    await a_server(plane, targets)

    wrong = registered(targets, administratorLoginPassword="wrong-password")
    written = await servers.put(plane, a_call(), SERVER, wrong)
    await settle(plane)

    operation = await operations.get(plane.db, written.operation.operation_id)
    assert (operation.status, operation.error["code"]) == ("Failed", "TargetAuthenticationFailed")
    shown = await servers.get(plane, a_call("GET"), SERVER)
    assert (shown.provisioning_state, shown.observed["state"]) == ("Succeeded", "Ready")
    assert (await servers.discover(plane, a_call("POST"), SERVER, {}))["value"]


async def test_a_server_that_can_not_be_entered_fails_and_starts_over_with_the_right_password(
    plane, targets
):
    await a_group(plane)
    wrong = registered(targets, administratorLoginPassword="wrong-password")
    await servers.put(plane, a_call(), SERVER, wrong)
    await settle(plane)
    failed = await servers.get(plane, a_call("GET"), SERVER)
    assert (failed.provisioning_state, failed.observed["lastError"]["code"]) == (
        "Failed",
        "TargetAuthenticationFailed",
    )
    assert (
        await code_of(databases.put(plane, a_call(), database_id("d"), Body()))
        == "ParentResourceNotReady"
    )

    await servers.put(plane, a_call(), SERVER, registered(targets))
    await settle(plane)

    assert (await servers.get(plane, a_call("GET"), SERVER)).provisioning_state == "Succeeded"


async def test_writes_wait_for_the_running_operation_but_delete_interrupts_it(plane, targets):
    await a_group(plane)
    first = await servers.put(plane, a_call(), SERVER, registered(targets))

    assert (
        await code_of(servers.put(plane, a_call(), SERVER, registered(targets, maxConnections=5)))
        == "AnotherOperationInProgress"
    )
    gone = await servers.delete(plane, a_call("DELETE"), SERVER)
    again = await servers.delete(plane, a_call("DELETE"), SERVER)
    assert again.operation.operation_id == gone.operation.operation_id
    assert await code_of(servers.put(plane, a_call(), SERVER, registered(targets))) == "Conflict"
    await settle(plane)

    interrupted = await operations.get(plane.db, first.operation.operation_id)
    assert (interrupted.status, interrupted.error["code"]) == ("Canceled", "OperationInterrupted")
    assert (await operations.get(plane.db, gone.operation.operation_id)).status == "Succeeded"
    assert not (await servers.delete(plane, a_call("DELETE"), SERVER)).existed


async def test_the_same_put_changes_nothing_and_a_secret_stays_until_a_new_one_comes(
    plane, targets
):
    await a_server(plane, targets)
    before = await servers.get(plane, a_call("GET"), SERVER)
    same = registered(targets)
    without = registered(targets)
    del without.properties["administratorLoginPassword"]

    for body in (same, without):
        written = await servers.put(plane, a_call(), SERVER, body)
        assert written.operation is None
        assert written.resource.etag == before.etag


async def test_a_patch_merges_and_tags_replace(plane):
    await a_group(plane)
    await groups.patch(plane, a_call("PATCH"), GROUP, Body(tags={"a": "1", "b": "2"}))

    written = await groups.patch(plane, a_call("PATCH"), GROUP, Body(tags={"c": "3"}))

    assert written.resource.tags == {"c": "3"}
    missing = SUBSCRIPTION.child(("resourceGroups", "nowhere"))
    assert (
        await code_of(groups.patch(plane, a_call("PATCH"), missing, Body()))
        == "ResourceGroupNotFound"
    )


async def test_etags_guard_writes(plane):
    await a_group(plane)
    etag = (await groups.get(plane, a_call("GET"), GROUP)).etag
    body = Body(location="local", tags={"x": "y"})

    with pytest.raises(PreconditionFailed):
        await groups.put(plane, a_call(if_none_match="*"), GROUP, body)
    with pytest.raises(PreconditionFailed):
        await groups.put(
            plane, a_call(if_match="*"), SUBSCRIPTION.child(("resourceGroups", "new")), body
        )
    changed = await groups.put(plane, a_call(if_match=etag), GROUP, body)
    assert changed.resource.etag != etag
    with pytest.raises(PreconditionFailed):
        await groups.put(plane, a_call(if_match=etag), GROUP, Body(location="local"))


async def test_a_repeated_key_gets_the_first_answer_and_another_body_is_refused(plane, targets):
    await a_group(plane)
    body = registered(targets)
    call = a_call(idempotency_key="k1", body="one")

    first = await servers.put(plane, call, SERVER, body)
    second = await servers.put(plane, call, SERVER, body)

    assert second == first
    other = a_call(idempotency_key="k1", body="two")
    assert await code_of(servers.put(plane, other, SERVER, body)) == "IdempotencyKeyMismatch"
    assert await plane.db.fetchval("select count(*) from operation") == 1


async def test_what_is_missing_above_is_named(plane, targets):
    nowhere = ResourceId.parse(SERVER.text.replace("s1", "s9"))
    assert await code_of(servers.get(plane, a_call("GET"), nowhere)) == "SubscriptionNotFound"
    await subscriptions.put(plane, a_call(), SUBSCRIPTION, Body())
    assert (
        await code_of(servers.put(plane, a_call(), SERVER, registered(targets)))
        == "ResourceGroupNotFound"
    )
    await groups.put(plane, a_call(), GROUP, Body(location="local"))
    assert await code_of(servers.get(plane, a_call("GET"), SERVER)) == "ResourceNotFound"
    assert (
        await code_of(databases.get(plane, a_call("GET"), database_id("d")))
        == "ParentResourceNotFound"
    )
    assert (
        await code_of(databases.list_page(plane, a_call("GET"), SERVER, None, 10))
        == "ResourceNotFound"
    )
    assert (await servers.list_page(plane, a_call("GET"), GROUP, None, 10)).items == []


async def test_a_suspended_subscription_can_be_read_and_emptied_only(plane):
    await a_group(plane)
    await subscriptions.put(plane, a_call(), SUBSCRIPTION, Body(properties={"state": "Suspended"}))

    await groups.get(plane, a_call("GET"), GROUP)
    assert (
        await code_of(groups.put(plane, a_call(), GROUP, Body(location="local")))
        == "ReadOnlyDisabledSubscription"
    )
    await groups.delete(plane, a_call("DELETE"), GROUP)
    await settle(plane)


async def test_a_deleted_subscription_loses_its_groups_and_does_not_come_back(plane):
    await a_group(plane)

    await subscriptions.put(plane, a_call(), SUBSCRIPTION, Body(properties={"state": "Deleted"}))
    await settle(plane)

    assert (await groups.list_page(plane, a_call("GET"), SUBSCRIPTION, None, 10)).items == []
    assert await code_of(subscriptions.put(plane, a_call(), SUBSCRIPTION, Body())) == "Conflict"


async def test_a_namespace_is_registered_until_it_is_unregistered(plane, targets):
    await a_group(plane)
    sql = SUBSCRIPTION.child(("providers", "Microsoft.Sql"))
    assert (await providers.get(plane, a_call("GET"), sql))["registrationState"] == "Registered"

    await providers.unregister(plane, a_call("POST"), sql)
    assert (
        await code_of(servers.put(plane, a_call(), SERVER, registered(targets)))
        == "MissingSubscriptionRegistration"
    )
    await providers.register(plane, a_call("POST"), sql)

    await servers.put(plane, a_call(), SERVER, registered(targets))


async def test_a_server_name_is_taken_once_in_the_installation(plane, targets):
    await a_server(plane, targets)
    other = ResourceId.parse(SERVER.text.replace("g1", "g2"))
    await groups.put(plane, a_call(), other.upto("resourceGroups"), Body(location="local"))

    assert (
        await code_of(servers.put(plane, a_call(), other, registered(targets)))
        == "NameAlreadyExists"
    )
    asked = {"name": "srv", "type": "Microsoft.Sql/servers"}
    answer = await servers.check_name(plane, a_call("POST"), SUBSCRIPTION, asked)
    assert (answer["available"], answer["reason"]) == (False, "AlreadyExists")


async def test_a_pool_with_databases_can_not_be_deleted(plane, targets):
    await a_server(plane, targets)
    pool = SERVER.child(("elasticPools", "gold"))
    await pools.put(plane, a_call(), pool, Body(properties={"maxConnections": 5}))
    body = Body(properties={"elasticPoolId": pool.text})
    await databases.put(plane, a_call(), database_id("member"), body)
    await settle(plane)

    with pytest.raises(Conflict, match="member"):
        await pools.delete(plane, a_call("DELETE"), pool)
    missing = Body(properties={"elasticPoolId": pool.text + "x"})
    with pytest.raises(InvalidRequest):
        await databases.put(plane, a_call(), database_id("other"), missing)
    await databases.delete(plane, a_call("DELETE"), database_id("member"))
    await settle(plane)
    assert (await pools.delete(plane, a_call("DELETE"), pool)).existed
    async with plane_admin(plane, targets) as admin:
        await admin.execute("drop database member")


async def test_lists_come_in_pages_that_lose_and_repeat_nothing(plane):
    await subscriptions.put(plane, a_call(), SUBSCRIPTION, Body())
    names = [f"g{n:02}" for n in range(7)]
    for name in names:
        await groups.put(
            plane, a_call(), SUBSCRIPTION.child(("resourceGroups", name)), Body(location="local")
        )

    seen, after = [], None
    for _ in range(10):
        page = await groups.list_page(plane, a_call("GET"), SUBSCRIPTION, after, 3)
        seen += [item.name for item in page.items]
        after = page.next
        if after is None:
            break

    assert seen == names


async def test_every_mutation_leaves_an_audit_event_and_none_can_be_changed(plane, targets):
    await a_server(plane, targets)

    page = await audit.list_page(plane, a_call("GET"), SUBSCRIPTION, None, 2, None)
    assert [event["operationName"]["value"] for event in page.items] == [
        "Microsoft.Sql/servers/write",
        "Microsoft.Resources/resourceGroups/write",
    ]
    only = "operationName eq 'Microsoft.Resources/subscriptions/write'"
    found = await audit.list_page(plane, a_call("GET"), SUBSCRIPTION, None, 10, only)
    assert [event["resourceId"] for event in found.items] == [SUBSCRIPTION.text]
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await plane.db.execute("delete from audit_event")


async def test_history_tells_every_move(plane, targets):
    await a_server(plane, targets)

    page = await history.list_page(plane, a_call("GET"), SERVER, None, 100)

    moves = [(item["from"], item["to"]) for item in page.items]
    assert moves[0] == (None, "reserving")
    assert moves[-1][1] == "ready"
    assert all(left[1] == right[0] for left, right in zip(moves, moves[1:], strict=False))


async def test_secrets_are_nowhere_to_be_read(plane, targets):
    await a_server(plane, targets)
    secret = targets.administrator.password

    rows = await plane.db.fetch(
        "select to_jsonb(r)::text as text from resource r union all select to_jsonb(a)::text from audit_event a union all select to_jsonb(m)::text from machine m union all select to_jsonb(s)::text from signal s"
    )
    assert rows
    assert not [row for row in rows if secret in row["text"]]
    shown = await resources.get(plane, a_call("GET"), SERVER)
    assert secret not in repr(shown)


async def test_a_resource_of_another_tenant_is_not_there(plane, targets):
    await a_server(plane, targets)
    from workflows.model.resource import Principal

    stranger = Principal(id="x", tenant_id="other", owner=True)
    with pytest.raises(NotFound):
        await servers.get(plane, a_call("GET", stranger), SERVER)


def plane_admin(plane, targets):
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def opened():
        connection = await asyncpg.connect(targets.url("postgres", targets.administrator))
        try:
            yield connection
        finally:
            await connection.close()

    return opened()


async def test_a_check_tells_whether_a_server_answers_and_its_state_follows(plane, targets):
    body = registered(targets, administratorLogin=None, administratorLoginPassword=None)
    await a_group(plane)
    await servers.put(plane, a_call(), SERVER, body)
    await settle(plane)

    async def state() -> str:
        (listed,) = (await servers.list_page(plane, a_call("GET"), GROUP, None, 10)).items
        assert listed == await servers.get(plane, a_call("GET"), SERVER)
        return listed.observed["state"]

    registered_as = await state()
    good = await servers.check(plane, a_call("POST"), SERVER)
    away = (
        "update resource set properties = jsonb_set(properties, '{endpoint,port}', $1)"
        " where type = 'Microsoft.Sql/servers'"
    )
    await plane.db.execute(away, 1025)
    bad = await servers.check(plane, a_call("POST"), SERVER)
    not_verified = await state()
    await plane.db.execute(away, targets.port)
    await servers.check(plane, a_call("POST"), SERVER)

    assert (registered_as, good) == ("Ready", {"reachable": True})
    assert (bad["reachable"], bad["code"]) == (False, "TargetUnreachable")
    assert "can't be reached" in bad["message"]
    assert (not_verified, await state()) == ("NotVerified", "Ready")


async def test_a_check_logs_in_where_there_is_a_login(plane, targets):
    await a_server(plane, targets)
    good = await servers.check(plane, a_call("POST"), SERVER)
    sealed = await plane.db.fetchrow("select uid, sealed from resource where key = $1", SERVER.key)
    wrong = plane.keyring.seal("wrong", f"{sealed['uid']}/administratorLoginPassword")
    await plane.db.execute(
        "update resource set sealed = $2 where uid = $1",
        sealed["uid"],
        {"administratorLoginPassword": wrong},
    )

    bad = await servers.check(plane, a_call("POST"), SERVER)

    assert good == {"reachable": True}
    assert (bad["reachable"], bad["code"]) == (False, "TargetAuthenticationFailed")
    assert (await servers.get(plane, a_call("GET"), SERVER)).observed["state"] == "Ready"


def test_target_queries_are_known():
    assert {name for name, _ in T.items()} == {
        "enumerate_databases",
        "foreign_sessions",
        "tables_with_pages",
    }
