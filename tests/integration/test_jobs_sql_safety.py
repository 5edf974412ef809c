"""Who may do what in schema `jobs`, and that neither names nor planted objects can change that."""

import secrets

import asyncpg
import pytest

from tests.integration.test_nodeagent_privileges import PUBLIC, UNCOMMENTED, UNSAFE
from tests.support.definitions import SERVERS, a_definer, a_step, some_steps
from tests.support.control_db import installed

VIEWS = {
    "jobs",
    "job_versions",
    "jobsteps",
    "jobstep_versions",
    "target_groups",
    "target_group_members",
}
OPERATORS = {
    "sp_start_job",
    "sp_stop_job",
    "sp_stop_step",
    "sp_stop_target",
    "sp_resume_execution",
    "sp_abort_execution",
    "sp_rerun_execution",
    "sp_retry_target",
    "sp_pause",
    "sp_resume",
}
INTERNAL = """
select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'jobs_internal' and c.relkind in ('r', 'p', 'v')
"""
MAY_READ = """
select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'jobs' and has_table_privilege($1, c.oid, 'select')
"""
MAY_WRITE = """
select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname in ('jobs', 'jobs_internal')
   and case when c.relkind = 'S' then has_sequence_privilege($1, c.oid, 'usage, update')
            when c.relkind in ('r', 'p', 'v')
            then has_table_privilege($1, c.oid, 'insert, update, delete, truncate, references, trigger') end
"""
MAY_CALL = """
select p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
 where n.nspname in ('jobs', 'jobs_internal') and has_function_privilege($1, p.oid, 'execute')
"""


@pytest.fixture
async def account(settings, db, targets):
    made = await installed(settings, db, targets)
    await made.execute(SERVERS)
    return made


@pytest.fixture
async def person(account):
    """A login of the server that nobody knows yet."""
    name, password = f"person_{secrets.token_hex(4)}", secrets.token_hex(16)
    await account.execute(f"create role {name} login password '{password}'")
    url = f"postgresql://{name}:{password}@{account.targets.host}:{account.targets.port}"
    connection = await asyncpg.connect(f"{url}/{account.database}")
    yield connection
    await connection.close()


async def column(account, query, *args):
    return {row[0] for row in await account.fetch(query, *args)}


async def test_the_catalogue_shows_nothing_unsafe(account):
    assert await account.fetch(UNSAFE) == []
    assert await account.fetch(PUBLIC) == []
    assert await account.fetch(UNCOMMENTED) == []


async def test_readers_read_operators_operate_and_admins_do_all(account):
    reader, operator, admin = account.roles.groups
    all_sp = await column(
        account, "select proname from pg_proc where pronamespace = 'jobs'::regnamespace"
    )
    views = await column(account, "select viewname from pg_views where schemaname = 'jobs'")

    assert views >= VIEWS
    assert {name for name in all_sp if not name.startswith("sp_")} == set()
    for role in (reader, operator, admin):
        assert await column(account, MAY_READ, role) == views
        assert await column(account, MAY_WRITE, role) == set()
    assert await column(account, MAY_CALL, reader) == set()
    assert await column(account, MAY_CALL, operator) == OPERATORS
    assert await column(account, MAY_CALL, admin) == all_sp
    for role in (account.roles.agent, account.roles.engine):
        assert await column(account, MAY_READ, role) == set()
        assert await column(account, MAY_WRITE, role) == set()
        assert not await column(account, MAY_CALL, role) & all_sp


async def refusals(connection, statements):
    for statement in statements:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)


