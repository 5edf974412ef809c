import pytest
from hypothesis import given

from muster.core.script import LARGEST, MOST_PROBLEMS, check, split
from muster.core.sqltext import TRIVIA, tokens
from tests.support import sqltexts


def texts(text):
    return [statement.text for statement in split(text).statements]


def codes(text, transaction="auto"):
    return [problem.code for problem in check(text, transaction)]


def gaps(script):
    """What stands between the statements, and behind the last."""
    at = 0
    for statement in script.statements:
        yield script.text[at : statement.start]
        at = statement.end
    yield script.text[at:]


def test_a_script_is_cut_at_its_statements():
    text = "/*+ hint */ select ';' ;; -- é\n create function f() returns int begin atomic select 1; end;\n"

    assert texts(text) == [
        "/*+ hint */ select ';'",
        "-- é\n create function f() returns int begin atomic select 1; end",
    ]


@given(sqltexts.SCRIPT)
def test_the_grammar_finds_every_statement_and_nothing_is_dropped(text):
    script = split(text)

    assert script.parsed
    assert_nothing_is_dropped(script)


@given(sqltexts.NOISE | sqltexts.ANY)
def test_nothing_is_dropped_from_what_the_grammar_refuses(text):
    assert_nothing_is_dropped(split(text))


def assert_nothing_is_dropped(script):
    joined = "".join(
        gap + text
        for gap, text in zip(gaps(script), [*(s.text for s in script.statements), ""], strict=True)
    )
    assert joined == script.text
    for gap in gaps(script):
        assert all(token.kind in TRIVIA or token.text == ";" for token in tokens(gap))


def test_a_refused_text_says_why_and_where_in_characters():
    script = split("select 'éé' form t x; commit")

    assert (script.parsed, script.position) == (False, 17)
    assert script.refusal == 'syntax error at or near "t"'
    assert [statement.control for statement in script.statements] == [False, True]


def test_where_the_library_reads_quotes_unlike_the_server_nothing_is_cut_through():
    text = "do language E'plpgsql'\n--\n'b\\'; select 2 --'; commit"

    script = split(text)

    assert script.refusal == "quotes that can be read in two ways"
    assert [s.text for s in script.statements] == [text.removesuffix("; commit"), "commit"]


@pytest.mark.parametrize(
    "text",
    [
        "/*" * 30_000,
        "select 1 " + "/*" * 33 + "*/" * 33,
        "select " + "+" * 60_000 + "1",
        "select " + "+-" * 32 + "1",
        "select E'a' --\n'\\'" + "/*" * 30_000 + "'",
    ],
)
def test_what_would_cost_the_grammar_its_square_is_refused_before(text):
    refused = {"ScriptTooComplex", "LiteralAcrossComment"}

    assert refused.intersection(codes(text))
    assert not split(text).parsed


@pytest.mark.parametrize(
    "text",
    [
        "select 1 " + "/*" * 32 + "*/" * 32,
        "select " + "- " * 500 + "1",
        "/**********" + "*" * 200 + "/ select 1 -- " + "+" * 200,
        "select '" + "/*" * 100 + "', '" + "+" * 100 + "'",
    ],
)
def test_deep_comments_and_long_operators_have_their_room(text):
    assert check(text) == []
    assert split(text).parsed


def test_a_deep_expression_is_no_danger():
    deep = "select " + "||".join(["'a'"] * 50_000)

    assert texts(f"{deep}; select 1")[1:] == ["select 1"]


def test_variables_may_stand_anywhere():
    text = "select $(attempt) where x = $(job_id) limit $(target_label.n); select '$(job_name)'"

    assert split(text).parsed
    assert texts(text)[0] == "select $(attempt) where x = $(job_id) limit $(target_label.n)"


