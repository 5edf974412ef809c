"""The audit: who is named, who can't change it, and what a check finds when a superuser has."""

import asyncio
import secrets
from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest

from fsm import audit as sealer
from muster.core.db import Database, open_database
from muster.core.errors import Forbidden, InvalidRequest
from muster.core.ids import ResourceId
from muster.core.settings import Secret
from muster.roles import metadata
from muster.roles.audit import verify
from tests.support.plane import GROUP, OWNER, SUBSCRIPTION, a_call, a_group, make_plane
from workflows import authorization, groups, subscriptions
from workflows.model.resource import Body, Principal, PrincipalType

OWNER_OF_AUDIT = "select relowner::regrole::text from pg_class where relname = 'audit_event'"
KEEPER = "muster_keeper"
CHANGES = [
    "update audit_event set caller = 'somebody else'",
    "delete from audit_event",
    "truncate audit_event",
    "alter table audit_event disable trigger all",
    "drop table audit_event",
    "insert into audit_link (event_id, chain, digest) values (0, 'x', '')",
    "update audit_link set digest = ''",
    "delete from audit_link",
    "update audit_chain set hash = ''",
    "delete from audit_chain",
    "update audit_policy set kept = interval '0'",
    "create or replace function seal_audit(most integer) returns integer language sql as 'select 0'",
]


@pytest.fixture
async def plane(settings, db):
    return make_plane(settings, db)


@pytest.fixture
async def root(postgres, database_url):
    """A superuser, for whom no right and no trigger holds."""
    name = database_url.rpartition("/")[2]
    connection = await asyncpg.connect(postgres.url(name, postgres.root))
    await connection.execute("set session_replication_role = replica")
    yield connection
    await connection.close()


@pytest.fixture
async def settings_with_owner(postgres, settings):
    """An installation whose tables belong to another role than that of the processes."""
    name, password = f"t_{secrets.token_hex(6)}", secrets.token_hex(8)
    root = await asyncpg.connect(postgres.url("postgres", postgres.root))
    await root.execute(f"create role {KEEPER} login password '{password}'")
    await root.execute(f"create database {name} owner {KEEPER}")
    owner = Secret(f"postgresql://{KEEPER}:{password}@127.0.0.1:{postgres.port}/{name}")
    chosen = replace(settings, database_url=Secret(postgres.url(name)), database_owner_url=owner)
    yield chosen
    await root.execute(f"drop database {name} with (force)")
    await root.execute(f"drop role {KEEPER}")
    await root.close()


async def several_events(plane) -> None:
    await a_group(plane)
    for number in range(3):
        id = SUBSCRIPTION.child(("resourceGroups", f"more{number}"))
        await groups.put(plane, a_call(), id, Body(location="local"))
    await sealer.seal(plane.db)


async def problems(db: Database, earlier=()) -> list[str]:
    found, _ = await verify(db, list(earlier))
    return found


async def test_an_event_names_principal_and_token_beside_the_display_name(plane):
    who = Principal(
        id="0b1c",
        tenant_id=OWNER.tenant_id,
        type=PrincipalType.APPLICATION,
        name="nightly",
        token_id="token-7",
        owner=True,
    )

    await subscriptions.put(plane, a_call(principal=who), SUBSCRIPTION, Body())

    row = await plane.db.fetchrow("select * from audit_event")
    assert (row["caller"], row["caller_type"]) == ("nightly", "Application")
    assert (row["principal_id"], row["token_id"]) == ("0b1c", "token-7")


async def test_a_denial_names_the_principal_and_is_chained(plane):
    stranger = Principal(id="9f", tenant_id=OWNER.tenant_id, name="stranger", token_id="t9")

    with pytest.raises(Forbidden):
        await authorization.authorize(
            plane, a_call(principal=stranger), "Microsoft.Sql/servers/write", GROUP
        )

    row = await plane.db.fetchrow("select * from audit_event where status = 'Denied'")
    assert (row["principal_id"], row["token_id"]) == ("9f", "t9")
    assert await sealer.seal(plane.db) == 1
    assert await problems(plane.db) == []


