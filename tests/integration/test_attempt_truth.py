"""What a target did and what the attempt says it did: the truth table, on a real server."""

import asyncio
from uuid import uuid4

import msgspec
import pytest

from tests.support.attempts import a_target_database, a_cutting_proxy, a_step, now, renewed, until
from tests.support.tcp_proxy import proxy_to

pytestmark = [pytest.mark.deep, pytest.mark.targets]


@pytest.fixture
async def target(targets, tmp_path):
    async with a_target_database(targets, tmp_path) as made:
        await made.execute(
            f"set role {made.owner.name}; create table t (id int primary key, v text)"
        )
        yield made


def told(outcome):
    return outcome.lifecycle, outcome.reason, outcome.retry


async def rows(target):
    return [row["id"] for row in await target.fetch("select id from t order by id")]


async def test_every_statement_has_its_result(target):
    outcome = await target.run(
        "insert into t values (1, 'a'), (2, null);\n"
        "select id, v, id > 1 as big, id::numeric / 3 as third from t order by id; update t set v = 'x'"
    )

    assert told(outcome) == ("Succeeded", None, False)
    first, second, third = outcome.results
    assert (first["statement"], first["tag"]) == (1, "INSERT 0 2")
    assert second["columns"] == [
        {"name": "id", "type": "integer"},
        {"name": "v", "type": "text"},
        {"name": "big", "type": "boolean"},
        {"name": "third", "type": "numeric"},
    ]
    assert second["rows"] == [
        [1, "a", False, "0.33333333333333333333"],
        [2, None, True, "0.66666666666666666667"],
    ]
    assert (second["tag"], second["rowCount"], second["truncated"]) == ("SELECT 2", 2, False)
    assert (third["statement"], third["tag"]) == (3, "UPDATE 2")
    assert (outcome.rows, outcome.statement_no) == (6, 3)
    assert outcome.bytes > 0
    assert set(outcome.timings) == {"waiting", "connecting", "starting", "running", "committing"}
    assert await rows(target) == [1, 2]


async def test_a_start_that_is_refused_sends_nothing(target):
    async def refused():
        return False

    assert await target.run("insert into t values (1)", start=refused) is None
    assert await rows(target) == []


async def test_the_start_is_committed_before_the_first_word_is_sent(target):
    async def start():
        seen = await target.fetch(
            "select query from pg_stat_activity where application_name ~ '^muster .'"
        )
        assert seen == []
        return True

    assert (await target.run("select 1", start=start)).lifecycle == "Succeeded"


async def test_an_intent_that_is_refused_rolls_back(target):
    async def refused(xid):
        return False

    assert await target.run("insert into t values (1)", intend=refused) is None
    assert await rows(target) == []


async def test_an_intent_that_nobody_heard_of_rolls_back_and_is_tried_again(target):
    async def untold(xid):
        return None

    outcome = await target.run("insert into t values (1)", intend=untold)

    assert told(outcome) == ("Canceled", "HostStopped", False)
    assert outcome.again and outcome.phase == "commit"
    assert "nothing was committed" in outcome.message
    assert await rows(target) == []


async def test_the_intent_names_the_transaction_and_comes_before_commit(target):
    async def intend(xact):
        xid, _, timeline = xact.partition("@")
        assert await target.value("select txid_status($1::text::bigint)", xid) == "in progress"
        assert timeline.startswith("00000001/")
        assert await rows(target) == []
        return True

    outcome = await target.run("insert into t values (1)", intend=intend)

    assert outcome.lifecycle == "Succeeded"
    assert await rows(target) == [1]


async def test_what_wrote_nothing_has_no_intent(target):
    assert (await target.run("select 1; select 2")).lifecycle == "Succeeded"
    assert target.intended == []


async def test_an_error_undoes_the_whole_script(target):
    outcome = await target.run("insert into t values (1);\n  select 1/0; insert into t values (2)")

    assert told(outcome) == ("Failed", "StatementFailed", False)
    assert (outcome.sqlstate, outcome.message) == ("22012", "division by zero")
    assert outcome.statement_no == 1
    assert [each["tag"] for each in outcome.results] == ["INSERT 0 1"]
    assert await rows(target) == []


