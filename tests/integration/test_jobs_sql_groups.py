"""Target groups with their members, credentials, and what stands in the way of deleting them."""

import asyncio
import json
import random
import re
from uuid import uuid4

import msgspec
import pytest

from engine.model.group_document import Document, Member
from engine.targets.resolver import Resolver
from muster.core.errors import InvalidRequest, NotFound
from muster.core.label_selector import parse
from tests.support.definitions import SERVERS, a_definer, a_step, some_steps
from tests.support.control_db import installed

MEMBER = "sp_add_target_group_member"
EU1 = {"target_type": "SqlServer", "server_name": "eu1"}


@pytest.fixture
async def account(settings, db, targets):
    made = await installed(settings, db, targets)
    await made.execute(SERVERS)
    return made


@pytest.fixture
async def admin(account):
    async with a_definer(account) as made:
        await made.call("sp_add_target_group", target_group_name="all")
        await made.call("sp_add_credential", credential_name="c1", identity="u", secret="env:P")
        yield made


async def test_a_group_s_name_is_taken_once_and_free_after_deletion(admin):
    first = await admin.value("select target_group_id from jobs.target_groups")

    await admin.refused("MU011", "sp_add_target_group", target_group_name="ALL")
    await admin.refused("MU012", "sp_add_target_group", target_group_name="a*")
    await admin.refused("MU010", "sp_delete_target_group", target_group_name="none")
    await admin.refused("MU010", MEMBER, target_group_name="none", **EU1)
    await admin.call("sp_delete_target_group", target_group_name="All")

    assert await admin.call("sp_add_target_group", target_group_name="ALL") != first


async def test_members_of_every_type_are_shown_as_given(admin):
    await admin.call("sp_add_target_group", target_group_name="inner")
    members = [
        EU1 | {"refresh_credential_name": "C1"},
        {"target_type": "SqlElasticPool", "server_name": "EU1", "elastic_pool_name": "p"},
        {"target_type": "SqlDatabase", "server_name": "eu1.database.windows.net",
         "database_name": "Tenant $$ \"1\"", "membership_type": "Exclude", "credential_name": "c1"},
        {"target_type": "SqlShardMap", "server_name": "db1.EXAMPLE.com", "database_name": "d",
         "shard_map_name": "public.shards"},
        {"target_type": "SqlSchema", "server_name": "us1", "schema_pattern": "tenant_%"},
        {"target_type": "SqlQuery", "server_name": "us1", "database_name": "d",
         "query": "select 1\nfrom x"},
        {"target_type": "TargetGroup", "nested_group_name": "INNER"},
    ]  # fmt: skip

    ids = [await admin.call(MEMBER, target_group_name="all", **member) for member in members]

    rows = await admin.connection.fetch("select * from jobs.target_group_members order by position")
    assert list(rows[0].keys())[:11] == [
        "target_group_name", "target_group_id", "membership_type", "target_type", "target_id",
        "refresh_credential_name", "subscription_id", "resource_group_name", "server_name",
        "database_name", "elastic_pool_name",
    ]  # fmt: skip
    assert [row["target_id"] for row in rows] == ids
    stored = {"refresh_credential_name": "c1", "nested_group_name": "inner"}
    for row, member in zip(rows, members, strict=True):
        for name, value in member.items():
            assert row[name] == stored.get(name, value)


