"""A rejected private endpoint keeps the account's jobs off its server."""

import json

import pytest

from tests.support.executions import EPOCH

pytestmark = pytest.mark.newest

SERVER_ID = "/servers/eu1"
SERVER = """
insert into jobs_internal.server_directory (server_id, name, hosts, port, ssl_mode, revision)
values ($1, $2, '{127.0.0.1}', 5432, 'disable', 1)
"""
ENDPOINT = """
insert into jobs_internal.private_endpoint (private_endpoint_id, name, server_id, created_by, modified_by)
values ('EJ_1', 'way', $1, 'test', 'test')
"""
DECIDE = "select jobs_internal.decide_private_endpoint('way', $1, $2)"
LIMITS = "select server_id, disabled from jobs_internal.read_limits($1)"
WHY = """
select jobs_internal.explain_target(r, 'step1', t.target_id::text) -> 'why'
  from jobs_internal.job_execution r
  join jobs_internal.snapshot_target t on t.snapshot_id = $2 and t.ordinal = 1
 where r.job_execution_id = $1
"""


async def test_nothing_starts_on_a_server_whose_private_endpoint_was_rejected(owner, engine):
    for name in ("eu1", "eu2"):
        await owner.execute(SERVER, f"/servers/{name}", name)
    await owner.execute(ENDPOINT, SERVER_ID.upper())

    async def disabled() -> set[str]:
        return {row["server_id"] for row in await engine.fetch(LIMITS, EPOCH) if row["disabled"]}

    assert await disabled() == set()
    await owner.execute(DECIDE, "Rejected", SERVER_ID.upper())
    assert await disabled() == {SERVER_ID}
    await owner.execute(DECIDE, "Approved", SERVER_ID.upper())
    assert await disabled() == set()


async def test_a_target_that_waits_for_it_says_which_private_endpoint_it_is(owner, execution):
    (server,) = await owner.fetch(
        "select server_id, server_name from jobs_internal.snapshot_target"
        " where snapshot_id = $1 and ordinal = 1",
        execution.snapshot,
    )
    await owner.execute(SERVER, server["server_id"], server["server_name"])
    await owner.execute(ENDPOINT, server["server_id"])

    await owner.execute(DECIDE, "Rejected", server["server_id"])

    why = json.loads(await owner.fetchval(WHY, execution.run, execution.snapshot))
    assert why["waitReason"] == "ServerDisabled"
    assert why["message"] == f"The private endpoint way to the server {server[1]} was rejected."