async def test_an_error_is_found_in_the_script_as_it_is_stored(target):
    script = "select 'ä', '$(job_name)', $(attempt);\n/* c */ select '$(job_name)' as a, $(attempt), missing from t"
    outcome = await target.run(script)

    assert outcome.sqlstate == "42703"
    assert script[outcome.position - 1 :].startswith("missing from t")
    assert outcome.message == 'column "missing" does not exist'


async def test_an_error_has_all_its_parts(target):
    outcome = await target.run(
        """do $$ begin
             raise exception 'no' using errcode = 'P0042', detail = 'because', hint = 'try again';
           end $$"""
    )

    assert told(outcome) == ("Failed", "StatementFailed", True)
    assert (outcome.sqlstate, outcome.message, outcome.detail) == ("P0042", "no", "because")
    assert outcome.hint == "try again"
    assert outcome.context.startswith("PL/pgSQL function inline_code_block line 2")


async def test_equal_causes_have_equal_fingerprints(target):
    one, two, other = [
        await target.run(script)
        for script in ("select * from nowhere17", "select * from nothing4", "select nothing")
    ]

    assert one.fingerprint == two.fingerprint != other.fingerprint
    assert one.fingerprint.startswith("42P01:")


@pytest.mark.parametrize(
    ("script", "sqlstate", "retry"),
    [
        ("selec 1", "42601", False),
        ("select * from nowhere", "42P01", False),
        ("insert into t values (1), (1)", "23505", False),
        ("select 'x'::int", "22P02", False),
        ("do $$ begin raise exception 'x' using errcode = '40001'; end $$", "40001", True),
        ("do $$ begin raise exception 'x' using errcode = '53100'; end $$", "53100", True),
        ("do $$ begin raise exception 'x' using errcode = '08006'; end $$", "08006", True),
        ("do $$ begin raise exception 'x' using errcode = '28000'; end $$", "28000", False),
    ],
)
async def test_what_is_tried_again(target, script, sqlstate, retry):
    outcome = await target.run(script)

    assert told(outcome) == ("Failed", "StatementFailed", retry)
    assert outcome.sqlstate == sqlstate


async def test_a_step_may_want_more_to_be_tried_again(target):
    by_state = await target.run("select * from nowhere", retryOn=["42P01"])
    by_class = await target.run("select * from nowhere", retryOn=["22", "42"])
    other = await target.run("select * from nowhere", retryOn=["42P02"])

    assert (by_state.retry, by_class.retry, other.retry) == (True, True, False)


async def test_a_constraint_that_fails_at_commit_is_a_failure(target):
    await target.execute("alter table t add unique (v) deferrable initially deferred")

    outcome = await target.run("insert into t values (1, 'a'); insert into t values (2, 'a')")

    assert told(outcome) == ("Failed", "StatementFailed", False)
    assert (outcome.sqlstate, outcome.phase, outcome.statement_no) == ("23505", "commit", 2)
    assert await rows(target) == []


async def test_a_warning_changes_nothing(target):
    outcome = await target.run(
        "do $$ begin raise warning 'beware'; raise notice 'n' using hint = 'h'; end $$"
    )

    assert told(outcome) == ("Succeeded", None, False)
    assert [(each["severity"], each["message"]) for each in outcome.notices] == [
        ("WARNING", "beware"),
        ("NOTICE", "n"),
    ]
    assert outcome.notices[1]["hint"] == "h"


async def test_a_text_that_the_grammar_refuses_goes_whole(target):
    refused = "select 'a' -- one literal to the server\n'b' as c; insert into t values (1)"
    outcome = await target.run(refused)
    wrong = await target.run(refused + "; select from from t")

    assert told(outcome) == ("Succeeded", None, False)
    assert "as a whole" in outcome.notices[0]["message"]
    assert [each["tag"] for each in outcome.results] == ["SELECT 1", "INSERT 0 1"]
    assert outcome.results[0]["rows"] == [["ab"]]
    assert await rows(target) == [1]
    assert (wrong.lifecycle, wrong.sqlstate, wrong.notices) == ("Failed", "42601", [])
    assert (refused + "; select from from t")[wrong.position - 1 :] == "from t"