async def test_each_type_takes_what_belongs_to_it_and_nothing_else(admin):
    whole = {
        "SqlServer": {"server_name": "eu1"},
        "SqlElasticPool": {"server_name": "eu1", "elastic_pool_name": "p"},
        "SqlDatabase": {"server_name": "eu1", "database_name": "d"},
        "SqlShardMap": {"server_name": "eu1", "database_name": "d", "shard_map_name": "s"},
        "SqlSchema": {"server_name": "eu1", "schema_pattern": "s"},
        "SqlQuery": {"server_name": "eu1", "database_name": "d", "query": "q"},
        "TargetGroup": {"nested_group_name": "all"},
    }
    fields = {name: value for needed in whole.values() for name, value in needed.items()}
    optional = {("SqlSchema", "database_name")}

    for kind, needed in whole.items():
        for name in needed:
            some = {key: value for key, value in needed.items() if key != name}
            error = await admin.refused(
                "MU012", MEMBER, target_group_name="all", target_type=kind, **some
            )
            assert (error.column_name, kind in str(error)) == (name, True)
        for name in fields.keys() - needed.keys():
            if (kind, name) not in optional:
                error = await admin.refused(
                    "MU012", MEMBER, target_group_name="all", target_type=kind,
                    **needed, **{name: fields[name]},
                )  # fmt: skip
                assert error.column_name == name
    for name, value in {
        "target_type": "Sql", "membership_type": "include", "refresh_credential_name": "nobody",
        "credential_name": "nobody", "server_name": "e\x01", "database_name": "d" * 64,
    }.items():  # fmt: skip
        given = {"target_type": "SqlDatabase", "server_name": "eu1", "database_name": "d"}
        error = await admin.refused(
            "MU012", MEMBER, **(given | {"target_group_name": "all", name: value})
        )
        assert error.column_name == name
    await admin.refused(
        "MU012", MEMBER, target_group_name="all", target_type="TargetGroup", nested_group_name="no"
    )


async def test_a_server_is_found_by_all_its_names_and_an_unknown_one_names_the_nearest(admin):
    names = ["eu1", "EU1", "Eu1.Database.Windows.Net", "DB1.example.com", "db2.EXAMPLE.COM"]
    for number, name in enumerate(names):
        await admin.call(
            MEMBER, target_group_name="all", target_type="SqlDatabase", server_name=name,
            database_name=f"d{number}",
        )  # fmt: skip

    for name, hint in {
        "eu2": "Perhaps you meant eu1, us1.",
        "u1.database.windows.net": "Perhaps you meant eu1, us1.",
        "something-else": "No server of the account has a similar name.",
        "db3.example.com": "Perhaps you meant",
        "eu1.database.windows.com": "Perhaps you meant eu1",
        "x' or true --": "No server",
    }.items():
        error = await admin.refused(
            "MU015", MEMBER, target_group_name="all", target_type="SqlServer", server_name=name
        )
        assert error.column_name == "server_name"
        assert error.hint.startswith(hint), name


async def test_a_member_stands_once(admin):
    await admin.call(MEMBER, target_group_name="all", **EU1)

    await admin.refused(
        "MU011", MEMBER, target_group_name="all", target_type="SqlServer", server_name="EU1"
    )
    await admin.call(MEMBER, target_group_name="all", membership_type="Exclude", **EU1)
    database = {"target_type": "SqlDatabase", "server_name": "eu1"}
    await admin.call(MEMBER, target_group_name="all", **database, database_name="d")
    await admin.call(MEMBER, target_group_name="all", **database, database_name="D")


async def test_members_differ_by_their_labels_and_a_selector_is_read_as_in_python(account, admin):
    for labels in (None, "tier=gold", "tier=silver"):
        await admin.call(MEMBER, target_group_name="all", labels=labels, **EU1)
    await admin.refused("MU011", MEMBER, target_group_name="all", labels="tier=gold", **EU1)
    wrong = {"target_group_name": "all", "labels": "tier=gold,region in eu"}
    error = await admin.refused("MU012", MEMBER, **wrong, **EU1)
    pool = {"target_type": "SqlElasticPool", "server_name": "eu1", "elastic_pool_name": "p"}
    misplaced = await admin.refused("MU012", MEMBER, target_group_name="all", labels="a", **pool)

    stored = await admin.connection.fetch(
        "select labels from jobs.target_group_members order by position"
    )
    root = await account.connect("root")
    texts = some_selectors(3000)
    rows = await root.fetch(
        "select jobs_internal.selector_error(s) from unnest($1::text[]) with ordinality t (s, n) order by n", texts
    )  # fmt: skip
    await root.close()

    assert [row[0] for row in stored] == [None, "tier=gold", "tier=silver"]
    assert (error.column_name, "position 11:" in str(error)) == ("labels", True)
    assert misplaced.column_name == "labels"
    assert [position(row[0]) for row in rows] == list(map(position_in_python, texts))
    assert 300 < sum(row[0] is None for row in rows) < 2700