async def test_the_role_of_the_processes_can_write_the_audit_and_not_change_it(settings_with_owner):
    await metadata.bring_up_to_date(settings_with_owner)
    db = await open_database(settings_with_owner)
    try:
        plane = make_plane(settings_with_owner, db)
        await several_events(plane)

        for statement in CHANGES:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await db.execute(statement)

        assert await problems(db) == []
        assert await db.fetchval("select count(*) from audit_link where seq is not null") == 5
    finally:
        await db.close()


async def test_an_owner_that_the_role_of_the_processes_is_a_member_of_is_refused(
    settings_with_owner, postgres
):
    root = await asyncpg.connect(postgres.url("postgres", postgres.root))
    await root.execute(f"grant {KEEPER} to {postgres.application.name}")

    with pytest.raises(InvalidRequest) as refused:
        await metadata.bring_up_to_date(settings_with_owner)

    assert refused.value.code == "InvalidDatabaseOwner"
    await root.close()


async def test_an_owner_without_the_tables_that_the_role_of_the_processes_made_is_refused(
    settings_with_owner, postgres
):
    root = await asyncpg.connect(
        postgres.url(settings_with_owner.database_url.reveal().rpartition("/")[2], postgres.root)
    )
    await root.execute(f"grant create on schema public to {postgres.application.name}")
    await metadata.bring_up_to_date(replace(settings_with_owner, database_owner_url=None))

    with pytest.raises(InvalidRequest) as refused:
        await metadata.bring_up_to_date(settings_with_owner)

    assert refused.value.code == "InvalidDatabaseOwner"
    await root.close()


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (
            "update audit_event set caller = 'x' where event_id = 3",
            "event 3: the event was changed",
        ),
        (
            "update audit_event set token_id = 't' where event_id = 3",
            "event 3: the event was changed",
        ),
        ("update audit_event set at = at + interval '1 us' where event_id = 3", "was changed"),
        ("delete from audit_event where event_id = 3", "event 3: the event was removed"),
        (
            "with gone as (delete from audit_event where event_id = 3) delete from audit_link where event_id = 3",
            "number 4, event 4: events before it were removed",
        ),
        (
            "with gone as (delete from audit_event where event_id = 5) delete from audit_link where event_id = 5",
            "number 4, event 4: events after it were removed",
        ),
        (
            "with gone as (delete from audit_event), link as (delete from audit_link) select 1",
            "all events of the chain were removed",
        ),
        ("update audit_link set digest = '\\x00' where event_id = 3", "the event was changed"),
        ("update audit_link set hash = '\\x00' where event_id = 3", "the chain does not fit"),
        ("delete from audit_chain", "the record of the chain was removed"),
        (
            "insert into audit_event (tenant_id, resource_id, action, status, caller, caller_type,"
            " correlation_id, request_id) values ('t', '/', 'a', 'Succeeded', 'c', 'User', 'x', 'y')",
            "the event was added outside the chain",
        ),
    ],
)
async def test_the_check_finds_what_a_superuser_changed(plane, root, change, finding):
    await several_events(plane)
    assert await problems(plane.db) == []

    await root.execute(change)

    found = await problems(plane.db)
    assert any(finding in each for each in found), found


async def test_an_event_that_is_changed_before_it_has_its_place_is_found_too(plane, root):
    await a_group(plane)

    await root.execute("update audit_event set caller = 'x' where event_id = 2")

    assert any("the event was changed" in each for each in await problems(plane.db))
    await sealer.seal(plane.db)
    assert any("the event was changed" in each for each in await problems(plane.db))