async def test_syntax_that_only_older_servers_know_is_theirs_to_judge(target):
    outcome = await target.run("insert into t values (1); select 4 !")

    if target.contacts[0].server_version < 140_000:
        assert told(outcome) == ("Succeeded", None, False)
        assert outcome.results[-1]["rows"] == [["24"]]
    else:
        assert (outcome.lifecycle, outcome.sqlstate) == ("Failed", "42601")


async def test_a_rehearsal_is_rolled_back(target):
    outcome = await target.run(
        "insert into t values (1); select count(*) from t",
        target.task(overrides={"rollback": True}),
    )

    assert told(outcome) == ("Succeeded", None, False)
    assert outcome.results[1]["rows"] == [[1]]
    assert [each["tag"] for each in outcome.results] == ["INSERT 0 1", "SELECT 1"]
    assert await rows(target) == []
    assert target.intended == []


async def test_a_second_attempt_does_not_run_beside_the_first(target):
    task, step = target.task(), a_step("insert into t values (1); select pg_sleep(30)")
    first = asyncio.create_task(target.run(step, task))
    await until(
        lambda: target.value(
            "select count(*) from pg_stat_activity where query ~ 'pg_sleep.30'  and state = 'active' and pid <> pg_backend_pid()"
        )
    )

    second = await target.run(step, renewed(task))
    other = await target.run("select 1", target.task(job_execution_id=task.job_execution_id))

    assert told(second) == ("Failed", "LockTimeout", True)
    assert second.message == "An earlier attempt still runs at the target."
    assert other.lifecycle == "Succeeded"
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_breaking_off_ends_the_backend(target):
    task = target.task()
    running = asyncio.create_task(target.run("insert into t values (1); select pg_sleep(60)", task))
    name = f"muster {task.invocation_id.hex}"
    seen = "select count(*) from pg_stat_activity where application_name = $1 and wait_event = 'PgSleep'"
    await until(lambda: target.value(seen, name))

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    await until(gone(target, name))
    assert await rows(target) == []


def gone(target, name):
    async def check():
        return not await target.value(
            "select count(*) from pg_stat_activity where application_name = $1", name
        )

    return check


async def test_a_backend_that_is_ended_before_commit_is_tried_again(target):
    await target.execute(f"grant pg_signal_backend to {target.owner.name}")
    outcome = await target.run(
        "insert into t values (1); select pg_terminate_backend(pg_backend_pid())"
    )

    assert told(outcome) == ("Failed", "ConnectionLost", True)
    assert outcome.sqlstate == "57P01"
    assert outcome.statement_no == 1
    assert await rows(target) == []


async def test_a_backend_whose_host_is_gone_does_not_go_on(target):
    """Without a word, as when the host's machine is gone: only the server can notice.

    Where it can't, the time that the step had left is the end.
    """
    within = 60 if await target.watches_client() else 5
    async with proxy_to(target.targets.port) as proxy:
        running, name = await asleep(target, proxy, within)
        proxy.cut()
        outcome = await running

    assert told(outcome) == ("Failed", "ConnectionLost", True)
    await until(gone(target, name))
    assert await rows(target) == []


async def test_a_backend_that_notices_nothing_is_told_when_the_line_breaks(target, monkeypatch):
    monkeypatch.setattr("engine.pool.dialer.WATCHES_CLIENT", 10**9)
    async with proxy_to(target.targets.port) as proxy:
        running, name = await asleep(target, proxy)
        proxy.cut()
        proxy.restore()
        outcome = await running
        await until(gone(target, name))

    assert told(outcome) == ("Failed", "ConnectionLost", True)
    assert await rows(target) == []


