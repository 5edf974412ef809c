"""What the node agent calls: documents in and out, conditions, pages, and whom a change is put down to."""

import json
import secrets
from uuid import UUID, uuid4

import pytest

from tests.support.definitions import SERVERS, a_definer, some_steps
from tests.support.control_db import installed

ALL = {"name": "all", "asGiven": None}


@pytest.fixture
async def account(settings, db, targets):
    made = await installed(settings, db, targets)
    await made.execute(SERVERS)
    return made


@pytest.fixture
async def agent(account):
    async with a_definer(account, "agent") as made:
        await put(made, "target_group", "all", {"members": []})
        yield made


async def put(agent, kind, name, doc, condition=None):
    return await agent.call(f"put_{kind}", p_name=name, p_doc=doc, p_condition=condition or {})


async def put_step(agent, name, doc, condition=None, job="J"):
    doc = {"targetGroup": ALL, "script": "select 1"} | doc
    return await agent.call(
        "put_step", p_job=job, p_name=name, p_doc=doc, p_condition=condition or {}
    )


async def get(agent, kind, *path):
    return await agent.call("get_item", p_kind=kind, p_path=list(path))


async def names(agent, kind, *path, after=None, top=None):
    page = await agent.call(
        "list_items", p_kind=kind, p_path=list(path), p_after=json.dumps(after) if after else None,
        p_top=top, p_filters={},
    )  # fmt: skip
    return [item["name"] for item in page["items"]], page["next"]


async def delete(agent, kind, *path, condition=None, **options):
    found = await agent.call(
        "delete_item",
        p_kind=kind,
        p_path=list(path),
        p_condition=condition or {},
        p_options=options,
    )
    return found["deleted"]


async def test_a_job_that_says_nothing_comes_back_whole(agent):
    put_item = await put(agent, "job", "J", {})

    item = await get(agent, "jobs", "j")
    assert put_item == {"created": True, "item": item}
    assert item.keys() == {
        "name", "uid", "rowVersion", "createdBy", "createdAt", "modifiedBy", "modifiedAt", "path",
        "properties",
    }  # fmt: skip
    assert (item["name"], item["path"], UUID(item["uid"]).version) == ("J", ["J"], 4)
    assert item["properties"]["schedule"].pop("since") <= item["modifiedAt"]
    assert item["properties"] == {
        "description": "", "version": 0, "paused": False, "priority": 0, "owner": None,
        "labels": {}, "retentionDays": None, "runAttempts": None,
        "schedule": {
            "startTime": "0001-01-01T00:00:00Z", "endTime": "9999-12-31T11:59:59Z", "type": "Once",
            "enabled": False, "intervalType": "Once", "intervalCount": 1,
            "misfire": {"policy": "runOnce"}, "overlap": "skipTarget",
        },
    }  # fmt: skip


async def test_a_put_replaces_and_one_that_changes_nothing_leaves_no_trace(agent):
    doc = {
        "description": "d", "owner": "o", "labels": {"a": "b"}, "retentionDays": 3, "priority": 0,
        "schedule": {
            "type": "Recurring", "interval": "PT1H30M", "enabled": True, "overlap": "queueOne",
            "startTime": "2026-01-01T00:00:00.5Z", "misfire": {"policy": "skip", "withinSeconds": 9},
        },
    }  # fmt: skip
    first = (await put(agent, "job", "J", doc))["item"]
    assert (await put(agent, "job", "j", doc)) == {"created": False, "item": first}
    schedule = first["properties"]["schedule"]
    assert schedule["startTime"] == "2026-01-01T00:00:00.5Z"
    assert (schedule["interval"], schedule["intervalType"], schedule["intervalCount"]) == (
        "PT1H30M", "Minutes", 90,
    )  # fmt: skip
    assert (await put(agent, "job", "J", first["properties"]))["item"] == first

    second = (await put(agent, "job", "J", {}))["item"]

    assert second["properties"]["schedule"]["type"] == "Once"
    assert second["properties"]["owner"] is None
    assert second["rowVersion"] > first["rowVersion"]
    assert second["uid"] == first["uid"]


