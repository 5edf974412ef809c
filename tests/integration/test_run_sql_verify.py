"""What the control database keeps about the script of a step with a verify query, from attempt to attempt."""

import pytest

from tests.support.executions import EPOCH
from tests.support.execution_fixture import FAILED, set_steps

pytestmark = pytest.mark.newest

COMMITTED, UNKNOWN, CLEARED = {"script": "committed"}, {"script": "unknown"}, {}
RETRY = FAILED | {"retry": True}


async def fetched(stage, attempt: int):
    """What a host reads about the script when it fetches the next attempt; the attempt starts."""
    (key,) = await stage.reserve(1, attempt=attempt)
    (row,) = [each for each in await stage.ask("take", stage.host, 0) if each["kind"] == "task"]
    await stage.report(starts=[key])
    return key, row["script_outcome"], (await stage.target(1))["phase"]


async def test_a_commit_that_was_answered_stays_known_until_the_end(stage):
    key, script, phase = await fetched(stage, 1)
    await stage.report(commits=[key | {"x": "9@1/2"}])
    assert (script, phase, (await stage.target(1))["phase"]) == (None, "run", "commit")

    await stage.report(commits=[key | {"x": "committed"}])

    assert (await stage.target(1))["phase"] == "verify"
    assert (await stage.task(1))["xact_id"] == "9@1/2"
    await stage.report(results=[key | RETRY | {"phase": "verify"}])
    for attempt in (2, 3):
        key, script, phase = await fetched(stage, attempt)
        assert (script, phase) == ("committed", "verify")
        await stage.report(results=[key | RETRY | {"phase": "connect"}])


async def test_an_unknown_outcome_stays_known_until_the_query_answers(stage):
    key, _, _ = await fetched(stage, 1)
    await stage.report(results=[key | RETRY | {"checkpoint": UNKNOWN}])
    key, script, _ = await fetched(stage, 2)
    assert script == "unknown"
    await stage.report(results=[key | RETRY | {"checkpoint": CLEARED}])

    _, script, phase = await fetched(stage, 3)

    assert (script, phase) == (None, "run")


async def test_a_refused_task_records_no_commit(stage):
    key, _, _ = await fetched(stage, 1)
    await stage.report(results=[key | RETRY])

    refused = await stage.report(commits=[key | {"x": "committed"}])

    assert refused == [key["i"]]
    _, script, _ = await fetched(stage, 2)
    assert script is None


@pytest.mark.parametrize(
    ("commits", "known"), [([], None), (["7@1/2"], "7@1/2"), (["7@1/2", "committed"], "committed")]
)
async def test_the_core_learns_what_is_known_when_the_host_is_lost(stage, owner, commits, known):
    await set_steps(owner, options={"verify": {"sql": "select 1"}})
    key, _, _ = await fetched(stage, 1)
    for xact in commits:
        await stage.report(commits=[key | {"x": xact}])

    (row,) = await stage.ask("disown", EPOCH, stage.host)

    assert (row["xact_id"], row["verify"]) == (known, True)


async def test_the_core_learns_it_from_an_earlier_attempt_too(stage):
    key, _, _ = await fetched(stage, 1)
    await stage.report(results=[key | RETRY | {"checkpoint": COMMITTED}])
    await fetched(stage, 2)

    (row,) = await stage.ask("disown", EPOCH, stage.host)

    assert (row["attempt"], row["xact_id"]) == (2, "committed")
