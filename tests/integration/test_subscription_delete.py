"""A subscription's delete has the checks of a resource group's."""

import pytest

from muster.core.errors import Conflict
from tests.support.plane import GROUP, SERVER, SUBSCRIPTION, a_call, a_group, make_plane
from workflows import groups, locks, subscriptions
from workflows.model.resource import Body

pytestmark = pytest.mark.newest

LOCK = ("providers", "Microsoft.Authorization"), ("locks", "keep")
DELETED = Body(properties={"state": "Deleted"})
ACCOUNT = """
insert into resource (key, id, type, name, subscription_key, tenant_id,
                      created_by, created_by_type, modified_by, modified_by_type)
select lower($1), $1, 'Microsoft.Sql/servers/jobAgents', 'a', 's1', tenant_id, 'test', 'User', 'test', 'User'
  from resource where key = '/subscriptions/s1'
"""


@pytest.fixture
async def plane(settings, db):
    made = make_plane(settings, db)
    await a_group(made)
    return made


async def refused(plane) -> Conflict:
    """Nothing has changed."""
    with pytest.raises(Conflict) as caught:
        await subscriptions.put(plane, a_call(), SUBSCRIPTION, DELETED)
    shown = await subscriptions.get(plane, a_call("GET"), SUBSCRIPTION)
    assert shown.properties["state"] == "Registered"
    assert (await groups.get(plane, a_call("GET"), GROUP)).provisioning_state == "Succeeded"
    return caught.value


@pytest.mark.parametrize("scope", [SUBSCRIPTION, GROUP], ids=["at it", "inside it"])
async def test_a_lock_refuses_it(plane, scope):
    lock = Body(properties={"level": "CanNotDelete"})
    await locks.put(plane, a_call(), scope.child(*LOCK), lock)

    assert (await refused(plane)).code == "ScopeLocked"

    await locks.delete(plane, a_call("DELETE"), scope.child(*LOCK))
    gone = await subscriptions.put(plane, a_call(), SUBSCRIPTION, DELETED)
    assert gone.resource.properties["state"] == "Deleted"


async def test_a_live_account_refuses_it_and_is_named(plane, db):
    account = SERVER.child(("jobAgents", "a")).text
    await db.execute(ACCOUNT, account)

    conflict = await refused(plane)

    assert conflict.code == "ControlDatabaseInUse"
    assert [each.target for each in conflict.details] == [account]


async def test_a_deleted_one_is_deleted_again_without_a_word(plane, db):
    await subscriptions.put(plane, a_call(), SUBSCRIPTION, DELETED)
    await db.execute(ACCOUNT, SERVER.child(("jobAgents", "a")).text)

    again = await subscriptions.put(plane, a_call(), SUBSCRIPTION, DELETED)

    assert again.resource.properties["state"] == "Deleted"