async def test_intervals_are_iso_durations(agent):
    right = {
        "PT5M": ("Minutes", 5), "PT1H": ("Hours", 1), "PT90M": ("Minutes", 90), "P1D": ("Days", 1),
        "P1W": ("Weeks", 1), "P2W3D": ("Days", 17), "P1M": ("Months", 1), "P1Y2M": ("Months", 14),
        "P1DT12H": ("Hours", 36), "PT120S": ("Minutes", 2),
    }  # fmt: skip
    for text, unit in right.items():
        doc = {"schedule": {"type": "Recurring", "interval": text}}
        schedule = (await put(agent, "job", "J", doc))["item"]["properties"]["schedule"]
        assert (schedule["interval"], schedule["intervalType"], schedule["intervalCount"]) == (
            text, *unit,
        )  # fmt: skip
    for text in ["P", "PT", "5 minutes", "PT30S", "PT0M", "P1M1D", "PT1.5H", "-PT5M", "P1D "]:
        error = await agent.refused(
            "MU012", "put_job", p_name="J", p_condition={},
            p_doc={"schedule": {"type": "Recurring", "interval": text}},
        )  # fmt: skip
        assert error.constraint_name == "InvalidDuration"
    for schedule in (
        {"type": "Once", "interval": "PT5M"},
        {"type": "Recurring"},
        {"type": "Once", "cron": "@daily"},
    ):
        await agent.refused(
            "MU012", "put_job", p_name="J", p_condition={}, p_doc={"schedule": schedule}
        )
    doc = {"schedule": {"type": "Once", "intervalType": "Hours", "intervalCount": 2}}
    assert (await put(agent, "job", "J", doc))["item"]["properties"]["schedule"]["type"] == "Once"


async def test_what_psql_defines_rest_shows_in_its_own_words(agent, admin):
    for unit, text in {
        "Minutes": "PT3M", "Hours": "PT3H", "Days": "P3D", "Weeks": "P3W", "Months": "P3M",
    }.items():  # fmt: skip
        await admin.call(
            "sp_add_job", job_name=unit, schedule_interval_type=unit, schedule_interval_count=3
        )
        schedule = (await get(agent, "jobs", unit))["properties"]["schedule"]
        assert (schedule["type"], schedule["interval"]) == ("Recurring", text)
    await admin.call("sp_add_job", job_name="c", schedule_cron="@daily", schedule_time_zone="UTC")
    schedule = (await get(agent, "jobs", "c"))["properties"]["schedule"]
    assert (schedule["cron"], schedule["timeZone"], "interval" in schedule) == (
        "@daily",
        "UTC",
        False,
    )


async def test_a_step_comes_back_as_it_was_given(agent):
    await put(agent, "job", "J", {})
    await put(agent, "credential", "c", {"username": "u", "secret": "env:P"})
    reference = {"name": "c", "asGiven": "/subscriptions/s/.../credentials/C"}
    doc = {
        "stepId": 1, "script": "select 1", "credential": reference,
        "targetGroup": {"name": "all", "asGiven": "/x/ALL"},
        "executionOptions": {
            "timeoutSeconds": 60, "retryAttempts": 1, "initialRetryIntervalSeconds": 2,
            "maximumRetryIntervalSeconds": 3, "retryIntervalBackoffMultiplier": 1.5,
            "maxParallelism": 4,
        },
        "output": None,
        "options": {"onFailure": "continue"},
    }  # fmt: skip

    made = await put_step(agent, "S", doc)

    assert made["created"] is True
    assert made["item"]["path"] == ["J", "S"]
    assert made["item"]["properties"] == doc
    again = await put_step(agent, "s", made["item"]["properties"])
    assert again == {"created": False, "item": made["item"]}
    plain = (await put_step(agent, "s", {}))["item"]
    assert plain["properties"] == {
        "stepId": 1, "script": "select 1", "credential": None, "targetGroup": ALL, "output": None,
        "options": {}, "executionOptions": {
            "timeoutSeconds": 43200, "retryAttempts": 10, "initialRetryIntervalSeconds": 1,
            "maximumRetryIntervalSeconds": 120, "retryIntervalBackoffMultiplier": 2,
            "maxParallelism": None,
        },
    }  # fmt: skip
    old = await get(agent, "jobs/versions/steps", "j", "1", "s")
    assert (old["properties"], old["rowVersion"], old["path"]) == (doc, None, ["J", "1", "S"])


