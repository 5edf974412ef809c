"""What the owner of a tenant may set there changes nothing for a job: neither its names nor its meaning."""

import asyncio
from uuid import UUID

import msgspec
import pytest

from engine.access.credentials import Credentials
from engine.model.group_document import Member
from engine.targets.discovery import Discovery
from muster.core.clock import Clock
from muster.core.connect import Connector
from muster.core.endpoint import Endpoint
from muster.core.session_settings import FIXED, SCRIPT_PATH, startup
from muster.core.settings import Secret
from tests.support.attempts import IDENTITY, a_target_database, a_step, settings
from tests.support.read_batches import some_tasks

pytestmark = [pytest.mark.newest, pytest.mark.targets]

# Each would win over PostgreSQL's own function or relation if its schema were searched first.
TRAP = """
create table public.t (id int);
create table public.hits (who text);
grant insert on public.hits to public;
create schema evil;
grant usage on schema evil to public;
create function evil.hit() returns int language sql as 'insert into public.hits values (session_user) returning 1';
create function evil.now() returns text language sql as 'select evil.hit(); select ''evil''';
create function evil.current_setting(text) returns text language sql as 'select evil.hit(); select ''evil''';
create function evil.has_database_privilege(oid, text) returns bool language sql as 'select evil.hit(); select false';
create function evil.has_schema_privilege(oid, text) returns bool language sql as 'select evil.hit(); select false';
create view evil.pg_database as select 'evil' as datname, evil.hit();
"""
HOSTILE = {
    "standard_conforming_strings": "off",
    "row_security": "off",
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "default_transaction_deferrable": "on",
    "DateStyle": "SQL, DMY",
    "IntervalStyle": "iso_8601",
    "check_function_bodies": "off",
    "transform_null_equals": "on",
    "array_nulls": "off",
    "escape_string_warning": "off",
    "default_tablespace": "pg_global",
    "search_path": "evil, pg_catalog, public",
}


@pytest.fixture(params=["database", "role"])
async def target(request, targets, tmp_path):
    """Set by the tenant's owner, who is the login as well: nobody has more to say about it."""
    async with a_target_database(targets, tmp_path) as made:
        await made.execute(f"set role {made.owner.name};{TRAP}")
        async with made.connection() as connection:
            for name, value in HOSTILE.items():
                await connection.execute(
                    f"alter {request.param} {made.database} set {name} = {value}"
                )
        yield made


def pooled(target):
    return msgspec.structs.replace(target.server, pooling="transaction")


async def hits(target):
    return await value(target, "select count(*) from public.hits")


async def value(target, query):
    async with target.connection(server_settings=startup(SCRIPT_PATH)) as connection:
        return await connection.fetchval(query)


async def execute(target, statements):
    async with target.connection(server_settings=startup(SCRIPT_PATH)) as connection:
        await connection.execute(statements)


SEEN = ", ".join(f"pg_catalog.current_setting('{name}')" for name in (*FIXED, "search_path"))
EXPECTED = [*FIXED.values(), '"$user", public, pg_temp']


@pytest.mark.parametrize("options", [{}, {"transaction": "none"}], ids=["one transaction", "none"])
async def test_a_script_runs_with_fixed_settings_and_names(target, options):
    script = f"select {SEEN}; select now()::text; insert into t values (1)"
    # The second one gets the session of the first, after DISCARD ALL.
    outcomes = [await target.run(script, **options) for _ in range(2)]

    for outcome in outcomes:
        assert outcome.lifecycle == "Succeeded", outcome
        assert outcome.results[0]["rows"] == [EXPECTED]
        assert outcome.results[1]["rows"][0][0].startswith("20")
    assert await hits(target) == 0


async def test_a_script_behind_a_pooler_runs_with_fixed_settings_and_names(target):
    """Nothing can be said there when the session begins; a transaction that may only read stays one."""
    outcome = await target.run(
        f"select {SEEN}, pg_catalog.current_setting('transaction_isolation'); select now()::text",
        server=pooled(target),
        settings={"access": "readOnly"},
    )

    assert outcome.lifecycle == "Succeeded", outcome
    assert outcome.results[0]["rows"] == [[*EXPECTED, "read committed"]]
    assert outcome.results[1]["rows"][0][0].startswith("20")
    assert await hits(target) == 0


async def test_what_goes_in_a_batch_runs_with_fixed_settings_and_names(target):
    outcomes = await target.run_batch(
        "select now()::text, current_setting('row_security')", [target.task(), target.task()]
    )

    for outcome in outcomes:
        assert outcome.lifecycle == "Succeeded", outcome
        assert outcome.results[0]["rows"][0][0].startswith("20")
        assert outcome.results[0]["rows"][0][1] == "on"
    assert await hits(target) == 0


