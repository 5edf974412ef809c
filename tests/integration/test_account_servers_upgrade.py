"""Accounts that are older than the list of their servers keep those that they could name."""

from importlib import resources

import pytest

from tests.support.account_fixture import AccountWorld
from tests.support.fake_clusters import FakeClusters
from tests.support.lifecycle_fixture import unhurried

pytestmark = pytest.mark.newest

FILE = "0009_account_servers.sql"
ELSEWHERE = """
insert into resource (key, id, type, name, subscription_key, tenant_id, created_by, created_by_type, modified_by,
                      modified_by_type)
select '/subscriptions/s9/' || n, '/subscriptions/s9/' || n, 'Microsoft.Sql/servers', n, 's9', r.tenant_id, 't', 'User',
       't', 'User'
  from resource r, (values ('far')) far (n) where r.uid = $1
"""
LISTED = """
select s.name, a.added_by from account_server a join resource s on s.uid = a.server_uid where a.account_uid = $1
"""


async def test_an_older_account_gets_the_servers_of_its_subscription_and_no_others(
    db, settings, targets
):
    world = AccountWorld(db, unhurried(settings), targets, FakeClusters(targets))
    account = await world.put_account()
    await db.execute(ELSEWHERE, account.uid)
    await db.execute("delete from account_server")
    text = (resources.files("workflows.migrations") / FILE).read_text("utf-8")
    (statement,) = [each for each in text.split(";") if "insert into account_server" in each]

    await db.execute(statement)

    rows = await db.fetch(LISTED, account.uid)
    assert [tuple(row) for row in rows] == [("s1", "upgrade")]
