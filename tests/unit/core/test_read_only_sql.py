"""Which statements only read, as far as their words tell."""

import pytest

from muster.core.read_only_sql import only_reads
from muster.core.sqltext import tokens


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "SELECT COUNT(*) FROM T",
        "select count (*) from t",
        "select count/* all */(*) from t",
        "(select 1)",
        "((select 1) union (select 2))",
        "values (1), (2)",
        "table t",
        "with a as (select 1 as n), b as materialized (select n from a) select sum(n) from b",
        "with recursive a as (select 1) select * from a",
        "select max(n) filter (where n > 0) over (partition by id) from t",
        "select * from t join u using (id) where id in (1, 2) and exists (select from u)",
        "select n::numeric(10, 2), x::varchar(3), cast(x as text), array(select 1), row(1) from t",
        "select coalesce(nullif(lower(name), ''), 'none') from t",
        "select now() - interval '1 day', (1 + 2) * 3, array[(1)]",
        "select '$(target_schema_name)', E'$(job_name)', $(attempt)",
        "select * from $(target_schema_name).t",
        'select "$(target_label.column)" from t',
    ],
)
def test_a_query_of_known_words_only_reads(text):
    assert only_reads(tokens(text))


@pytest.mark.parametrize(
    "text",
    [
        "select 'for update', E'insert into t', $$delete from t$$, U&'into'",
        'select "insert", "for" from "update"',
        "select 'nextval(1)', $x$ pg_sleep(1) $x$",
        "select 1 -- for update\n",
        "select /* into t /* insert */ */ 1",
        "-- insert into t\nselect 1",
    ],
)
def test_words_in_quotes_and_comments_do_not_count(text):
    assert only_reads(tokens(text))


@pytest.mark.parametrize(
    "text",
    [
        "select * from t for update",
        "select * from t for no key update skip locked",
        "select * from t FOR/**/SHARE",
        "table t for key share",
        "select * into u from t",
        "select * -- all\ninto u from t",
        "with a as (insert into t values (1) returning n) select n from a",
        "with a as (update t set n = 1 returning n) select n from a",
        "with a as (delete from t returning n) select n from a",
        "with a as (merge into t using u on true when matched then do nothing returning 1) table a",
        "with a as (select 1) insert into t select * from a",
        "select 1; delete from t",
    ],
)
def test_a_word_that_writes_or_locks_counts_wherever_it_stands(text):
    assert not only_reads(tokens(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "-- select 1",
        "/* select 1 */",
        "(",
        "'select' 1",
        '"select" 1',
        "$(select)",
        "insert into t values (1)",
        "update t set n = 1",
        "delete from t",
        "create table t ()",
        "explain select 1",
        "explain analyze select 1",
        "copy t to stdout",
        "call p()",
        "do $$ begin end $$",
        "refresh materialized view v",
        "set search_path = a",
        "show search_path",
        "begin",
    ],
)
def test_whatever_is_no_query_might_write(text):
    assert not only_reads(tokens(text))


@pytest.mark.parametrize(
    "text",
    [
        "select mine(1)",
        "select 1 from t where mine(n)",
        "values (mine(1))",
        "select * from mine(1)",
        "select count(mine(n)) from t",
        "select nextval('s')",
        "select setval('s', 1)",
        "select pg_sleep(1)",
        "select pg_advisory_lock(1)",
        "select pg_notify('a', 'b')",
        "select current_setting('transaction_read_only')",
        "select set_config('a.b', 'c', true)",
        "select txid_current()",
        "select lo_creat(1)",
        "select random()",
    ],
)
def test_a_function_that_is_not_known_might_write(text):
    assert not only_reads(tokens(text))


@pytest.mark.parametrize(
    "text",
    [
        "select mine.count(n) from t",
        "select pg_catalog.lower('A')",
        "select mine . /* here */ lower ('A')",
        "select shop.mine.count(n) from t",
        'select "count"(n) from t',
        'select "mine"."count"(n) from t',
        'select mine."count"(n) from t',
        'select U&"count"(n) from t',
        "select $(target_label.function)(1)",
        "select mine.$(target_label.function)(1)",
        "select 1 operator(mine.+) 2",
    ],
)
def test_a_known_name_is_another_function_where_it_is_quoted_or_has_a_schema(text):
    assert not only_reads(tokens(text))
