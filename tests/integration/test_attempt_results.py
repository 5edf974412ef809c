"""What is kept of a target's answers: within bounds, whatever it sends."""

import tracemalloc

import msgspec
import pytest

from engine.pgwire import results
from tests.support.attempts import a_target_database

pytestmark = [pytest.mark.newest, pytest.mark.deep, pytest.mark.targets]

MIB = 1024 * 1024


@pytest.fixture
async def target(targets, tmp_path):
    async with a_target_database(targets, tmp_path) as made:
        yield made


async def test_a_long_result_is_cut_and_said_to_be(target):
    outcome = await target.run("select n from generate_series(1, 1500) n")

    [found] = outcome.results
    assert outcome.lifecycle == "Succeeded"
    assert (len(found["rows"]), found["rowCount"], found["truncated"]) == (1000, 1500, True)
    assert found["rows"][-1] == [1000]
    assert outcome.rows == 1500


async def test_a_wide_result_is_cut_and_said_to_be(target):
    outcome = await target.run("select repeat('x', 100000) from generate_series(1, 50)")

    [found] = outcome.results
    assert (found["rowCount"], found["truncated"]) == (50, True)
    assert len(msgspec.json.encode(found)) <= MIB
    assert len(found["rows"]) == 10
    assert outcome.bytes > 5_000_000


async def test_an_attempt_keeps_four_mebibytes_in_all(target):
    outcome = await target.run("select repeat('x', 1000) from generate_series(1, 900);" * 8)

    kept = [len(found["rows"]) for found in outcome.results]
    assert kept[0] == 900 and kept[-1] == 0
    assert [found["truncated"] for found in outcome.results] == [count < 900 for count in kept]
    assert len(msgspec.json.encode(outcome.results)) < 5 * MIB
    assert outcome.rows == 7200


async def test_equal_results_have_equal_hashes_beyond_what_is_kept(target):
    one = await target.run("select n from generate_series(1, 1500) n")
    same = await target.run("select generate_series(1, 1500) as n")
    other = await target.run(
        "select case n when 1500 then 0 else n end as n from generate_series(1, 1500) n"
    )
    named = await target.run("select n as m from generate_series(1, 1500) n")

    assert one.result_hash == same.result_hash
    assert len({one.result_hash, other.result_hash, named.result_hash}) == 3


async def test_a_flood_of_rows_ends_the_attempt(target):
    outcome = await target.run("create table kept (); select generate_series(1, 100000000) as n")

    assert (outcome.lifecycle, outcome.reason, outcome.retry) == ("Failed", "ResultTooLarge", False)
    assert outcome.statement_no == 1
    assert await target.value("select to_regclass('kept') is null")
    assert outcome.bytes < 20 * MIB


async def test_a_flood_of_bytes_ends_the_attempt_with_bounded_memory(target):
    tracemalloc.start()
    outcome = await target.run("select repeat('x', 1000000) from generate_series(1, 100000)")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (outcome.lifecycle, outcome.reason) == ("Failed", "ResultTooLarge")
    assert results.MAX_BYTES < outcome.bytes < results.MAX_BYTES + 4 * MIB
    assert peak < 16 * MIB


async def test_most_that_can_be_received_is_received(target):
    outcome = await target.run("select n from generate_series(1, 100000) n")

    assert outcome.lifecycle == "Succeeded"
    assert outcome.results[0]["rowCount"] == 100_000


async def test_values_are_what_json_can_say(target):
    outcome = await target.run(
        """create type mood as enum ('fine');
           select true, 9223372036854775807, 1.5::float8, 'NaN'::float8, 'infinity'::float4, 1e300::float8,
                  12345678901234567890.123456789, '{"a": [1, null]}'::jsonb, E'\\\\x00ff'::bytea,
                  array[1, 2], 'fine'::mood, null::int, row(1, 'x'), '2025-01-01'::date, json '"\\u0000"',
                  -5::int2, '' as empty"""
    )

    [row] = outcome.results[1]["rows"]
    assert row == [
        True, 9223372036854775807, 1.5, "NaN", "Infinity", 1e300, "12345678901234567890.123456789",
        '{"a": [1, null]}', "\\x00ff", "{1,2}", "fine", None, "(1,x)", "2025-01-01", '"\\u0000"', -5, "",
    ]  # fmt: skip
    types = [column["type"] for column in outcome.results[1]["columns"]]
    assert types[:3] == ["boolean", "bigint", "double precision"]
    assert types[9:13] == ["integer[]", "mood", "integer", "record"]
    assert b"\\u0000" not in msgspec.json.encode(outcome).replace(b"\\\\u0000", b"")