async def test_a_right_is_given_and_taken_back_by_name(account, admin, person):
    await some_steps(admin, "a")
    who = person._params.user
    read, start, define = (
        "select * from jobs.jobs",
        "select jobs.sp_start_job('nightly')",
        "select jobs.sp_add_job('mine')",
    )
    tables = [f"select * from jobs_internal.{name}" for name in await column(account, INTERNAL)]
    await refusals(person, [read, start, define])

    await admin.call("sp_grant_reader", role=who)
    await admin.call("sp_grant_reader", role=who)
    await person.execute(read)
    await refusals(person, [start, define, "delete from jobs.jobs", *tables])
    await admin.call("sp_revoke_reader", role=who)
    await admin.call("sp_grant_operator", role=who)
    await person.execute(read)
    await person.execute(start)
    await refusals(person, [define, f"select jobs.sp_grant_admin('{who}')", *tables])
    await admin.call("sp_grant_admin", role=who)
    await person.execute(define)
    await refusals(person, [*tables, "select jobs_internal.get_item('jobs', '{mine}')"])
    await admin.call("sp_revoke_admin", role=who)
    await admin.call("sp_revoke_operator", role=who)
    await admin.call("sp_revoke_operator", role=who)
    await refusals(person, [read, start, define])

    made = await admin.rows("select created_by from jobs.jobs where job_name = 'mine'")
    assert made == [(who,)]
    noted = await account.fetch(
        "select action from jobs_internal.audit where detail ->> 'role' = $1 order by audit_id", who
    )
    assert [row[0] for row in noted][-2:] == ["sp_revoke_operator"] * 2


async def test_rights_are_given_to_roles_that_are_there_and_not_our_own(account, admin):
    for role in (None, "", "public", "nobody; drop role x", "nobody", *account.roles.all):
        error = await admin.refused("MU012", "sp_grant_admin", role=role)
        assert error.column_name == "role"


async def test_what_somebody_else_granted_is_theirs_to_take(account, admin, person):
    who = person._params.user
    version = (await account.fetch("show server_version_num"))[0][0]
    await account.execute(f'grant "{account.roles.groups[0]}" to {who}')

    if int(version) >= 160000:
        error = await admin.refused("MU013", "sp_revoke_reader", role=who)
        assert f"revoke {account.roles.groups[0]} from {who}" in error.hint
    else:
        await admin.call("sp_revoke_reader", role=who)


async def test_strange_names_come_back_as_they_were_or_are_refused(account, admin):
    kept = [
        "'; drop table job; --", "$$", "$1", "a'bc", "x" * 128, "a b", "null", "{}", "-1", "E'a'", "(select 1)",
    ]  # fmt: skip
    refused = [
        "%I", "%s%n", "a\\b", "../x", "a\x00b", '"', "ü" * 64, "漢字" * 60, "\u202eabc", "abc\u200f", "🦊", "İ",
    ]  # fmt: skip

    for name in kept:
        await some_steps(admin, job=name)
        await a_step(admin, name, job=name, command=f"select 1 -- {name}")
        assert await admin.value("select count(*) from jobs.jobs where job_name = $1", name) == 1
        await admin.call("sp_update_job", job_name=name, description=name, owner=name)
        await admin.refused("MU011", "sp_add_job", job_name=name)
        await admin.call("sp_add_target_group", target_group_name=name)
        await admin.call(
            "sp_add_target_group_member", target_group_name=name, target_type="SqlDatabase",
            server_name="eu1", database_name=name.encode()[:63].decode(errors="ignore"),
        )  # fmt: skip
        await admin.call("sp_add_credential", credential_name=name, identity=name, secret="env:A")
        await admin.call("sp_update_jobstep", job_name=name, step_id=1, credential_name=name)
        async with a_definer(account, "agent") as agent:
            item = await agent.call("get_item", p_kind="jobs/steps", p_path=[name, name])
        assert item["path"] == [name, name]
        assert item["properties"]["credential"]["name"] == name
    assert len(await admin.rows("select * from jobs.jobsteps")) == len(kept)
    for name in refused:
        for function in ("sp_add_job", "sp_add_target_group"):
            parameter = "job_name" if "job" in function else "target_group_name"
            with pytest.raises(asyncpg.PostgresError) as caught:
                await admin.call(function, **{parameter: name})
            assert caught.value.sqlstate in {"MU012", "22021"}