def some_selectors(number: int) -> list[str]:
    """Some are right: pieces of selectors in a likely order, and some of them changed."""
    draw = random.Random(7)
    keys, values = (
        ["tier", "a/b.c-d", "in", "x" * 63, "x" * 64, "-a", "ä"],
        ["gold", "eu,us", "ü|*", "a b", '"', ""],
    )
    forms = [
        "{k}",
        "!{k}",
        "! {k}",
        "{k}={v}",
        "{k} == {v}",
        "{k}!={v}",
        "{k} in ({v})",
        "{k}  notin( {v} , {v})",
    ]
    texts = []
    for _ in range(number):
        parts = [
            draw.choice(forms).format(k=draw.choice(keys[:4] * 3 + keys), v=draw.choice(values[:3] * 3 + values))
            for _ in range(draw.choice((1, 1, 2, 3, 33)))
        ]  # fmt: skip
        text = draw.choice((",", ", ", " ,")).join(parts)
        if draw.random() < 0.2:
            at = draw.randrange(len(text) + 1)
            text = text[:at] + draw.choice(" ,()=!\u0085\t\nöx") + text[at:]
        texts.append(text)
    return texts


def position(error: str | None) -> str | None:
    """Where the selector is wrong, None when it is right."""
    match = re.search(r"position (\d+)", error or "")
    return match[1] if match else error and "bounds"


def position_in_python(text: str) -> str | None:
    try:
        parse(text)
    except InvalidRequest as error:
        return position(error.message)
    return None


async def test_deleting_a_member_changes_the_group(admin):
    target = await admin.call(MEMBER, target_group_name="all", **EU1)
    version = await admin.value("select row_version from jobs.target_groups")

    await admin.refused(
        "MU010", "sp_delete_target_group_member", target_group_name="all", target_id=uuid4()
    )
    await admin.call("sp_delete_target_group_member", target_group_name="all", target_id=target)

    assert await admin.rows("select * from jobs.target_group_members") == []
    assert await admin.value("select row_version from jobs.target_groups") > version


async def test_groups_form_no_circle(admin):
    for name in ("b", "c"):
        await admin.call("sp_add_target_group", target_group_name=name)
    nested = {"target_type": "TargetGroup"}
    await admin.call(MEMBER, target_group_name="all", **nested, nested_group_name="b")
    await admin.call(MEMBER, target_group_name="b", **nested, nested_group_name="c")

    for inner in ("all", "c"):
        await admin.refused(
            "MU013", MEMBER, target_group_name="c", **nested, nested_group_name=inner
        )


async def test_a_group_in_use_is_not_deleted_and_the_users_are_named(admin):
    await some_steps(admin, "a")
    await admin.call("sp_add_target_group", target_group_name="outer")
    await admin.call(
        MEMBER, target_group_name="outer", target_type="TargetGroup", nested_group_name="all"
    )

    error = await admin.refused("MU013", "sp_delete_target_group", target_group_name="all")
    assert 'step "a" of job "nightly", target group "outer"' in str(error)
    await admin.call("sp_delete_target_group", target_group_name="outer")
    await admin.call("sp_delete_jobstep", job_name="nightly", step_id=1)
    await admin.call("sp_delete_target_group", target_group_name="all")

    assert await admin.rows("select target_group_name from jobs.jobstep_versions") == [("all",)]


async def test_steps_of_deleted_jobs_do_not_count(admin):
    await some_steps(admin, "a")
    await admin.call("sp_delete_job", job_name="nightly")

    await admin.call("sp_delete_target_group", target_group_name="all")

    assert (
        await admin.rows("select 1 from jobs.target_groups where target_group_name = 'all'") == []
    )