async def test_types_are_named_after_a_failure_too(target):
    await target.execute("create type mood as enum ('fine')")
    outcome = await target.run("select 'fine'::mood; select 1/0")

    assert outcome.results[0]["columns"][0]["type"] == "mood"


async def test_columns_of_the_same_name_and_none_at_all(target):
    outcome = await target.run("select 1 as a, 2 as a; select; select 1 where false")

    same, none, empty = outcome.results
    assert (same["rows"], [each["name"] for each in same["columns"]]) == ([[1, 2]], ["a", "a"])
    assert (none["rows"], none["columns"], none["rowCount"]) == ([[]], [], 1)
    assert (empty["rows"], empty["rowCount"]) == ([], 0)


async def test_rows_larger_than_a_packet_are_whole(target):
    outcome = await target.run("select repeat('ä', 200000), 'end'; select 'next'")

    assert outcome.results[0]["rows"] == [["ä" * 200_000, "end"]]
    assert outcome.results[1]["rows"] == [["next"]]


async def test_notices_are_bounded(target):
    many = await target.run(
        "do $$ begin for i in 1..500 loop raise notice 'n %', i; end loop; end $$"
    )
    large = await target.run(
        "do $$ begin for i in 1..50 loop raise notice '%', repeat('x', 5000); end loop; end $$"
    )

    assert many.lifecycle == large.lifecycle == "Succeeded"
    assert len(many.notices) == 101
    assert many.notices[0]["message"] == "n 1"
    assert many.notices[-1]["message"] == "400 more not kept."
    assert sum(len(each["message"]) for each in large.notices) <= 65 * 1024
    assert large.notices[-1]["message"].endswith("more not kept.")


async def test_a_thousand_statements_keep_a_thousand_tags(target):
    outcome = await target.run("set local a.b = 1;" * 1200)

    assert outcome.lifecycle == "Succeeded"
    assert (len(outcome.results), outcome.statement_no) == (1000, 1200)


async def test_copy_over_the_wire_has_nobody_at_the_other_end(target):
    # Refused when a step is written, as far as its statements can be told.
    await target.execute(f"set role {target.owner.name}; create table t (id int)")
    comes = await target.run("copy t from stdin")
    goes = await target.run("insert into t values (1); copy t to stdout")

    assert (comes.lifecycle, comes.reason, comes.retry) == ("Failed", "StatementFailed", False)
    assert "COPY" in comes.message
    assert goes.results[1]["tag"] == "COPY 1"
    assert goes.rows_affected == 1, "what it inserted; the copied row was read"
    assert (await target.run("copy (select 1) to stdout")).rows_affected is None


async def test_rows_of_changes_that_were_undone_are_not_reported(target):
    await target.execute(
        f"set role {target.owner.name}; create table t as select generate_series(1, 10)"
    )
    fails, verify = "delete from t; select 1/0", {"sql": "select false", "expect": "true"}

    assert (await target.run(fails)).rows_affected is None
    rolled_back = await target.run("delete from t", target.task(overrides={"rollback": True}))
    assert (rolled_back.lifecycle, rolled_back.rows_affected) == ("Succeeded", None)
    assert await target.value("select count(*) from t") == 10

    assert (await target.run("update t set generate_series = 1; commit")).rows_affected == 10, (
        "it may be committed"
    )
    assert (await target.run("insert into t values (1)", verify=verify)).rows_affected == 1
    assert (await target.run(fails, transaction="none")).rows_affected == 11, "it stays"
    assert await target.value("select count(*) from t") == 0


async def test_a_report_has_the_words_of_the_control_database(target):
    outcome = await target.run("select 1/0")

    assert set(msgspec.to_builtins(outcome)) == {
        "lifecycle", "reason", "sqlstate", "message", "fingerprint", "bytes", "timings",
        "last_message", "phase",
    }  # fmt: skip


async def test_who_asks_for_fewer_rows_gets_fewer(target):
    few = target.task(overrides={"maxRows": 2})

    outcome = await target.run("select generate_series(1, 3) as n", few)

    (told,) = outcome.results
    assert (told["rows"], told["rowCount"], told["truncated"]) == ([[1], [2]], 3, True)
