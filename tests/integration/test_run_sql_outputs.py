"""What the control database knows about outputs: which attempt has the rows, where they go, and how long they are needed."""

import json

import pytest

from tests.support.execution_fixture import FAILED, SUCCEEDED, set_steps
from tests.support.executions import EPOCH

pytestmark = pytest.mark.newest

RETRY = FAILED | {"retry": True}
OUTPUT = {
    "output_type": "SqlDatabase", "output_server_name": "OUT.example.org",
    "output_database_name": "d", "output_schema_name": "dbo", "output_table_name": "t",
}  # fmt: skip
SERVER = """
insert into jobs_internal.server_directory (server_id, name, hosts, port, ssl_mode, job_credential, revision)
values ('/out', 'out', '{out.example.org}', 5432, 'verify-full', $1, 1)
"""
CREDENTIAL = """
insert into jobs_internal.credential (name, username, secret, created_by, modified_by)
values ($1, 'u', 'env:X', 'x', 'x') returning credential_id
"""


async def fetched(execution, attempt: int):
    """What a host reads when it fetches the next attempt, which then starts; and the phase of the target."""
    (key,) = await execution.reserve(1, attempt=attempt)
    rows = await execution.ask("take", execution.host, 0)
    (row,) = [each for each in rows if each["kind"] == "task"]
    await execution.report(starts=[key])
    phase = (await execution.target(1))["phase"]
    return key, (row["script_outcome"], row["committed_attempt"], phase)


async def test_the_attempt_that_sent_the_script_stays_known_until_it_is_sent_again(execution):
    key, known = await fetched(execution, 1)
    assert known == (None, None, "run")
    await execution.report(results=[key | RETRY])
    key, known = await fetched(execution, 2)
    assert known == (None, None, "run")
    await execution.report(commits=[key | {"xact_id": "9@1/2"}])
    await execution.report(commits=[key | {"xact_id": "committed"}])
    await execution.report(results=[key | RETRY])

    key, known = await fetched(execution, 3)
    assert known == ("committed", 2, "verify")
    await execution.report(commits=[key | {"xact_id": "verified"}])
    assert (await execution.target(1))["phase"] == "output"
    assert (await execution.task(1, attempt=3))["xact_id"] is None
    await execution.report(results=[key | RETRY | {"checkpoint": {"script": "verified"}}])

    key, known = await fetched(execution, 4)
    assert known == ("verified", 2, "output")
    await execution.report(results=[key | RETRY | {"checkpoint": {}}])

    key, known = await fetched(execution, 5)
    assert known == (None, None, "run")
    await execution.report(commits=[key | {"xact_id": "verified"}])
    await execution.report(results=[key | RETRY])
    assert (await fetched(execution, 6))[1] == ("verified", 5, "output")


async def test_the_core_learns_that_only_the_output_is_left(execution, owner):
    await set_steps(owner, **OUTPUT)
    key, _ = await fetched(execution, 1)
    await execution.report(commits=[key | {"xact_id": "9@1/2"}])
    await execution.report(commits=[key | {"xact_id": "verified"}])

    (row,) = await execution.ask("disown", EPOCH, execution.host)

    assert (row["xact_id"], row["output"], row["verify"]) == ("verified", True, False)


async def place(execution):
    text = await execution.value("output_place", execution.day, execution.run, 1, 1)
    document = json.loads(text)
    credential = document["credential"]
    servers = [each["server_id"] for each in document["servers"]]
    return servers, credential and credential["name"]


async def test_the_credential_of_an_output_is_the_nearest_one(execution, owner):
    await set_steps(owner, **OUTPUT)
    assert await place(execution) == ([], None)
    await owner.execute(SERVER, "SERVERS")
    assert await place(execution) == (["/out"], None)

    names = ("servers", "member", "step", "output")
    ids = {name: await owner.fetchval(CREDENTIAL, name) for name in names}
    assert await place(execution) == (["/out"], "servers")
    await owner.execute("alter table jobs_internal.snapshot_target disable trigger user")
    await owner.execute(
        "update jobs_internal.snapshot_target set credential_id = $1 where ordinal = 1",
        ids["member"],
    )
    assert await place(execution) == (["/out"], "member")
    await set_steps(owner, credential_id=ids["step"])
    assert await place(execution) == (["/out"], "step")
    await set_steps(owner, output_credential_id=ids["output"])
    assert await place(execution) == (["/out"], "output")


async def test_rows_are_needed_until_the_target_succeeds_or_its_step_ends(execution):
    one, two, three = await execution.started(1, 2, 3)

    async def needed():
        keys = [[execution.day] * 4, [execution.run] * 4, [1] * 4, [1, 2, 3, 9]]
        return await execution.value("needed_rows", *keys)

    assert await needed() == [True, True, True, False]
    await execution.report(results=[one | SUCCEEDED, two | FAILED])
    assert await needed() == [False, True, True, False]
    await execution.report(results=[three | SUCCEEDED])
    await execution.value("end_step", EPOCH, execution.run, 1, None, None)
    assert await needed() == [False] * 4