PLANTED = """
create schema evil;
grant all on schema evil to public;
create function evil.boom() returns text language plpgsql as 'begin raise exception ''planted''; end';
create function evil.lower(text) returns text language sql as 'select evil.boom()';
create function evil.format(text, variadic text[]) returns text language sql as 'select evil.boom()';
create function evil.clock_timestamp() returns timestamptz language sql as 'select evil.boom()::timestamptz';
create function evil.now() returns timestamptz language sql as 'select evil.boom()::timestamptz';
create function evil.nextval(text) returns bigint language sql as 'select 7::bigint';
create function evil.eq(text, text) returns boolean language sql as 'select true';
create operator evil.= (leftarg = text, rightarg = text, function = evil.eq);
create function evil.ne(text, text) returns boolean language sql as 'select false';
create operator evil.<> (leftarg = text, rightarg = text, function = evil.ne);
create function evil.match(text, text) returns boolean language sql as 'select true';
create operator evil.~ (leftarg = text, rightarg = text, function = evil.match);
create table evil.job (name text, system boolean);
create table evil.credential (name text);
create type evil.job_step as (a int);
create function evil.raise_error(text, text, text, text, text) returns void language sql as 'select';
"""


async def test_planted_objects_and_settings_change_nothing(account, admin):
    await account.execute(PLANTED)
    await admin.connection.execute(
        "create temp table job (name text, deleted_at timestamptz);"
        "create temp table target_group (name text);"
        "create temp table audit (action text);"
        "create temp view server_directory as select 'x'::text as name;"
        "create function pg_temp.lower(text) returns text language sql as 'select 1 / 0 || $1';"
        "set search_path = evil, pg_temp, pg_catalog, jobs;"
        "set standard_conforming_strings = off; set escape_string_warning = off;"
        "set timezone = 'Asia/Kathmandu'; set datestyle = 'German'; set transform_null_equals = on;"
        "set bytea_output = 'escape'; set extra_float_digits = -15; set quote_all_identifiers = on"
    )

    await some_steps(admin, "a", "b")
    await admin.refused("MU011", "sp_add_job", job_name="nightly")
    await admin.refused("MU012", "sp_add_job", job_name="a\\b")
    await admin.refused(
        "MU012", "sp_add_credential", credential_name="c", identity="u", secret="plain"
    )
    await admin.refused(
        "MU015", "sp_add_target_group_member", target_group_name="all", target_type="SqlServer",
        server_name="x",
    )  # fmt: skip
    await admin.refused(
        "MU012", "sp_update_jobstep", job_name="nightly", step_id=1, command="select '\\' || $(x)"
    )
    await admin.call("sp_update_jobstep", job_name="nightly", step_id=2, new_id=1)
    await admin.call("sp_update_job", job_name="nightly", schedule_cron="*/5 * * * *")

    async with a_definer(account, "agent") as agent:
        await agent.connection.execute("set timezone = 'Asia/Kathmandu'")
        item = await agent.call("get_item", p_kind="jobs", p_path=["nightly"])
        assert item["properties"]["schedule"]["startTime"] == "0001-01-01T00:00:00Z"
        doc = {"schedule": {"startTime": "2030-01-01T00:00:00", "enabled": True}}
        put = await agent.call("put_job", p_name="k", p_doc=doc, p_condition={})
        schedule = put["item"]["properties"]["schedule"]
        assert schedule["startTime"] == "2030-01-01T00:00:00Z"
    assert await account.fetch("select from evil.job") == []
    assert await admin.rows("select * from pg_temp.job") == []
    steps = await account.fetch("select step_name from jobs.jobsteps order by step_id")
    assert [row[0] for row in steps] == ["b", "a"]


async def test_a_function_of_a_reader_in_a_query_of_a_view_sees_no_more_than_the_view(
    account, admin, person
):
    await admin.call("sp_grant_reader", role=person._params.user)

    await person.execute(
        "create function pg_temp.peek(text) returns boolean language plpgsql cost 0.0001 as"
        " 'begin perform * from jobs_internal.credential; return true; end'"
    )

    await admin.call("sp_add_job", job_name="n")
    await refusals(person, ["select * from jobs.jobs where pg_temp.peek(job_name)"])