async def test_a_step_s_place_is_last_then_unchanged_then_as_given(agent):
    await put(agent, "job", "J", {})
    for name in "abc":
        await put_step(agent, name, {})

    await put_step(agent, "b", {"script": "select 2"})
    await put_step(agent, "c", {"stepId": 1})

    assert await names(agent, "jobs/steps", "J") == (["c", "a", "b"], None)
    for number in (0, 5):
        await agent.refused(
            "MU012", "put_step", p_job="J", p_name="d", p_condition={},
            p_doc={"targetGroup": ALL, "script": "x", "stepId": number},
        )  # fmt: skip
    await agent.refused("MU010", "put_step", p_job="K", p_name="d", p_condition={}, p_doc={})
    await agent.refused("MU012", "put_step", p_job="J", p_name="d", p_condition={}, p_doc={})


async def test_members_that_stay_keep_their_ids(agent):
    eu, db = (
        {"type": "SqlServer", "serverName": "eu1"},
        {"type": "SqlDatabase", "serverName": "us1", "databaseName": "d"},
    )
    await put(agent, "credential", "c", {"username": "u", "secret": "env:P"})
    first = (await put(agent, "target_group", "g", {"members": [eu, db]}))["item"]
    ids = [member["targetId"] for member in first["properties"]["members"]]
    assert first["properties"]["members"][0] == {
        "targetId": ids[0], "membershipType": "Include", "type": "SqlServer", "serverName": "eu1",
    }  # fmt: skip

    same = await put(agent, "target_group", "G", {"members": [eu, db]})
    named = eu | {"serverName": "EU1", "refreshCredential": {"name": "C", "asGiven": "/c"}}
    group = {"type": "TargetGroup", "targetGroup": ALL, "membershipType": "Exclude"}
    second = (await put(agent, "target_group", "g", {"members": [group, db, named]}))["item"]

    assert same == {"created": False, "item": first}
    members = second["properties"]["members"]
    assert [member["targetId"] for member in members[1:]] == [ids[1], ids[0]]
    assert members[0]["targetGroup"] == ALL
    assert (members[2]["serverName"], members[2]["refreshCredential"]) == (
        "EU1", {"name": "c", "asGiven": "/c"},
    )  # fmt: skip
    assert second["rowVersion"] > first["rowVersion"]
    error = await agent.refused(
        "MU011", "put_target_group", p_name="g", p_condition={}, p_doc={"members": [eu, db, eu]}
    )
    assert "member 3" in str(error)
    error = await agent.refused(
        "MU012",
        "put_target_group",
        p_name="g",
        p_condition={},
        p_doc={"members": [eu, {"type": "x"}]},
    )
    assert "member 2" in str(error)


async def test_a_server_that_left_the_directory_may_stay_a_member(account, agent):
    us = {"type": "SqlServer", "serverName": "us1"}
    await put(agent, "target_group", "g", {"members": [us]})
    await account.execute("delete from jobs_internal.server_directory where name = 'us1'")

    await put(
        agent, "target_group", "g", {"members": [{"type": "SqlServer", "serverName": "eu1"}, us]}
    )

    await agent.refused(
        "MU015", "put_target_group", p_name="h", p_condition={}, p_doc={"members": [us]}
    )


@pytest.mark.newest
async def test_ten_thousand_members_fit_and_one_more_does_not(agent):
    members = [
        {"type": "SqlDatabase", "serverName": "eu1", "databaseName": f"db{n}"}
        for n in range(10_001)
    ]

    error = await agent.refused(
        "MU016", "put_target_group", p_name="g", p_condition={}, p_doc={"members": members}
    )
    made = await put(agent, "target_group", "g", {"members": members[:-1]})
    again = await put(agent, "target_group", "g", {"members": members[:-1]})

    assert "10000" in str(error)
    assert len(made["item"]["properties"]["members"]) == 10_000
    assert again == made | {"created": False}