async def test_a_credential_in_use_is_not_deleted_and_the_users_are_named(admin):
    await some_steps(admin, "a")
    step = {"job_name": "nightly", "step_id": 1}
    uses = [
        ("sp_update_jobstep", step | {"credential_name": "C1"}, 'step "a"'),
        ("sp_update_jobstep", step | {"credential_name": ""}, None),
        (MEMBER, {"target_group_name": "all", **EU1, "refresh_credential_name": "c1"},
         'target group "all"'),
        ("sp_update_jobstep", step | {"credential_name": "c1"}, 'step "a" of job "nightly", target'),
    ]  # fmt: skip

    for function, given, user in uses:
        await admin.call(function, **given)
        if user:
            error = await admin.refused("MU013", "sp_delete_credential", credential_name="c1")
            assert user in str(error)
    await admin.call("sp_update_jobstep", **step, credential_name="")
    member = await admin.value("select target_id from jobs.target_group_members")
    await admin.call("sp_delete_target_group_member", target_group_name="all", target_id=member)
    await admin.call("sp_delete_credential", credential_name="C1")


async def test_more_users_than_one_can_read_are_counted(admin):
    for number in range(8):
        await some_steps(admin, "s", job=f"j{number}")

    error = await admin.refused("MU013", "sp_delete_target_group", target_group_name="all")

    assert str(error).count(" of job ") == 5
    assert " and 3 more" in str(error)


async def test_a_secret_is_sealed_or_a_reference_and_never_repeated(account, admin):
    right = [
        "sealed:" + "A" * 40,
        "env:DB_PASSWORD",
        "file:/run/secrets/x y",
        "vault:kv/a/b#c",
        "file:/run/a..b",
        "vault:kv/..a#c",
    ]
    wrong = [
        None, "", "hunter2hunter2", "env:", "env:1X", "env:A B", "file:relative", "vault:kv/x", "vault:kv#c", "vault:kv/#c",
        "file:/run/../etc/shadow", "file:/run/..", "vault:kv/../sys#c", "vault:kv/a/..#c",
        "sealed:", "sealed:short", "Sealed:" + "A" * 40, "sealed:" + "A" * 40 + "\n", "env:A\nB",
    ]  # fmt: skip

    for number, secret in enumerate(right):
        name = f"r{number}"
        await admin.call("sp_add_credential", credential_name=name, identity="u", secret=secret)
    for secret in wrong:
        for function in ("sp_add_credential", "sp_update_credential"):
            if function == "sp_update_credential" and secret is None:
                continue
            error = await admin.refused(
                "MU012", function, credential_name="c1" if "update" in function else "x",
                identity="u", secret=secret,
            )  # fmt: skip
            told = f"{error} {error.detail} {error.hint} {error.context}"
            assert error.column_name == "secret"
            assert not secret or len(secret) < 8 or secret not in told
    for identity in ("", "x" * 257, "a\x01", None, "$(nothing)"):
        error = await admin.refused(
            "MU012", "sp_add_credential", credential_name="x", identity=identity, secret="env:A"
        )
        assert error.column_name == "identity"
    stored = await account.fetch("select secret from jobs_internal.credential where name <> 'c1'")
    assert sorted(row[0] for row in stored) == sorted(right)
    noted = await account.fetch("select string_agg(detail::text, '') from jobs_internal.audit")
    assert "DB_PASSWORD" not in noted[0][0]


