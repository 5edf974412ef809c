"""What a target did and what the attempt says it did: the truth table, on a real server."""

import asyncio
from uuid import uuid4

import msgspec
import pytest

from tests.support.attempts import a_place, a_snare, a_step, now, renewed, until
from tests.support.tcp_proxy import line_to

pytestmark = [pytest.mark.deep, pytest.mark.targets]


@pytest.fixture
async def place(targets, tmp_path):
    async with a_place(targets, tmp_path) as made:
        await made.execute(
            f"set role {made.owner.name}; create table t (id int primary key, v text)"
        )
        yield made


def told(outcome):
    return outcome.lifecycle, outcome.reason, outcome.retry


async def rows(place):
    return [row["id"] for row in await place.fetch("select id from t order by id")]


async def test_every_statement_has_its_result(place):
    outcome = await place.run(
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
    assert await rows(place) == [1, 2]


async def test_a_start_that_is_refused_sends_nothing(place):
    async def refused():
        return False

    assert await place.run("insert into t values (1)", start=refused) is None
    assert await rows(place) == []


async def test_the_start_is_committed_before_the_first_word_is_sent(place):
    async def start():
        seen = await place.fetch(
            "select query from pg_stat_activity where application_name ~ '^muster .'"
        )
        assert seen == []
        return True

    assert (await place.run("select 1", start=start)).lifecycle == "Succeeded"


async def test_an_intent_that_is_refused_rolls_back(place):
    async def refused(xid):
        return False

    assert await place.run("insert into t values (1)", intend=refused) is None
    assert await rows(place) == []


async def test_an_intent_that_nobody_heard_of_rolls_back_and_is_tried_again(place):
    async def untold(xid):
        return None

    outcome = await place.run("insert into t values (1)", intend=untold)

    assert told(outcome) == ("Canceled", "HostStopped", False)
    assert outcome.again and outcome.phase == "commit"
    assert "nothing was committed" in outcome.message
    assert await rows(place) == []


async def test_the_intent_names_the_transaction_and_comes_before_commit(place):
    async def intend(xact):
        xid, _, timeline = xact.partition("@")
        assert await place.value("select txid_status($1::text::bigint)", xid) == "in progress"
        assert timeline.startswith("00000001/")
        assert await rows(place) == []
        return True

    outcome = await place.run("insert into t values (1)", intend=intend)

    assert outcome.lifecycle == "Succeeded"
    assert await rows(place) == [1]


async def test_what_wrote_nothing_has_no_intent(place):
    assert (await place.run("select 1; select 2")).lifecycle == "Succeeded"
    assert place.intended == []


async def test_an_error_undoes_the_whole_script(place):
    outcome = await place.run("insert into t values (1);\n  select 1/0; insert into t values (2)")

    assert told(outcome) == ("Failed", "StatementFailed", False)
    assert (outcome.sqlstate, outcome.message) == ("22012", "division by zero")
    assert outcome.statement_no == 1
    assert [each["tag"] for each in outcome.results] == ["INSERT 0 1"]
    assert await rows(place) == []


async def test_an_error_is_found_in_the_script_as_it_is_stored(place):
    script = "select 'ä', '$(job_name)', $(attempt);\n/* c */ select '$(job_name)' as a, $(attempt), missing from t"
    outcome = await place.run(script)

    assert outcome.sqlstate == "42703"
    assert script[outcome.position - 1 :].startswith("missing from t")
    assert "job_name" in outcome.message or "missing" in outcome.message


async def test_an_error_has_all_its_parts(place):
    outcome = await place.run(
        """do $$ begin
             raise exception 'no' using errcode = 'P0042', detail = 'because', hint = 'try again';
           end $$"""
    )

    assert told(outcome) == ("Failed", "StatementFailed", True)
    assert (outcome.sqlstate, outcome.message, outcome.detail) == ("P0042", "no", "because")
    assert outcome.hint == "try again"
    assert outcome.context.startswith("PL/pgSQL function inline_code_block line 2")


async def test_equal_causes_have_equal_fingerprints(place):
    one, two, other = [
        await place.run(script)
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
async def test_what_is_tried_again(place, script, sqlstate, retry):
    outcome = await place.run(script)

    assert told(outcome) == ("Failed", "StatementFailed", retry)
    assert outcome.sqlstate == sqlstate


async def test_a_step_may_want_more_to_be_tried_again(place):
    by_state = await place.run("select * from nowhere", retryOn=["42P01"])
    by_class = await place.run("select * from nowhere", retryOn=["22", "42"])
    other = await place.run("select * from nowhere", retryOn=["42P02"])

    assert (by_state.retry, by_class.retry, other.retry) == (True, True, False)


async def test_a_constraint_that_fails_at_commit_is_a_failure(place):
    await place.execute("alter table t add unique (v) deferrable initially deferred")

    outcome = await place.run("insert into t values (1, 'a'); insert into t values (2, 'a')")

    assert told(outcome) == ("Failed", "StatementFailed", False)
    assert (outcome.sqlstate, outcome.phase, outcome.statement_no) == ("23505", "commit", 2)
    assert await rows(place) == []


async def test_a_warning_changes_nothing(place):
    outcome = await place.run(
        "do $$ begin raise warning 'beware'; raise notice 'n' using hint = 'h'; end $$"
    )

    assert told(outcome) == ("Succeeded", None, False)
    assert [(each["severity"], each["message"]) for each in outcome.notices] == [
        ("WARNING", "beware"),
        ("NOTICE", "n"),
    ]
    assert outcome.notices[1]["hint"] == "h"


async def test_a_text_that_the_grammar_refuses_goes_whole(place):
    refused = "select 'a' -- one literal to the server\n'b' as c; insert into t values (1)"
    outcome = await place.run(refused)
    wrong = await place.run(refused + "; select from from t")

    assert told(outcome) == ("Succeeded", None, False)
    assert "as a whole" in outcome.notices[0]["message"]
    assert [each["tag"] for each in outcome.results] == ["SELECT 1", "INSERT 0 1"]
    assert outcome.results[0]["rows"] == [["ab"]]
    assert await rows(place) == [1]
    assert (wrong.lifecycle, wrong.sqlstate, wrong.notices) == ("Failed", "42601", [])
    assert (refused + "; select from from t")[wrong.position - 1 :] == "from t"


async def test_syntax_that_only_older_servers_know_is_theirs_to_judge(place):
    outcome = await place.run("insert into t values (1); select 4 !")

    if place.contacts[0].server_version < 140_000:
        assert told(outcome) == ("Succeeded", None, False)
        assert outcome.results[-1]["rows"] == [["24"]]
    else:
        assert (outcome.lifecycle, outcome.sqlstate) == ("Failed", "42601")


async def test_a_rehearsal_is_rolled_back(place):
    outcome = await place.run(
        "insert into t values (1); select count(*) from t", place.task(overrides={"rollback": True})
    )

    assert told(outcome) == ("Succeeded", None, False)
    assert outcome.results[1]["rows"] == [[1]]
    assert [each["tag"] for each in outcome.results] == ["INSERT 0 1", "SELECT 1"]
    assert await rows(place) == []
    assert place.intended == []


async def test_a_second_attempt_does_not_run_beside_the_first(place):
    task, step = place.task(), a_step("insert into t values (1); select pg_sleep(30)")
    first = asyncio.create_task(place.run(step, task))
    await until(
        lambda: place.value(
            "select count(*) from pg_stat_activity where query ~ 'pg_sleep.30'  and state = 'active' and pid <> pg_backend_pid()"
        )
    )

    second = await place.run(step, renewed(task))
    other = await place.run("select 1", place.task(job_execution_id=task.job_execution_id))

    assert told(second) == ("Failed", "LockTimeout", True)
    assert second.message == "An earlier attempt still runs at the target."
    assert other.lifecycle == "Succeeded"
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_breaking_off_ends_the_backend(place):
    task = place.task()
    running = asyncio.create_task(place.run("insert into t values (1); select pg_sleep(60)", task))
    name = f"muster {task.invocation_id.hex}"
    seen = "select count(*) from pg_stat_activity where application_name = $1 and wait_event = 'PgSleep'"
    await until(lambda: place.value(seen, name))

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    await until(gone(place, name))
    assert await rows(place) == []


def gone(place, name):
    async def check():
        return not await place.value(
            "select count(*) from pg_stat_activity where application_name = $1", name
        )

    return check


async def test_a_backend_that_is_ended_before_commit_is_tried_again(place):
    await place.execute(f"grant pg_signal_backend to {place.owner.name}")
    outcome = await place.run(
        "insert into t values (1); select pg_terminate_backend(pg_backend_pid())"
    )

    assert told(outcome) == ("Failed", "ConnectionLost", True)
    assert outcome.sqlstate == "57P01"
    assert outcome.statement_no == 1
    assert await rows(place) == []


async def test_a_backend_whose_host_is_gone_does_not_go_on(place):
    """Without a word, as when the host's machine is gone: only the server can notice.

    Where it can't, the time that the step had left is the end.
    """
    within = 60 if await place.watches_client() else 5
    async with line_to(place.targets.port) as line:
        running, name = await asleep(place, line, within)
        line.cut()
        outcome = await running

    assert told(outcome) == ("Failed", "ConnectionLost", True)
    await until(gone(place, name))
    assert await rows(place) == []


async def test_a_backend_that_notices_nothing_is_told_when_the_line_breaks(place, monkeypatch):
    monkeypatch.setattr("engine.pool.dialer.WATCHES_CLIENT", 10**9)
    async with line_to(place.targets.port) as line:
        running, name = await asleep(place, line)
        line.cut()
        line.mend()
        outcome = await running
        await until(gone(place, name))

    assert told(outcome) == ("Failed", "ConnectionLost", True)
    assert await rows(place) == []


async def asleep(place, line, within=60):
    """An attempt behind the line whose backend sleeps for a minute, and what that is called."""
    server, task = msgspec.structs.replace(place.server, port=line.port), place.task()
    script = "select pg_sleep(60); insert into t values (1)"
    running = asyncio.create_task(place.run(script, task, server=server, within=within))
    name = f"muster {task.invocation_id.hex}"
    seen = "select count(*) from pg_stat_activity where application_name = $1 and wait_event = 'PgSleep'"
    await until(lambda: place.value(seen, name))
    return running, name


@pytest.mark.parametrize("word", [b"begin;", b"insert into"])
async def test_a_line_that_breaks_before_commit_is_tried_again(place, word):
    async with a_snare(place, word=word, mends=False) as server:
        outcome = await place.run("insert into t values (1)", server=server)

    assert told(outcome) == ("Failed", "ConnectionLost", True)
    assert await rows(place) == []


async def test_a_commit_that_never_arrived_is_known_to_be_none(place):
    async with a_snare(place) as server:
        outcome = await place.run("insert into t values (1)", server=server)

    assert told(outcome) == ("Failed", "ConnectionLost", True)
    assert outcome.phase == "commit"
    assert await rows(place) == []


async def test_a_commit_whose_answer_was_lost_is_known_to_have_won(place):
    async with a_snare(place, after=True) as server:
        outcome = await place.run("insert into t values (1)", server=server)

    assert told(outcome) == ("Succeeded", None, False)
    assert await rows(place) == [1]


async def test_a_lost_commit_of_nothing_is_tried_again(place):
    async with a_snare(place, after=True) as server:
        outcome = await place.run("select 1", server=server)

    assert told(outcome) == ("Failed", "ConnectionLost", True)


@pytest.mark.parametrize(
    ("options", "retry"), [({}, False), ({"idempotent": True}, True), ({"guard": True}, True)]
)
async def test_a_lost_commit_that_nobody_can_tell_of_is_unknown(place, options, retry):
    async with a_snare(place, after=True, mends=False) as server:
        outcome = await place.run("insert into t values (1)", server=server, within=1, **options)

    assert told(outcome) == ("Failed", "OutcomeUnknown", retry)
    assert await rows(place) == [1]


async def test_after_a_failover_an_id_tells_nothing(place):
    async with a_snare(place, after=True) as server:
        session = await place.sessions.lend(
            server, place.database, place.who(), uuid4(), direct=False, deadline=now() + 10
        )
        assert session.timeline == "00000001"
        session.timeline = "0000000A"
        place.sessions.give_back(session)
        await until(idle(place))
        outcome = await place.run("insert into t values (1)", server=server)

    assert told(outcome) == ("Failed", "OutcomeUnknown", False)


def idle(place):
    async def check():
        return not any(pool.returning for pool in place.sessions._server_pools.values())

    return check


async def test_a_commit_in_progress_is_waited_for(place):
    await place.execute(
        """create function slow() returns trigger language plpgsql as
             $$ begin perform pg_sleep(60); return null; end $$;
           create constraint trigger late after insert on t deferrable initially deferred
             for each row execute function slow()"""
    )
    async with a_snare(place, after=True) as server:
        running = asyncio.create_task(place.run("insert into t values (1)", server=server))
        seen = "select pid from pg_stat_activity where wait_event = 'PgSleep' and usename = $1"
        pid = await until(lambda: place.value(seen, place.owner.name))
        await place.execute(f"select pg_terminate_backend({pid})")
        outcome = await running

    assert told(outcome) == ("Failed", "ConnectionLost", True)
    assert await rows(place) == []


async def test_a_server_that_could_not_be_listed_is_not_visited(place):
    task = place.task(database_name=None, target_type="SqlServer")

    outcome = await place.run("insert into t values (1)", task)

    assert told(outcome) == ("Failed", "ServerUnreachable", False)
    assert "start a new run" in outcome.message
    assert place.started == [task.invocation_id]


@pytest.mark.parametrize(
    ("why", "reason", "said"),
    [
        ("TargetTimeout: It did not answer.", "ServerUnreachable", "start a new run"),
        ("InvalidTargetQuery: A row names no database.", "TargetsUnresolved", "names no database"),
    ],
)
async def test_why_a_server_could_not_be_listed_is_told(place, why, reason, said):
    labels = {"muster.unlisted": why}
    task = place.task(database_name=None, target_type="SqlServer", labels=labels)

    outcome = await place.run("insert into t values (1)", task)

    assert told(outcome) == ("Failed", reason, False)
    assert said in outcome.message
    assert outcome.fingerprint == (reason if reason == "ServerUnreachable" else why.split(":")[0])


async def test_why_a_database_did_not_tell_its_schemas_is_told_and_nothing_runs_there(place):
    labels = {"muster.unlisted": "ConnectNotGranted: Let somebody grant it."}

    outcome = await place.run("insert into t values (1)", place.task(labels=labels))

    assert told(outcome) == ("Failed", "TargetsUnresolved", False)
    assert outcome.message == (
        "The database could not be listed when the step began, so its schemas were not visited."
        " ConnectNotGranted: Let somebody grant it."
    )
    assert outcome.fingerprint == "ConnectNotGranted"
    assert await rows(place) == []


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
    place, end, options
):
    outcome = await place.run(HIDDEN + end, **options)

    assert told(outcome) == ("Failed", "OutcomeUnknown", False)
    assert not outcome.again
    assert "began or ended a transaction itself" in outcome.message
    assert await rows(place) == [1]
    if "guard" in options:
        assert await place.value("select count(*) from muster_guard.applied") == 0


@pytest.mark.parametrize("end", ["rollback", "rollback and chain", "abort; begin; select 1"])
async def test_a_script_that_rolls_back_by_itself_ends_as_unknown(place, end):
    outcome = await place.run(HIDDEN + end)

    assert told(outcome) == ("Failed", "OutcomeUnknown", False)
    assert await rows(place) == []


async def test_a_rehearsal_whose_script_commits_ends_as_unknown(place):
    task = place.task(overrides={"rollback": True})

    outcome = await place.run(HIDDEN + "commit; begin", task)

    assert told(outcome) == ("Failed", "OutcomeUnknown", False)


async def test_a_read_only_step_whose_script_commits_ends_as_unknown(place):
    script = "select 'a' -- one literal to the server\n'b'; commit; insert into t values (1)"

    outcome = await place.run(script, settings={"access": "readOnly"})

    assert told(outcome) == ("Failed", "OutcomeUnknown", False)


async def test_a_script_may_roll_back_to_its_own_savepoint(place):
    outcome = await place.run(
        "savepoint a; insert into t values (1); rollback to savepoint a; insert into t values (2)"
    )

    assert told(outcome) == ("Succeeded", None, False)
    assert await rows(place) == [2]


async def test_a_backslash_that_could_be_read_in_two_ways_is_not_sent(place):
    """With standard_conforming_strings off the literal ends earlier, and a COMMIT comes after it."""
    outcome = await place.run(
        "insert into t values (1); set local standard_conforming_strings = off;"
        " select '\\'' ; commit; --'"
    )

    assert told(outcome) == ("Failed", "StatementFailed", False)
    assert "standard_conforming_strings" in outcome.message
    assert await rows(place) == []