async def test_a_credential_s_secret_is_never_shown_and_kept_when_absent(account, agent):
    sealed = "sealed:" + secrets.token_hex(20)
    made = await put(agent, "credential", "c", {"username": "u", "secret": sealed})
    assert made["item"]["properties"] == {"username": "u"}

    for doc in ({"username": "v"}, {"username": "v", "secret": ""}):
        kept = await put(agent, "credential", "C", doc)
        assert kept["item"]["properties"] == {"username": "v"}
    stored = await account.fetch("select secret from jobs_internal.credential")
    assert [row[0] for row in stored] == [sealed]
    by_name = await put(agent, "credential", "c", {"username": "v", "secret": "vault:a/b#c"})
    assert by_name["item"]["properties"] == {"username": "v", "reference": "vault:a/b#c"}
    for doc in ({"username": "u"}, {"secret": "env:X"}, {"username": "u", "secret": "plain text"}):
        await agent.refused("MU012", "put_credential", p_name="d", p_doc=doc, p_condition={})


async def test_conditions_are_checked_against_what_is_there(agent):
    doc = {"username": "u", "secret": "env:A"}
    version = (await put(agent, "credential", "c", doc, {"ifNoneMatch": "*"}))["item"]["rowVersion"]

    for condition in (
        {"ifNoneMatch": "*"}, {"ifMatch": ["0"]}, {"ifMatch": []}, {"ifMatch": ["x", "*"]},
    ):  # fmt: skip
        await agent.refused("MU014", "put_credential", p_name="c", p_doc=doc, p_condition=condition)
    for condition in ({"ifMatch": "*"}, {"ifMatch": ["x", str(version)]}, {}):
        await put(agent, "credential", "c", doc, condition)
    for condition in ({"ifMatch": "*"}, {"ifMatch": ["1"]}):
        await agent.refused(
            "MU014", "put_credential", p_name="new", p_doc=doc, p_condition=condition
        )
        assert await delete(agent, "credentials", "new", condition=condition) is False
    await agent.refused(
        "MU014", "delete_item", p_kind="credentials", p_path=["c"], p_condition={"ifMatch": ["1"]},
        p_options={},
    )  # fmt: skip
    assert await delete(agent, "credentials", "c", condition={"ifMatch": [str(version)]}) is True


async def test_lists_go_page_by_page_in_their_order(agent):
    for name in ["b", "A", "c", "B2"]:
        await put(agent, "job", name, {})
    for name in ["x", "y", "z"]:
        await put_step(agent, name, {"stepId": 1}, job="b")

    assert await names(agent, "jobs") == (["A", "b", "B2", "c"], None)
    first, cursor = await names(agent, "jobs", top=2)
    await delete(agent, "jobs", "b")
    assert (first, await names(agent, "jobs", after=cursor, top=2)) == (
        ["A", "b"],
        (["B2", "c"], None),
    )
    for name in ["x", "y", "z"]:
        await put_step(agent, name, {"stepId": 1}, job="A")
    assert await names(agent, "jobs/steps", "a") == (["z", "y", "x"], None)
    assert await names(agent, "jobs/versions", "a", top=3) == (
        ["3", "2", "1"],
        {"rank": -1, "name": "1"},
    )
    assert await names(agent, "jobs/versions", "a", after={"rank": -1, "name": "1"}) == (
        ["0"],
        None,
    )
    assert await names(agent, "jobs/versions/steps", "a", "2") == (["y", "x"], None)
    assert await names(agent, "jobs/versions/steps", "a", "0") == ([], None)
    assert await names(agent, "targetGroups") == (["all"], None)
    assert await names(agent, "credentials") == ([], None)
    for kind, path in {"jobs/steps": ["no"], "jobs/versions/steps": ["a", "9"]}.items():
        await agent.refused(
            "MU010", "list_items", p_kind=kind, p_path=path, p_after=None, p_top=1, p_filters={}
        )
    assert await names(agent, "executions") == ([], None)


async def test_what_is_not_there_is_told_apart_from_what_can_not_be(agent):
    await put(agent, "job", "J", {})

    for kind, path in {
        "jobs": ["x"], "jobs/versions": ["J", "7"], "jobs/steps": ["J", "x"], "credentials": ["x"],
        "targetGroups": ["x"], "privateEndpoints": ["x"], "jobs/versions/steps": ["J", "x", "y"],
    }.items():  # fmt: skip
        await agent.refused("MU010", "get_item", p_kind=kind, p_path=path)
    await agent.refused("MU012", "get_item", p_kind="tables", p_path=["x"])
    await agent.refused("MU010", "get_item", p_kind="jobs/executions", p_path=["J", str(uuid4())])
    assert await delete(agent, "jobs", "x") is False
    assert await delete(agent, "jobs/steps", "J", "x") is False
    await agent.refused(
        "MU010", "delete_item", p_kind="jobs/steps", p_path=["x", "y"], p_condition={}, p_options={}
    )
    assert (await get(agent, "jobs/versions", "J", "0"))["properties"] == {}


