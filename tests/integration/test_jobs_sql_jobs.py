"""sp_add_job, sp_update_job, sp_delete_job: names, defaults, schedules and what a change leaves alone."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from tests.support.definitions import SERVERS, some_steps
from tests.support.control_db import installed


@pytest.fixture
async def account(settings, db, targets):
    made = await installed(settings, db, targets)
    await made.execute(SERVERS)
    return made


async def test_a_new_job_has_azure_s_defaults(admin):
    job_id = await admin.call("sp_add_job", job_name="Nightly")

    row = (await admin.connection.fetch("select * from jobs.jobs"))[0]
    assert list(row.keys())[:9] == [
        "job_name", "job_id", "job_version", "description", "enabled", "schedule_interval_type",
        "schedule_interval_count", "schedule_start_time", "schedule_end_time",
    ]  # fmt: skip
    assert tuple(row)[:9] == (
        "Nightly", job_id, 0, "", False, "Once", 1, datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 11, 59, 59, tzinfo=UTC),
    )  # fmt: skip
    assert row["created_by"] == row["modified_by"] == admin.connection._params.user
    versions = await admin.rows("select job_name, job_id, job_version from jobs.job_versions")
    assert versions == [("Nightly", job_id, 0)]


async def test_a_name_is_taken_without_regard_to_case_until_the_job_is_deleted(admin):
    first = await admin.call("sp_add_job", job_name="Nightly")
    await admin.call("sp_add_job", job_name="other")

    await admin.refused("MU011", "sp_add_job", job_name="NIGHTLY")
    error = await admin.refused("MU011", "sp_update_job", job_name="other", new_name="nightly")

    assert error.column_name == "new_name"
    await admin.call("sp_update_job", job_name="nightly", new_name="NIGHTLY")
    await admin.call("sp_delete_job", job_name="nightly")
    assert await admin.call("sp_add_job", job_name="nightly") != first
    assert await admin.rows("select job_name from jobs.jobs order by 1") == [
        ("nightly",),
        ("other",),
    ]


async def test_names_that_can_not_be_are_refused(admin):
    for name in [
        None,
        "",
        "x" * 129,
        *(f"a{c}b" for c in "?<>*%&:\\/\x01\x1f\x7f\x85"),
        "a ",
        "a.",
    ]:
        error = await admin.refused("MU012", "sp_add_job", job_name=name)
        assert error.column_name == "job_name"
    await admin.refused("MU010", "sp_update_job", job_name="nobody")
    await admin.refused("MU010", "sp_delete_job", job_name="nobody")


async def test_an_update_changes_what_is_given_and_empties_what_is_empty(admin):
    await admin.call(
        "sp_add_job", job_name="n", description="d", owner="ops", labels={"a": "b"}, priority=0,
        misfire_within_seconds=60, retention_days=9, overlap="allow", paused=True,
    )  # fmt: skip
    shown = (
        "select description, owner, labels::text, misfire_within_seconds, retention_days,"
        " overlap, paused from jobs.jobs"
    )
    before = await admin.value("select row_version from jobs.jobs")

    await admin.call("sp_update_job", job_name="N")
    assert await admin.value("select row_version from jobs.jobs") == before
    await admin.call("sp_update_job", job_name="N", retention_days=8)
    assert await admin.rows(shown) == [("d", "ops", '{"a": "b"}', 60, 8, "allow", True)]

    await admin.call(
        "sp_update_job", job_name="n", description="", owner="", labels={}, retention_days=-1,
        misfire_within_seconds=-1,
    )  # fmt: skip
    assert await admin.rows(shown) == [("", None, "{}", None, None, "allow", True)]
    assert await admin.value("select row_version from jobs.jobs") > before


async def test_each_value_that_can_not_be_is_refused_with_its_name(admin):
    wrong = {
        "description": "x" * 513,
        "schedule_interval_type": "Seconds",
        "schedule_interval_count": 0,
        "schedule_end_time": datetime(1, 1, 1, tzinfo=UTC),
        "schedule_cron": "* * * *",
        "schedule_time_zone": "Europe/Berlin",
        "misfire_policy": "never",
        "misfire_within_seconds": -2,
        "overlap": "both",
        "priority": 1,
        "owner": "x" * 257,
        "labels": {"a": 1},
        "retention_days": 0,
    }
    await admin.call("sp_add_job", job_name="n")

    for name, value in wrong.items():
        for call in (
            {"function": "sp_add_job", "job_name": "m"},
            {"function": "sp_update_job", "job_name": "n"},
        ):
            error = await admin.refused("MU012", **call, **{name: value})
            assert error.column_name == name
            assert name in str(error)


async def test_cron_is_read_field_by_field(admin):
    right = [
        "* * * * *", "*/5 0-23/2 1,15 JAN-mar sun,1-5", "0 0 31 12 7", "  5   4 * * mon ",
        "@hourly", "@daily", "@weekly", "@monthly", "@yearly", "59 23 31 dec sat",
    ]  # fmt: skip
    wrong = [
        "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * 0 *",
        "* * * * 8", "5-1 * * * *", "*/0 * * * *", "5/5 * * * *", "mon * * * *", "* * * mon *",
        "* * * * jan", ",1 * * * *", "1,,2 * * * *", "a b c d e", "* * * * * *", "@reboot", "-1 * * * *",
        "1- * * * *", "* * * xyz *", "1e1 * * * *",
    ]  # fmt: skip
    await admin.call("sp_add_job", job_name="n")

    for cron in right:
        await admin.call("sp_update_job", job_name="n", schedule_cron=cron)
        assert await admin.value("select schedule_cron from jobs.jobs") == cron
    for cron in wrong:
        error = await admin.refused("MU012", "sp_update_job", job_name="n", schedule_cron=cron)
        assert error.column_name == "schedule_cron"


async def test_cron_and_interval_take_each_other_s_place(admin):
    shown = (
        "select schedule_interval_type, schedule_interval_count, schedule_cron, schedule_time_zone"
        " from jobs.jobs"
    )
    await admin.call(
        "sp_add_job", job_name="n", schedule_cron="@daily", schedule_time_zone="Europe/Berlin"
    )
    assert await admin.rows(shown) == [("Once", 1, "@daily", "Europe/Berlin")]

    await admin.call(
        "sp_update_job", job_name="n", schedule_interval_type="Hours", schedule_interval_count=6
    )
    assert await admin.rows(shown) == [("Hours", 6, None, None)]
    await admin.call("sp_update_job", job_name="n", schedule_cron="@weekly")
    assert await admin.rows(shown) == [("Once", 6, "@weekly", None)]
    await admin.call("sp_update_job", job_name="n", schedule_cron="")
    assert await admin.rows(shown) == [("Once", 6, None, None)]
    await admin.refused(
        "MU012",
        "sp_update_job",
        job_name="n",
        schedule_interval_type="Hours",
        schedule_cron="@daily",
    )


async def test_a_time_zone_is_an_exact_iana_name(admin):
    for zone in ["UTC", "Europe/Berlin", "America/Argentina/Ushuaia"]:
        await admin.call(
            "sp_add_job", job_name=zone.replace("/", "-"), schedule_cron="@daily",
            schedule_time_zone=zone,
        )  # fmt: skip
    for zone in ["europe/berlin", "Mars/Olympus", "posix/Europe/Berlin", "+02:00", "UTC+3"]:
        error = await admin.refused(
            "MU012", "sp_add_job", job_name="n", schedule_cron="@daily", schedule_time_zone=zone
        )
        assert error.column_name == "schedule_time_zone"


async def test_an_edited_or_enabled_schedule_counts_from_now(account, admin):
    since = "select scheduled_since from jobs_internal.job"
    slot = "update jobs_internal.job set next_slot = '2030-01-01+00' returning scheduled_since"
    await admin.call("sp_add_job", job_name="n")
    edits = [
        {"enabled": True},
        {"schedule_interval_type": "Days"},
        {"schedule_interval_count": 2},
        {"schedule_start_time": datetime(2026, 1, 1, tzinfo=UTC)},
        {"schedule_end_time": datetime(2036, 1, 1, tzinfo=UTC)},
        {"schedule_cron": "@daily"},
        {"schedule_time_zone": "Asia/Tokyo"},
        {"enabled": False},
    ]

    for edit in edits:
        before = (await account.fetch(slot))[0][0]
        await admin.call("sp_update_job", job_name="n", **edit)
        assert (await account.fetch(since))[0][0] > before, edit
        assert await admin.value("select next_slot from jobs.jobs") is None, edit

    before = (await account.fetch(slot))[0][0]
    await admin.call("sp_update_job", job_name="n", description="x", overlap="allow")
    assert (await account.fetch(since))[0][0] == before
    assert await admin.value("select next_slot from jobs.jobs") is not None


async def test_a_job_of_type_once_shows_when_it_starts(account, admin):
    await admin.call("sp_add_job", job_name="n", enabled=True)

    async def shown():
        item = await admin.call("get_item", p_kind="jobs", p_path=["n"])
        times = item["properties"]
        return times.get("nextRunTime"), times["schedule"]["since"]

    at, since = await shown()
    assert at == since, "the default start is the beginning of time"
    start = datetime(2090, 1, 1, tzinfo=UTC)
    await admin.call("sp_update_job", job_name="n", schedule_start_time=start)
    assert datetime.fromisoformat((await shown())[0]) == start
    await account.execute("update jobs_internal.job set next_slot = 'infinity'")
    assert (await shown())[0] is None, "the scheduler found that it has no slot"


async def test_a_running_job_is_deleted_by_force_only_and_its_runs_are_stopped(account, admin):
    await some_steps(admin, "a")
    run = await admin.call("sp_start_job", job_name="nightly")

    error = await admin.refused("MU013", "sp_delete_job", job_name="nightly")
    await admin.call("sp_delete_job", job_name="nightly", force=True)

    assert "force" in error.hint
    rows = await account.fetch(
        "select lifecycle from jobs_internal.job_execution where job_execution_id = $1", run
    )
    assert [tuple(row) for row in rows] == [("Canceled",)]
    for view in ("jobs", "job_versions", "jobsteps", "jobstep_versions", "job_executions"):
        assert await admin.rows(f"select * from jobs.{view}") == []
    await admin.refused("MU010", "sp_add_jobstep", job_name="nightly", command="x")


async def test_a_system_job_is_not_changed_by_people(account, admin):
    await some_steps(admin, "a", job="ours")
    await account.execute("update jobs_internal.job set system = true")

    for function, more in {
        "sp_update_job": {"description": "x"},
        "sp_delete_job": {},
        "sp_add_jobstep": {"step_name": "b", "command": "x", "target_group_name": "all"},
        "sp_update_jobstep": {"step_id": 1, "command": "x"},
        "sp_delete_jobstep": {"step_id": 1},
    }.items():
        await admin.refused("MU013", function, job_name="ours", **more)


async def test_every_change_is_noted_with_who_and_what(account, admin):
    await some_steps(admin, "a")
    await admin.call("sp_update_job", job_name="nightly", new_name="n2", owner="o" * 9)
    await admin.refused("MU010", "sp_delete_job", job_name=str(uuid4()))
    await admin.call("sp_delete_job", job_name="n2")

    rows = await account.fetch(
        "select action, caller, login, door, detail ->> 'job_name' from jobs_internal.audit"
        " where action like 'sp_%' order by audit_id"
    )
    who = account.administrator.name
    assert [tuple(row) for row in rows] == [
        ("sp_add_job", who, who, "psql", "nightly"),
        ("sp_add_target_group", who, who, "psql", None),
        ("sp_add_jobstep", who, who, "psql", "nightly"),
        ("sp_update_job", who, who, "psql", "nightly"),
        ("sp_delete_job", who, who, "psql", "n2"),
    ]