async def test_a_credential_is_changed_in_parts(account, admin):
    shown = "select username, secret, row_version from jobs_internal.credential"
    first = tuple((await account.fetch(shown))[0])

    await admin.call("sp_update_credential", credential_name="C1")
    assert tuple((await account.fetch(shown))[0]) == first
    await admin.call(
        "sp_update_credential", credential_name="c1", identity="$(target_database_name)"
    )
    await admin.call("sp_update_credential", credential_name="c1", secret="file:/x")

    username, secret, version = (await account.fetch(shown))[0]
    assert (username, secret) == ("$(target_database_name)", "file:/x")
    assert version > first[2]
    await admin.refused(
        "MU011", "sp_add_credential", credential_name="C1", identity="u", secret="env:A"
    )
    await admin.refused("MU010", "sp_update_credential", credential_name="no", identity="u")
    await admin.refused("MU010", "sp_delete_credential", credential_name="no")


async def test_who_names_a_group_waits_for_who_deletes_it(account, admin):
    await some_steps(admin)
    transaction = admin.connection.transaction()
    await transaction.start()
    await a_step(admin, "a")

    async with a_definer(account) as another:
        deleting = asyncio.create_task(
            another.refused("MU013", "sp_delete_target_group", target_group_name="all")
        )
        while not await account.fetch("select from pg_locks where not granted"):
            await asyncio.sleep(0.01)
        await transaction.commit()
        await deleting

        await admin.call("sp_delete_jobstep", job_name="nightly", step_id=1)
        transaction = another.connection.transaction()
        await transaction.start()
        await another.call("sp_delete_target_group", target_group_name="all")
        adding = asyncio.create_task(
            admin.refused(
                "MU012", "sp_add_jobstep", job_name="nightly", step_name="b", command="x",
                target_group_name="all",
            )
        )  # fmt: skip
        while not await account.fetch("select from pg_locks where not granted"):
            await asyncio.sleep(0.01)
        await transaction.commit()
        await adding


async def test_a_name_that_another_server_takes_leads_nowhere_until_the_member_is_written_again(
    account, admin, engine
):
    """The right to use a server as a target was checked for the one that had the name then."""
    host = {"target_type": "SqlServer", "server_name": "DB1.example.com"}
    await admin.call(MEMBER, target_group_name="all", **host)
    assert (await document(engine)).server_of(await member(engine)).name == "eu1"

    await account.execute(
        "update jobs_internal.server_directory set hosts = '{x}' where name = 'eu1'"
    )
    assert (await document(engine)).server_of(await member(engine)) is None
    await account.execute(
        "update jobs_internal.server_directory set hosts = '{db1.example.com}' where name = 'us1'"
    )
    assert (await document(engine)).server_of(await member(engine)) is None
    with pytest.raises(NotFound, match="another server"):
        await Resolver(await document(engine), NoLister()).resolve()

    await admin.call("sp_delete_target_group_member", target_group_name="all",
                     target_id=(await member(engine)).target_id)  # fmt: skip
    await admin.call(MEMBER, target_group_name="all", **host)
    assert (await document(engine)).server_of(await member(engine)).name == "us1"


async def test_a_group_that_is_put_again_keeps_the_server_of_a_member_whose_server_has_left(
    account, admin, engine
):
    agent = await account.connect("agent")
    put = "select jobs_internal.put_target_group('all', $1, '{}')"
    members = {"members": [{"type": "SqlServer", "serverName": "eu1"}]}
    await agent.execute(put, json.dumps(members))
    await account.execute("delete from jobs_internal.server_directory where name = 'eu1'")
    members["members"].append({"type": "SqlServer", "serverName": "us1"})
    await agent.execute(put, json.dumps(members))
    await agent.close()
    left = await member(engine)
    await account.execute(
        "insert into jobs_internal.server_directory (server_id, name, hosts, port, ssl_mode, revision) "
        "values ('/another/eu1', 'eu1', '{h}', 5432, 'disable', 1)"
    )

    assert left.server_id
    assert (await document(engine)).server_of(left) is None


class NoLister:
    pass


async def document(engine) -> Document:
    text = await engine.fetchval("select jobs_internal.group_document('all')")
    return msgspec.json.decode(text, type=Document)


async def member(engine) -> Member:
    read = await document(engine)
    return read.groups[read.target_group_id].members[0]