async def test_a_chain_that_was_computed_again_differs_from_a_head_that_was_kept(plane, root):
    await several_events(plane)
    _, kept = await verify(plane.db, [])

    await root.execute("update audit_event set caller = 'x' where event_id = 3")
    await root.execute("truncate audit_link, audit_chain")
    await root.execute(
        "insert into audit_link (event_id, chain, digest)"
        " select event_id, audit_chain_of(e), audit_digest(e) from audit_event e"
    )
    await sealer.seal(plane.db)

    assert await problems(plane.db) == []
    (finding,) = await problems(plane.db, kept)
    assert "its hash differs from the kept one" in finding


async def test_events_of_two_subscriptions_are_two_chains(plane):
    await a_group(plane)
    await subscriptions.put(plane, a_call(), ResourceId.parse("/subscriptions/s2"), Body())
    await sealer.seal(plane.db)

    _, heads = await verify(plane.db, [])

    places = {chain.partition(" ")[2]: seq for chain, seq, _ in heads}
    assert places == {"/subscriptions/s1": 2, "/subscriptions/s2": 1}


async def test_sealers_at_once_give_every_event_one_place(plane):
    await a_group(plane)
    await asyncio.gather(
        *(
            groups.put(
                plane,
                a_call(),
                SUBSCRIPTION.child(("resourceGroups", f"at-once{number}")),
                Body(location="local"),
            )
            for number in range(30)
        )
    )

    await asyncio.gather(*(sealer.seal(plane.db) for _ in range(5)))

    assert await plane.db.fetchval("select max(seq) from audit_link") == 32
    assert await problems(plane.db) == []


async def test_retention_removes_the_oldest_and_the_rest_still_verifies(plane, root):
    await several_events(plane)
    _, kept = await verify(plane.db, [])
    await root.execute("update audit_event set at = at - interval '40 days' where event_id <= 3")
    await root.execute("truncate audit_link, audit_chain")  # as if they had been written then
    await root.execute(
        "insert into audit_link (event_id, chain, digest)"
        " select event_id, audit_chain_of(e), audit_digest(e) from audit_event e"
    )
    await sealer.seal(plane.db)
    _, kept = await verify(plane.db, [])
    await metadata.bring_up_to_date(replace(plane.settings, audit_kept=timedelta(days=30)))

    assert await sealer.prune(plane.db) == 3

    left = await plane.db.fetch("select event_id from audit_event order by event_id")
    assert [row["event_id"] for row in left] == [4, 5]
    assert await problems(plane.db, kept) == []
    await root.execute("delete from audit_event where event_id = 4")
    assert any("event 4: the event was removed" in each for each in await problems(plane.db))


async def test_without_a_limit_nothing_is_removed(plane, root):
    await several_events(plane)
    await metadata.bring_up_to_date(replace(plane.settings, audit_kept=timedelta(0)))
    await root.execute("update audit_event set at = at - interval '9 years'")

    assert await plane.db.fetchval("select prune_audit(100)") == 0
    assert await sealer.prune(plane.db) == 0
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await plane.db.execute("delete from audit_event")


@pytest.mark.newest
async def test_muster_up_takes_the_audit_from_the_role_of_the_processes_of_an_older_version(
    tmp_path, settings
):
    cluster = metadata.embedded(tmp_path / "clusters" / "metadata")
    try:
        password = Secret(secrets.token_hex(16))
        url, migrator = await metadata.prepare_embedded(cluster, password)
        chosen = replace(settings, database_url=url)
        await metadata.bring_up_to_date(chosen, migrator)
        root = await asyncpg.connect(migrator.url.reveal())
        await root.execute(f"reassign owned by {metadata.OWNER} to {metadata.ROLE}")
        assert await root.fetchval(OWNER_OF_AUDIT) == metadata.ROLE
        await root.close()

        url, migrator = await metadata.prepare_embedded(cluster, password)
        await metadata.bring_up_to_date(chosen, migrator)

        db = await open_database(chosen)
        assert await db.fetchval(OWNER_OF_AUDIT) == metadata.OWNER
        await several_events(make_plane(chosen, db))
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await db.execute("delete from audit_event")
        assert await problems(db) == []
        await db.close()
    finally:
        await cluster.destroy()