async def test_a_path_of_a_step_or_schema_has_temporary_tables_last(target):
    await execute(target, f"create schema s1 authorization {target.owner.name}")
    (task,) = some_tasks(target, 1)
    script = "show search_path"

    of_schema = await target.run(script, task)
    of_step = await target.run(script, settings={"searchPath": "s1, public"})
    named = await target.run(script, settings={"searchPath": "pg_temp, public"})

    shown = [each.results[0]["rows"] for each in (of_schema, of_step, named)]
    assert shown == [[["s1, pg_temp"]], [["s1, public, pg_temp"]], [["pg_temp, public"]]]


async def test_a_database_can_not_choose_the_role_of_a_job(target):
    role = f"{target.database}_other"
    await execute(target, f"create role {role}; grant {role} to {target.owner.name}")
    await execute(target, f"alter database {target.database} set role = {role}")
    try:
        outcome = await target.run(
            "select current_user::text; reset role; select current_user::text"
        )
    finally:
        await execute(target, f"alter database {target.database} reset role; drop role {role}")

    rows = [each["rows"] for each in outcome.results if "rows" in each]
    assert rows == [[[target.owner.name]]] * 2


async def test_a_database_behind_a_pooler_can_not_choose_the_role_of_a_job(target):
    role, owner = f"{target.database}_other", target.owner.name
    await execute(target, f"create role {role}; grant {role} to {owner}")
    await execute(target, f"alter database {target.database} set role = {role}")
    try:
        outcome = await target.run(
            "select current_user::text",
            server=pooled(target),
            settings={"access": "readOnly"},
        )
    finally:
        await execute(target, f"alter database {target.database} reset role; drop role {role}")

    assert outcome.lifecycle == "Succeeded", outcome
    assert outcome.results[0]["rows"] == [[owner]]


async def test_a_session_in_which_triggers_do_nothing_is_refused_or_put_right(target):
    """Only a superuser can have set it, and only a superuser may change it."""
    await execute(
        target, f"alter database {target.database} set session_replication_role = replica"
    )
    script = "select current_setting('session_replication_role'); insert into public.t values (1)"
    root = target.who(target.targets.root)

    refused = await target.run(script)
    right = await target.run(script, who=root)
    wanted = await target.run(
        script, who=root, settings={"parameters": {"session_replication_role": "replica"}}
    )

    assert (refused.lifecycle, refused.sqlstate) == ("Failed", "42501")
    assert "session_replication_role" in refused.message
    assert right.results[0]["rows"] == [["origin"]]
    assert wanted.results[0]["rows"] == [["replica"]]
    assert await value(target, "select count(*) from public.t") == 2


async def test_what_the_engine_asks_a_server_calls_nothing_of_a_tenant(target):
    for server in (target.server, pooled(target)):
        credentials = Credentials(UUID(int=1), Secret(""), ("file:",), Clock())
        connector = Connector(settings())
        own = [target.database.upper()]
        listing = Discovery(connector, credentials, IDENTITY, lambda _: asyncio.Lock(), own)
        there = msgspec.structs.replace(server, maintenance_database=target.database)
        who = target.who()
        query = "select (now() = pg_catalog.now())::text as server_name, current_setting('search_path') as database_name"
        member = Member(
            target_id=UUID(int=3), membership_type="Include", type="SqlQuery", query=query
        )

        databases = {each.name: each.reason for each in await listing.databases(there, who)}
        schemas = await listing.schemas(there, target.database, "ev%", who)
        rows = await listing.rows(there, target.database, member, who)

        assert databases[target.database] == "ServersOwn"  # of the provider, here
        assert schemas == ["evil"]
        assert rows[0]["server_name"] == "true"
        assert rows[0]["database_name"] == '"$user", public, pg_temp'
    assert await hits(target) == 0


async def test_a_session_of_our_own_finds_nothing_but_what_is_postgresqls(target):
    endpoint = Endpoint(host=target.targets.host, port=target.targets.port, ssl_mode="disable")
    session = Connector(settings()).session(
        endpoint,
        user=target.owner.name,
        password=target.owner.password,
        application_name="muster",
        database=target.database,
    )

    async with session as connection:
        names = await connection.fetch("select datname from pg_database")
        path = await connection.fetchval("show search_path")

    assert target.database in {row["datname"] for row in names}
    assert path == "pg_catalog, pg_temp"
    assert await hits(target) == 0


async def test_the_commit_status_and_the_end_of_an_attempt_call_nothing_of_a_tenant(target):
    session = await target.lend()
    try:
        async with session.second_connection() as other:
            assert await other.fetchval("show search_path") == "pg_catalog, pg_temp"
    finally:
        target.sessions.give_back(session)
    outcome = await target.run(a_step("create index concurrently on t (id)"))

    assert outcome.lifecycle == "Succeeded", outcome
    assert await hits(target) == 0