async def asleep(target, proxy, within=60):
    """An attempt behind the line whose backend sleeps for a minute, and what that is called."""
    server, task = msgspec.structs.replace(target.server, port=proxy.port), target.task()
    script = "select pg_sleep(60); insert into t values (1)"
    running = asyncio.create_task(target.run(script, task, server=server, within=within))
    name = f"muster {task.invocation_id.hex}"
    seen = "select count(*) from pg_stat_activity where application_name = $1 and wait_event = 'PgSleep'"
    await until(lambda: target.value(seen, name))
    return running, name


@pytest.mark.parametrize("word", [b"begin;", b"insert into"])
async def test_a_line_that_breaks_before_commit_is_tried_again(target, word):
    async with a_cutting_proxy(target, word=word, recovers=False) as server:
        outcome = await target.run("insert into t values (1)", server=server)

    assert told(outcome) == ("Failed", "ConnectionLost", True)
    assert await rows(target) == []


async def test_a_commit_that_never_arrived_is_known_to_be_none(target):
    async with a_cutting_proxy(target) as server:
        outcome = await target.run("insert into t values (1)", server=server)

    assert told(outcome) == ("Failed", "ConnectionLost", True)
    assert outcome.phase == "commit"
    assert await rows(target) == []


async def test_a_commit_whose_answer_was_lost_is_known_to_have_won(target):
    async with a_cutting_proxy(target, after=True) as server:
        outcome = await target.run("insert into t values (1)", server=server)

    assert told(outcome) == ("Succeeded", None, False)
    assert await rows(target) == [1]


async def test_a_lost_commit_of_nothing_is_tried_again(target):
    async with a_cutting_proxy(target, after=True) as server:
        outcome = await target.run("select 1", server=server)

    assert told(outcome) == ("Failed", "ConnectionLost", True)


@pytest.mark.parametrize(
    ("options", "retry"), [({}, False), ({"idempotent": True}, True), ({"guard": True}, True)]
)
async def test_a_lost_commit_that_nobody_can_tell_of_is_unknown(target, options, retry):
    async with a_cutting_proxy(target, after=True, recovers=False) as server:
        outcome = await target.run("insert into t values (1)", server=server, within=1, **options)

    assert told(outcome) == ("Failed", "OutcomeUnknown", retry)
    assert await rows(target) == [1]


async def test_after_a_failover_an_id_tells_nothing(target):
    async with a_cutting_proxy(target, after=True) as server:
        session = await target.sessions.lend(
            server, target.database, target.who(), uuid4(), direct=False, deadline=now() + 10
        )
        assert session.timeline == "00000001"
        session.timeline = "0000000A"
        target.sessions.give_back(session)
        await until(idle(target))
        outcome = await target.run("insert into t values (1)", server=server)

    assert told(outcome) == ("Failed", "OutcomeUnknown", False)


def idle(target):
    async def check():
        return not any(pool.returning for pool in target.sessions._server_pools.values())

    return check


async def test_a_commit_in_progress_is_waited_for(target):
    await target.execute(
        """create function slow() returns trigger language plpgsql as
             $$ begin perform pg_sleep(60); return null; end $$;
           create constraint trigger late after insert on t deferrable initially deferred
             for each row execute function slow()"""
    )
    async with a_cutting_proxy(target, after=True) as server:
        running = asyncio.create_task(target.run("insert into t values (1)", server=server))
        seen = "select pid from pg_stat_activity where wait_event = 'PgSleep' and usename = $1"
        pid = await until(lambda: target.value(seen, target.owner.name))
        await target.execute(f"select pg_terminate_backend({pid})")
        outcome = await running

    assert told(outcome) == ("Failed", "ConnectionLost", True)
    assert await rows(target) == []


async def test_a_server_that_could_not_be_listed_is_not_visited(target):
    task = target.task(database_name=None, target_type="SqlServer")

    outcome = await target.run("insert into t values (1)", task)

    assert told(outcome) == ("Failed", "ServerUnreachable", True)
    assert "listed before the next attempt" in outcome.message
    assert target.started == [task.invocation_id]