async def test_a_deleted_job_is_gone_and_can_be_purged(account, agent, admin):
    await some_steps(admin, "a")
    await admin.call("sp_start_job", job_name="nightly")
    await agent.refused(
        "MU013", "delete_item", p_kind="jobs", p_path=["nightly"], p_condition={}, p_options={}
    )

    assert await delete(agent, "jobs", "Nightly", force=True, purgeHistory=True) is True

    await agent.refused("MU010", "get_item", p_kind="jobs", p_path=["nightly"])
    assert await account.fetch("select from jobs_internal.job") == []


async def test_private_endpoints_are_pending_until_somebody_decides(agent):
    made = await put(agent, "private_endpoint", "P", {"serverId": "/servers/EU1"})
    properties = made["item"]["properties"]
    assert (properties["serverId"], properties["status"]) == ("/servers/EU1", "Pending")
    assert properties["privateEndpointId"].startswith("EJ_")
    assert properties["privateEndpointId"].endswith("_P")

    same = await put(agent, "private_endpoint", "p", {"serverId": "/SERVERS/eu1"})
    error = await agent.refused(
        "MU012", "put_private_endpoint", p_name="p", p_doc={"serverId": "/x"}, p_condition={}
    )

    def decided(name, status, server_id="/servers/EU1"):
        return {"p_name": name, "p_status": status, "p_server_id": server_id}

    decide = "decide_private_endpoint"
    other = await agent.call(decide, **decided("p", "Approved", "/another"))
    item = await agent.call(decide, **decided("p", "Approved"))

    assert same == {"created": False, "item": made["item"]}
    assert error.constraint_name == "PropertyChangeUnsupported"
    assert item["properties"]["status"] == "Approved"
    assert other["properties"]["status"] == "Pending"
    await agent.refused("MU012", decide, **decided("p", "Maybe"))
    await agent.refused("MU010", decide, **decided("q", "Approved"))
    assert await names(agent, "privateEndpoints") == (["P"], None)
    assert await delete(agent, "privateEndpoints", "P") is True


async def test_the_agent_speaks_for_others_and_nobody_else_does(account, agent, admin):
    command = uuid4()
    async with agent.connection.transaction():
        await agent.connection.execute(
            "select jobs_internal.begin_command($1, 'put_job', 'd', 'alice', 'rest')", command
        )
        await put(agent, "job", "J", {})
        await agent.connection.execute("select jobs_internal.end_command($1, '{}')", command)
    await put(agent, "job", "K", {})
    await admin.connection.execute(
        "set muster.caller = 'mallory'; set muster.door = 'rest'; set muster.command_id = 'x'"
    )
    await admin.call("sp_add_job", job_name="L")

    rows = await account.fetch(
        "select action, caller, login, door, command_id, detail ->> 'job_name'"
        " from jobs_internal.audit where action like '%job' order by audit_id"
    )
    who, agents = account.administrator.name, account.roles.agent
    assert [tuple(row) for row in rows] == [
        ("sp_add_job", "alice", agents, "rest", command, "J"),
        ("sp_add_job", agents, agents, "psql", None, "K"),
        ("sp_add_job", who, who, "psql", None, "L"),
    ]
    assert (await get(agent, "jobs", "J"))["createdBy"] == "alice"


async def test_a_command_without_an_effect_of_its_own_is_noted_at_its_end(account, agent):
    command = uuid4()
    async with agent.connection.transaction():
        await agent.connection.execute(
            "select jobs_internal.begin_command($1, 'put_target_group', 'd', 'bob', 'rest')",
            command,
        )
        await put(agent, "target_group", "all", {"members": []})
        await agent.connection.execute("select jobs_internal.end_command($1, '{}')", command)

    rows = await account.fetch(
        "select action, caller from jobs_internal.audit where command_id = $1", command
    )
    assert [tuple(row) for row in rows] == [("put_target_group", "bob")]
