"""What the control database keeps about the script of a step with a verify query, from attempt to attempt."""

import pytest

from tests.support.executions import EPOCH
from tests.support.execution_fixture import FAILED, set_steps

pytestmark = pytest.mark.newest

COMMITTED, UNKNOWN, CLEARED = {"script": "committed"}, {"script": "unknown"}, {}
RETRY = FAILED | {"retry": True}


async def fetched(execution, attempt: int):
    """What a host reads about the script when it fetches the next attempt; the attempt starts."""
    (key,) = await execution.reserve(1, attempt=attempt)
    (row,) = [
        each for each in await execution.ask("take", execution.host, 0) if each["kind"] == "task"
    ]
    await execution.report(starts=[key])
    return key, row["script_outcome"], (await execution.target(1))["phase"]


async def test_a_commit_that_was_answered_stays_known_until_the_end(execution):
    key, script, phase = await fetched(execution, 1)
    await execution.report(commits=[key | {"xact_id": "9@1/2"}])
    assert (script, phase, (await execution.target(1))["phase"]) == (None, "run", "commit")

    await execution.report(commits=[key | {"xact_id": "committed"}])

    assert (await execution.target(1))["phase"] == "verify"
    assert (await execution.task(1))["xact_id"] == "9@1/2"
    await execution.report(results=[key | RETRY | {"phase": "verify"}])
    for attempt in (2, 3):
        key, script, phase = await fetched(execution, attempt)
        assert (script, phase) == ("committed", "verify")
        await execution.report(results=[key | RETRY | {"phase": "connect"}])


async def test_an_unknown_outcome_stays_known_until_the_query_answers(execution):
    key, _, _ = await fetched(execution, 1)
    await execution.report(results=[key | RETRY | {"checkpoint": UNKNOWN}])
    key, script, _ = await fetched(execution, 2)
    assert script == "unknown"
    await execution.report(results=[key | RETRY | {"checkpoint": CLEARED}])

    _, script, phase = await fetched(execution, 3)

    assert (script, phase) == (None, "run")


async def test_a_refused_task_records_no_commit(execution):
    key, _, _ = await fetched(execution, 1)
    await execution.report(results=[key | RETRY])

    refused = await execution.report(commits=[key | {"xact_id": "committed"}])

    assert refused == [key["invocation_id"]]
    _, script, _ = await fetched(execution, 2)
    assert script is None


@pytest.mark.parametrize(
    ("commits", "known"), [([], None), (["7@1/2"], "7@1/2"), (["7@1/2", "committed"], "committed")]
)
async def test_the_core_learns_what_is_known_when_the_host_is_lost(
    execution, owner, commits, known
):
    await set_steps(owner, options={"verify": {"sql": "select 1"}})
    key, _, _ = await fetched(execution, 1)
    for xact in commits:
        await execution.report(commits=[key | {"xact_id": xact}])

    (row,) = await execution.ask("disown", EPOCH, execution.host)

    assert (row["xact_id"], row["verify"]) == (known, True)


async def test_the_core_learns_it_from_an_earlier_attempt_too(execution):
    key, _, _ = await fetched(execution, 1)
    await execution.report(results=[key | RETRY | {"checkpoint": COMMITTED}])
    await fetched(execution, 2)

    (row,) = await execution.ask("disown", EPOCH, execution.host)

    assert (row["attempt"], row["xact_id"]) == (2, "committed")