@pytest.mark.parametrize(
    ("why", "reason", "said"),
    [
        (
            "TargetTimeout: It did not answer.",
            "ServerUnreachable",
            "listed before the next attempt",
        ),
        ("InvalidTargetQuery: A row names no database.", "TargetsUnresolved", "names no database"),
    ],
)
async def test_why_a_server_could_not_be_listed_is_told(target, why, reason, said):
    labels = {"muster.unlisted": why}
    task = target.task(database_name=None, target_type="SqlServer", labels=labels)

    outcome = await target.run("insert into t values (1)", task)

    assert told(outcome) == ("Failed", reason, reason == "ServerUnreachable")
    assert said in outcome.message
    assert outcome.fingerprint == (reason if reason == "ServerUnreachable" else why.split(":")[0])


async def test_why_a_database_did_not_tell_its_schemas_is_told_and_nothing_runs_there(target):
    labels = {"muster.unlisted": "ConnectNotGranted: Let somebody grant it."}

    outcome = await target.run("insert into t values (1)", target.task(labels=labels))

    assert told(outcome) == ("Failed", "TargetsUnresolved", False)
    assert outcome.message == (
        "The database could not be listed when the step began, so its schemas were not visited."
        " ConnectNotGranted: Let somebody grant it."
    )
    assert outcome.fingerprint == "ConnectNotGranted"
    assert await rows(target) == []


# Such a step is refused when it is written and by the host; what a text looked like decides nothing here.
HIDDEN = "select 'a' -- one literal to the server\n'b'; insert into t values (1); "


@pytest.mark.parametrize("options", [{}, {"idempotent": True}, {"guard": True}], ids=str)
@pytest.mark.parametrize(
    "end",
    [
        "commit; select 1",
        "commit; begin",
        "commit; start transaction; select 1",
        "commit and chain; select 1",
        "commit; select 1/0",
        "commit; begin; do $$ begin raise exception 'x' using errcode = '40001'; end $$",
        "commit; select pg_terminate_backend(pg_backend_pid())",
        "commit; select generate_series(1, 200000)",
    ],
)
async def test_a_script_that_commits_by_itself_ends_as_unknown_and_is_not_retried(
    target, end, options
):
    outcome = await target.run(HIDDEN + end, **options)

    assert told(outcome) == ("Failed", "OutcomeUnknown", False)
    assert not outcome.again
    assert "began or ended a transaction itself" in outcome.message
    assert await rows(target) == [1]
    if "guard" in options:
        assert await target.value("select count(*) from muster_guard.applied") == 0


@pytest.mark.parametrize("end", ["rollback", "rollback and chain", "abort; begin; select 1"])
async def test_a_script_that_rolls_back_by_itself_ends_as_unknown(target, end):
    outcome = await target.run(HIDDEN + end)

    assert told(outcome) == ("Failed", "OutcomeUnknown", False)
    assert await rows(target) == []


async def test_a_rehearsal_whose_script_commits_ends_as_unknown(target):
    task = target.task(overrides={"rollback": True})

    outcome = await target.run(HIDDEN + "commit; begin", task)

    assert told(outcome) == ("Failed", "OutcomeUnknown", False)


async def test_a_read_only_step_whose_script_commits_ends_as_unknown(target):
    script = "select 'a' -- one literal to the server\n'b'; commit; insert into t values (1)"

    outcome = await target.run(script, settings={"access": "readOnly"})

    assert told(outcome) == ("Failed", "OutcomeUnknown", False)


async def test_a_script_may_roll_back_to_its_own_savepoint(target):
    outcome = await target.run(
        "savepoint a; insert into t values (1); rollback to savepoint a; insert into t values (2)"
    )

    assert told(outcome) == ("Succeeded", None, False)
    assert await rows(target) == [2]


async def test_a_backslash_that_could_be_read_in_two_ways_is_not_sent(target):
    """With standard_conforming_strings off the literal ends earlier, and a COMMIT comes after it."""
    outcome = await target.run(
        "insert into t values (1); set local standard_conforming_strings = off;"
        " select '\\'' ; commit; --'"
    )

    assert told(outcome) == ("Failed", "StatementFailed", False)
    assert "standard_conforming_strings" in outcome.message
    assert await rows(target) == []