@pytest.mark.parametrize(
    "text",
    [
        "vacuum",
        "VACUUM (analyze) t",
        "create database d",
        'drop database if exists "d"',
        "create tablespace s location '/x'",
        "drop tablespace s",
        "create index concurrently on t (a)",
        "create unique /* x */ index concurrently if not exists i on t (a)",
        "drop index concurrently i",
        "reindex database d",
        "reindex system d",
        "reindex schema s",
        "reindex (verbose) database d",
        "reindex table concurrently t",
        "reindex (concurrently) table t",
        "reindex (verbose, concurrently true) table t",
        "cluster",
        "cluster verbose",
        "cluster (verbose)",
        "alter system set work_mem = '1MB'",
        "alter database d set tablespace s",
        'alter table only "a".b detach partition c.d concurrently',
        "create subscription s connection 'x' publication p",
        "drop subscription s",
        "alter subscription s refresh publication",
        "alter subscription s add publication p",
        "alter subscription s set (failover = true)",
        "discard all",
        "commit prepared 'x'",
    ],
)
def test_some_statements_run_alone(text):
    script = split(text)

    assert script.parsed
    assert script.autocommit
    assert check(text) == []
    assert codes(f"select 1; {text}") == ["NotTransactional"]
    assert check(f"select 1; {text}", "none") == []


@pytest.mark.parametrize(
    "text",
    [
        "analyze",
        "create index concurrent on t (a)",
        "refresh materialized view concurrently v",
        "reindex table t",
        "reindex (concurrently false) table t",
        "reindex index concurrently_i",
        "cluster t",
        "cluster (verbose) t",
        "alter database d set default_tablespace = s",
        "alter table t detach partition p finalize",
        "create subscription s connection 'x' publication p with (connect = false)",
        "alter subscription s set publication p with (refresh = false)",
        "alter subscription s disable",
        "alter type t add value 'x'",
        "discard plans",
        'select "vacuum" from vacuum',
        "savepoint a",
        "rollback to a",
        "rollback work to savepoint a",
        "release a",
        "copy t from '/x'",
        "copy (select 1 from stdin) to program 'x'",
        "prepare p as select 1",
    ],
)
def test_others_share_a_transaction(text):
    script = split(text)

    assert script.parsed
    assert not script.autocommit
    assert check(f"select 1; {text}") == []


@pytest.mark.parametrize(
    "text",
    [
        "begin",
        "start transaction read only",
        "commit",
        "commit and chain",
        "end",
        "rollback",
        "rollback work",
        "abort",
        "prepare transaction 'x'",
    ],
)
@pytest.mark.parametrize("transaction", ["auto", "none"])
@pytest.mark.parametrize("around", ["{};", "select 1; {}", "new syntax; {}"])
def test_transactions_are_ours(text, transaction, around):
    assert "TransactionControl" in codes(around.format(text), transaction)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "ScriptEmpty"),
        (" ;; -- x\n/* y */;", "ScriptEmpty"),
        ("select 1\0", "ScriptHasNul"),
        ("select 1\nGO", "BatchSeparator"),
        ("select 1\n  go 5 \r\nselect 2", "BatchSeparator"),
        ("\\d t", "PsqlCommand"),
        ("select 1 \\gexec", "PsqlCommand"),
        ("copy t from stdin", "CopyNotSupported"),
        ("copy s.t (a, b) from stdin with (format csv)", "CopyNotSupported"),
        ("copy (select 1 from x) to stdout", "CopyNotSupported"),
        ("select '$(nothing)'", "UnknownScriptVariable"),
        ("select $(job_name)", "InvalidScriptVariable"),
        ("x" * (LARGEST + 1), "ScriptTooLarge"),
        ("é" * (LARGEST // 2 + 1), "ScriptTooLarge"),
    ],
)
def test_each_problem_has_its_code(text, code):
    assert codes(text) == [code]


@pytest.mark.parametrize(
    "text",
    [
        "select '\nGO\n\\d\n'",
        "select 1 /*\nGO\n\\d\n*/",
        "do $$\nGO\n\\d\n$$",
        "select go\nfrom t",
        "select E'\\\\'",
        "select some new syntax that no grammar knows",
        "vacuum (new_option) t",
        "select '$(job_name)', $(attempt) -- $(nothing)",
    ],
)
def test_what_only_looks_wrong_is_no_problem(text):
    assert check(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "do 'begin perform ''$(target_database_name)''; end'",
        "do language plpgsql E'begin perform $(target_label.x); end'",
        "create function f() returns text language sql as 'select ''$(job_name)'' '",
        "create or replace procedure f(a text default 'x') as '\nbegin $(job_name) end' language plpgsql",
    ],
)
def test_a_text_variable_in_code_that_stands_in_a_literal_is_refused(text):
    assert codes(text) == ["InvalidScriptVariable"]


