"""A step with a verify query, from its start to its end: what committed is not repeated, whoever is lost."""

import asyncio
import re
from pathlib import Path

import asyncpg
import pytest

from engine.host.main import JobTaskHost
from muster.core import failpoints
from tests.support.fleet import Fleet, fleet
from tests.support.launching import until

pytestmark = [pytest.mark.newest, pytest.mark.targets]

PAGE = (Path(__file__).parents[2] / "docs/reference/step-options.md").read_text("utf-8")
INSERT = "insert into t values ($(attempt))"
SEEN = {"sql": "select 1 from t"}


@pytest.fixture
async def here(settings, db, account, targets, tmp_path):
    async with fleet(settings, db, targets, tmp_path, account=account) as made:
        for name in made.databases:
            await made.query(name, "create table t (n int)")
        yield made


def of_attempts(tasks):
    return [(task["attempt"], task["lifecycle"], task["end_reason"]) for task in tasks]


async def test_a_step_that_does_nothing_fails_on_exactly_those_targets(here: Fleet):
    await here.query(1, "create table quiet ()")
    script = (
        "do $$ begin if to_regclass('quiet') is null then insert into t values (1); end if; end $$"
    )

    run = await here.run(script, options={"verify": SEEN})

    targets = await here.targets_of(run)
    assert [each["end_reason"] for each in targets].count("VerifyFailed") == 1
    assert await here.lifecycles(run) == {"Succeeded": 2, "Failed": 1}
    (failed,) = [each for each in targets if each["lifecycle"] == "Failed"]
    assert (failed["attempts"], failed["phase"]) == (1, "verify")
    assert failed["last_message"] == (
        "The script committed; its verify query does not hold: at least one row expected, no row returned."
    )
    assert await here.everywhere("select count(*) from t") == [1, 0, 1]


async def test_a_query_that_is_asked_again_does_not_repeat_the_script(here: Fleet):
    for name in here.databases:
        await here.query(name, "create table watched ()")
    verify = {"sql": "select count(*) from watched"}
    options = {"verify": verify, "jitter": 0, "settings": {"lockTimeoutSeconds": 0.2}}
    await here.job("locked", INSERT, options=options, retry_attempts=20)
    blocker = await asyncpg.connect(here.targets.url(here.databases[0], here.targets.root))
    await blocker.execute("begin; lock table watched")
    run = await here.start("locked")

    async def not_answered() -> bool:
        ends = [task["end_reason"] for task in await here.tasks(run)]
        return "VerifyNotAnswered" in ends

    try:
        await until(not_answered)
    finally:
        await blocker.close()

    assert await here.ended(run) == "Succeeded"
    assert await here.everywhere("select array_agg(n) from t") == [[1], [1], [1]]
    first = [task for task in await here.tasks(run) if task["ordinal"] == 1]
    assert first[-1]["lifecycle"] == "Succeeded"
    assert {task["end_reason"] for task in first[:-1]} == {"VerifyNotAnswered"}
    assert first[0]["sqlstate"] == "55P03"


@pytest.mark.parametrize(
    ("point", "transaction", "reasons"),
    [
        ("host.before_verify", "auto", ("VerifyNotAnswered", None)),
        ("host.before_verify", "none", ("OutcomeUnknown", "VerifiedAfterUnknown")),
        ("host.verified", "none", ("VerifyNotAnswered", None)),
    ],
)
async def test_a_host_that_is_lost_after_the_commit_does_not_repeat_the_script(
    here: Fleet, point, transaction, reasons
):
    (lost,) = [one for one in here.alive if isinstance(one.living, JobTaskHost)]
    hits: list[asyncio.Task[None]] = []

    async def lose() -> None:
        if not hits:
            hits.append(asyncio.create_task(here.kill(lost)))
            await here.host()
        await asyncio.Event().wait()

    options = {"verify": SEEN, "transaction": transaction}
    await here.job("lost", INSERT, options=options, retry_attempts=0)
    with failpoints.armed({point: lose}) as armed:
        run = await here.start("lost")
        await until(lambda: _reached(hits))
        armed.actions.clear()
        assert await here.ended(run) == "Succeeded"

    assert await here.everywhere("select count(*) from t") == [1, 1, 1]
    crashed = [task for task in await here.tasks(run) if task["end_reason"] == reasons[0]]
    assert crashed, of_attempts(await here.tasks(run))
    for task in crashed:
        ends = [each for each in await here.tasks(run) if each["ordinal"] == task["ordinal"]]
        assert [end for _, _, end in of_attempts(ends)] == [*reasons]
        assert of_attempts(ends)[-1][:2] == (2, "Succeeded")
    (target, *_) = [t for t in await here.targets_of(run) if t["attempts"] == 2]
    assert (target["free_attempts"], target["phase"]) == (1, "verify")


async def _reached(hits):
    return bool(hits)


async def test_what_holds_already_is_not_done_again(here: Fleet):
    options = {"verify": SEEN | {"skipIfHolds": True}}
    await here.job("once", INSERT, options=options)
    for reason in (None, "AlreadyHolds"):
        run = await here.start("once")
        await here.ended(run)
        assert {each["end_reason"] for each in await here.targets_of(run)} == {reason}

    assert await here.everywhere("select count(*) from t") == [1, 1, 1]


async def test_the_example_of_the_reference_page_works(here: Fleet):
    (example,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    await here.root.execute(example)

    for reason in (None, "AlreadyHolds"):
        run = await here.start("add column")
        assert await here.ended(run) == "Succeeded"
        assert {each["end_reason"] for each in await here.targets_of(run)} == {reason}

    assert await here.everywhere("select count(tier) from customer") == [0, 0, 0]


async def test_a_step_that_was_written_by_sql_against_the_grammar_sends_nothing(here: Fleet):
    run = await here.run(INSERT, options={"verify": {"sql": "select from from"}})

    assert {each["end_reason"] for each in await here.targets_of(run)} == {"ScriptRefused"}
    assert await here.everywhere("select count(*) from t") == [0, 0, 0]
