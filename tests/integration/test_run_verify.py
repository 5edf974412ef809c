"""A step with a verify query, from its start to its end: what committed is not repeated, whoever is lost."""

import asyncio
import re
from pathlib import Path

import asyncpg
import pytest

from engine.host.main import JobTaskHost
from muster.core import failpoints
from tests.support.fleet import Fleet, start_fleet
from tests.support.launching import until

pytestmark = [pytest.mark.newest, pytest.mark.targets]

PAGE = (Path(__file__).parents[2] / "docs/reference/step-options.md").read_text("utf-8")
INSERT = "insert into t values ($(attempt))"
SEEN = {"sql": "select 1 from t"}


@pytest.fixture
async def fleet(settings, db, account, targets, tmp_path):
    async with start_fleet(settings, db, targets, tmp_path, account=account) as made:
        for name in made.databases:
            await made.query(name, "create table t (n int)")
        yield made


def of_attempts(tasks):
    return [(task["attempt"], task["lifecycle"], task["end_reason"]) for task in tasks]


async def test_a_step_that_does_nothing_fails_on_exactly_those_targets(fleet: Fleet):
    await fleet.query(1, "create table quiet ()")
    script = (
        "do $$ begin if to_regclass('quiet') is null then insert into t values (1); end if; end $$"
    )

    run = await fleet.run(script, options={"verify": SEEN})

    targets = await fleet.targets_of(run)
    assert [each["end_reason"] for each in targets].count("VerifyFailed") == 1
    assert await fleet.lifecycles(run) == {"Succeeded": 2, "Failed": 1}
    (failed,) = [each for each in targets if each["lifecycle"] == "Failed"]
    assert (failed["attempts"], failed["phase"]) == (1, "verify")
    assert failed["last_message"] == (
        "The script committed; its verify query does not hold: at least one row expected, no row returned."
    )
    assert await fleet.everywhere("select count(*) from t") == [1, 0, 1]


async def test_a_query_that_is_asked_again_does_not_repeat_the_script(fleet: Fleet):
    for name in fleet.databases:
        await fleet.query(name, "create table watched ()")
    verify = {"sql": "select count(*) from watched"}
    options = {"verify": verify, "jitter": 0, "settings": {"lockTimeoutSeconds": 0.2}}
    await fleet.job("locked", INSERT, options=options, retry_attempts=20)
    blocker = await asyncpg.connect(fleet.targets.url(fleet.databases[0], fleet.targets.root))
    await blocker.execute("begin; lock table watched")
    run = await fleet.start("locked")

    async def not_answered() -> bool:
        ends = [task["end_reason"] for task in await fleet.tasks(run)]
        return "VerifyNotAnswered" in ends

    try:
        await until(not_answered)
    finally:
        await blocker.close()

    assert await fleet.ended(run) == "Succeeded"
    assert await fleet.everywhere("select array_agg(n) from t") == [[1], [1], [1]]
    first = [task for task in await fleet.tasks(run) if task["ordinal"] == 1]
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
    fleet: Fleet, point, transaction, reasons
):
    (lost,) = [one for one in fleet.alive if isinstance(one.living, JobTaskHost)]
    hits: list[asyncio.Task[None]] = []

    async def lose() -> None:
        if not hits:
            hits.append(asyncio.create_task(fleet.kill(lost)))
            await fleet.host()
        await asyncio.Event().wait()

    options = {"verify": SEEN, "transaction": transaction}
    await fleet.job("lost", INSERT, options=options, retry_attempts=0)
    with failpoints.armed({point: lose}) as armed:
        run = await fleet.start("lost")
        await until(lambda: _reached(hits))
        armed.actions.clear()
        assert await fleet.ended(run) == "Succeeded"

    assert await fleet.everywhere("select count(*) from t") == [1, 1, 1]
    crashed = [task for task in await fleet.tasks(run) if task["end_reason"] == reasons[0]]
    assert crashed, of_attempts(await fleet.tasks(run))
    for task in crashed:
        ends = [each for each in await fleet.tasks(run) if each["ordinal"] == task["ordinal"]]
        assert [end for _, _, end in of_attempts(ends)] == [*reasons]
        assert of_attempts(ends)[-1][:2] == (2, "Succeeded")
    (target, *_) = [t for t in await fleet.targets_of(run) if t["attempts"] == 2]
    assert (target["free_attempts"], target["phase"]) == (1, "verify")


async def _reached(hits):
    return bool(hits)


async def test_what_holds_already_is_not_done_again(fleet: Fleet):
    options = {"verify": SEEN | {"skipIfHolds": True}}
    await fleet.job("once", INSERT, options=options)
    for reason in (None, "AlreadyHolds"):
        run = await fleet.start("once")
        await fleet.ended(run)
        assert {each["end_reason"] for each in await fleet.targets_of(run)} == {reason}

    assert await fleet.everywhere("select count(*) from t") == [1, 1, 1]


CHAIN, VERIFY = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


async def test_the_example_of_a_chain_works(fleet: Fleet):
    await fleet.run("create table customer (plan text); insert into customer values ('gold')")
    await fleet.root.execute(CHAIN)

    assert await fleet.ended(await fleet.start("move column")) == "Succeeded"

    assert await fleet.everywhere("select min(tier) from customer") == ["gold"] * 3


async def test_the_example_of_verify_works(fleet: Fleet):
    await fleet.root.execute(VERIFY)

    for reason in (None, "AlreadyHolds"):
        run = await fleet.start("add column")
        assert await fleet.ended(run) == "Succeeded"
        assert {each["end_reason"] for each in await fleet.targets_of(run)} == {reason}

    assert await fleet.everywhere("select count(tier) from customer") == [0, 0, 0]


async def test_a_step_that_was_written_by_sql_against_the_grammar_sends_nothing(fleet: Fleet):
    run = await fleet.run(INSERT, options={"verify": {"sql": "select from from"}})

    assert {each["end_reason"] for each in await fleet.targets_of(run)} == {"ScriptRefused"}
    assert await fleet.everywhere("select count(*) from t") == [0, 0, 0]