@pytest.mark.parametrize(
    "text",
    [
        "do 'begin perform $(attempt), ''$(job_id)''; end'",
        "create function f(a text default '$(job_name)') returns text language sql as 'select 1'",
        "create view v as select '$(job_name)' as a",
    ],
)
def test_other_variables_and_literals_beside_code_are_no_problem(text):
    assert check(text) == []


def test_all_problems_come_at_once_in_the_order_of_the_text():
    text = "vacuum;\nselect '$(x)';\ncommit;\nGO\n\\d\n"

    found = check(text)

    assert [problem.code for problem in found] == [
        "NotTransactional",
        "UnknownScriptVariable",
        "TransactionControl",
        "BatchSeparator",
        "PsqlCommand",
    ]
    assert [problem.message.split(":")[0] for problem in found] == [
        "Line 1, column 1",
        "Line 2, column 9",
        "Line 3, column 1",
        "Line 4, column 1",
        "Line 5, column 1",
    ]


def test_problems_without_end_are_cut():
    assert len(check("commit;" * 1000)) == MOST_PROBLEMS


def test_a_refused_text_of_several_statements_needs_a_transaction():
    assert codes("select 1; new syntax") == []
    assert codes("select 1; new syntax", "none") == ["ScriptNotSplit"]
    assert codes("new syntax", "none") == []


@pytest.mark.parametrize("word", ["begin", "start", "commit", "end", "rollback", "abort"])
@pytest.mark.parametrize(
    "around",
    [
        "create function f(begin int) returns int language sql as 'select 1' new; {} work; select 1",
        "create procedure f(case int) new; /* x */ {}",
        "new syntax (select 1; {})",
    ],
)
@pytest.mark.parametrize("transaction", ["auto", "none"])
def test_in_a_text_that_the_grammar_refuses_no_block_hides_transaction_control(
    word, around, transaction
):
    assert "TransactionControl" in codes(around.format(word), transaction)


def test_prepare_transaction_is_found_in_a_text_that_the_grammar_refuses():
    hidden = "create function f(begin int) new; {}; select 1"

    assert codes(hidden.format("prepare /* x */ transaction 'x'")) == ["TransactionControl"]
    assert codes(hidden.format("prepare p as select 1")) == []


@pytest.mark.parametrize(
    "text",
    [
        "select 'a' -- x\n'b'; select 1",
        "select E'a'\n--\n'b\\'; select 2 --'",
        "do language 'plpgsql' --\n'begin end'",
        "select 'a'\n -- x\n -- y\n 'b'",
    ],
)
@pytest.mark.parametrize("transaction", ["auto", "none"])
def test_a_literal_that_continues_after_a_comment_is_refused(text, transaction):
    assert "LiteralAcrossComment" in codes(text, transaction)


@pytest.mark.parametrize(
    "text", ["select 'a'\n'b'", "select 'a', -- x\n'b'", "select 'a' /* x */\n, 'b'"]
)
def test_other_literals_beside_comments_and_line_breaks_are_no_problem(text):
    assert check(text) == []


def test_a_refused_routine_is_one_statement():
    text = "create or replace function f() begin atomic select case when a then b end; new one; end"

    assert texts(f"{text}; select (new; syntax)); commit") == [
        text,
        "select (new; syntax))",
        "commit",
    ]


def test_a_refused_statement_that_runs_alone_still_does():
    assert split("vacuum (some new option, x y z w) t u").autocommit


@given(sqltexts.NOISE)
def test_any_text_can_be_checked(text):
    assert all(problem.message and problem.advice for problem in check(text))


@pytest.mark.parametrize(
    "text",
    [
        "set search_path = x", "set session statement_timeout = 0", "SET ROLE x", "reset all", "listen c",
        "create temp table t ()", "create local temporary table t ()", "prepare p as select 1", "load 'x'",
        "declare c cursor with hold for select 1", "select pg_advisory_lock(1)",
        "select pg_try_advisory_lock_shared(1)", "set session authorization x",
    ],
)  # fmt: skip
def test_some_statements_change_their_session_for_good(text):
    assert split(text).statements[0].lasting


@pytest.mark.parametrize(
    "text",
    [
        "set local search_path = x", "set constraints all deferred", "set transaction read only", "select 1",
        "create temp table t () on commit drop", "select pg_advisory_xact_lock(1)", "update t set a = 1",
        "prepare transaction 'x'", "select 'set'",
    ],
)  # fmt: skip
def test_others_leave_it_as_it_was(text):
    assert not split(text).statements[0].lasting
