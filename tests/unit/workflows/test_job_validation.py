"""What may be said below an account; every function returns all that is wrong."""

import pytest

from muster.core.errors import InvalidRequest
from muster.core.ids import ResourceId
from muster.core.settings import Secret, Settings
from workflows.executions import filters
from workflows.items import condition
from workflows.steps import document
from workflows.validation import references
from workflows.validation.credential import credential
from workflows.validation.job import job
from workflows.validation.step import step
from workflows.validation.target_group import target_group
from tests.support.definitions import CATALOG_PATHS
from tests.support.plane import a_call

SETTINGS = Settings(
    database_url=Secret("x"), credential_references=("env:FLEET_", "file:/run/", "vault:kv/")
)
OUTPUT = {"serverName": "s", "databaseName": "d", "tableName": "t"}
ACCOUNT = ResourceId.parse(
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.Sql/servers/srv/jobAgents/a"
)


def targets(errors):
    return {error.target for error in errors}


def codes(errors):
    return {error.code for error in errors}


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x" * 129,
        "a/b",
        "a%b",
        "a:b",
        "end.",
        "end ",
        " a",
        "con",
        "\u202egnp",
        "naïve",
        "a\x00",
    ],
)
def test_names_are_plain(name):
    assert codes(job(name, {})) == {"InvalidResourceName"}


@pytest.mark.parametrize("name", ["nightly", "a job (2)", "x" * 128])
def test_spaces_are_fine(name):
    assert job(name, {}) == []


@pytest.mark.parametrize(
    "username", ["", " u", "u ", "u" * 64, "u\n", "x" * 129, "$(target_database_name)\x07"]
)
def test_a_user_name_is_a_role_s(username):
    wrong = credential("c", {"username": username}, SETTINGS)

    assert codes(wrong) == {"InvalidJobCredentialUsername"}


def test_a_user_name_may_have_variables():
    assert (
        credential("c", {"username": "owner_of_$(target_database_name)_" + "x" * 40}, SETTINGS)
        == []
    )


@pytest.mark.parametrize(
    ("reference", "allowed"),
    [
        ("env:FLEET_EU", True), ("env:HOME", False), ("file:/run/x", True),
        ("file:/run/../etc/shadow", False), ("vault:kv/fleet#password", True), ("plain", False),
        ("file:/run/a..b", True), ("vault:kv/", False), ("vault:kv/../sys/x#k", False),
    ],
)  # fmt: skip
def test_only_references_that_the_operator_lists_are_allowed(reference, allowed):
    wrong = credential("c", {"username": "u", "reference": reference}, SETTINGS)

    assert codes(wrong) == (set() if allowed else {"CredentialReferenceNotAllowed"})


def test_a_password_is_never_repeated():
    wrong = credential(
        "c", {"username": "u", "password": "s3cret" * 2000, "reference": "env:X"}, SETTINGS
    )

    assert wrong
    assert "s3cret" not in str(wrong)


@pytest.mark.parametrize(
    ("member", "wrong"),
    [
        ({"type": "SqlServer"}, {"serverName"}),
        ({"type": "SqlDatabase", "serverName": "s"}, {"databaseName"}),
        ({"type": "SqlElasticPool", "serverName": "s"}, {"elasticPoolName"}),
        ({"type": "SqlShardMap", "serverName": "s"}, {"databaseName", "shardMapName"}),
        ({"type": "SqlSchema", "serverName": "s"}, {"schemaPattern"}),
        ({"type": "SqlQuery", "serverName": "s", "databaseName": "d"}, {"query"}),
        ({"type": "SqlServer", "serverName": "s", "labels": "tier=gold,region in (eu,us)"}, set()),
        ({"type": "SqlServer", "serverName": "s", "labels": "tier in eu"}, {"labels"}),
        (
            {"type": "SqlElasticPool", "serverName": "s", "elasticPoolName": "p", "labels": "a"},
            {"labels"},
        ),
        ({"type": "TargetGroup", "serverName": "s"}, {"targetGroup", "serverName"}),
        ({"type": "SqlServer", "serverName": "s", "elasticPoolName": "p"}, {"elasticPoolName"}),
        ({"type": "SqlDatabase", "serverName": "s", "databaseName": "x" * 64}, {"databaseName"}),
        (
            {"type": "SqlSchema", "serverName": "s", "databaseName": "d", "schemaPattern": "t_%"},
            set(),
        ),
    ],
)
def test_a_member_says_what_its_type_needs_and_no_more(member, wrong):
    assert targets(target_group("g", {"members": [member]})) == {
        f"properties.members[0].{name}" for name in wrong
    }


def test_a_member_stands_once_but_may_be_excluded_as_well():
    member = {"type": "SqlServer", "serverName": "s"}
    again = member | {"serverName": "S"}
    excluded = member | {"membershipType": "Exclude"}

    assert targets(target_group("g", {"members": [member, excluded, again]})) == {
        "properties.members[2]"
    }


def test_members_have_a_quota():
    member = {"type": "SqlServer", "serverName": "s"}

    assert codes(target_group("g", {"members": [member] * 10_001})) == {"QuotaExceeded"}


@pytest.mark.parametrize(
    ("schedule", "wrong"),
    [
        ({}, {}),
        ({"type": "Recurring", "interval": "PT5M"}, {}),
        ({"type": "Recurring"}, {"interval": "InvalidDuration"}),
        ({"type": "Recurring", "interval": "PT0S"}, {"interval": "InvalidDuration"}),
        ({"type": "Recurring", "interval": "P99999Y"}, {"interval": "InvalidDuration"}),
        ({"type": "Once", "interval": "PT5M"}, {}),
        ({"cron": "* * * * * *"}, {"cron": "InvalidParameterValue"}),
        ({"cron": "0 2 * * *", "timeZone": "../etc/passwd"}, {"timeZone": "InvalidParameterValue"}),
        ({"cron": "0 2 * * *", "type": "Once"}, {"type": "InvalidParameterValue"}),
        ({"cron": "0 2 * * *", "type": "Recurring", "timeZone": "Europe/Berlin"}, {}),
        ({"timeZone": "Europe/Berlin"}, {"timeZone": "InvalidParameterValue"}),
        ({"startTime": "2031-01-02T00:00:00Z", "endTime": "2031-01-01T00:00:00Z"}, {"endTime": "InvalidParameterValue"}),
        ({"startTime": "soon"}, {"startTime": "InvalidParameterValue"}),
        ({"startTime": "2031-01-01T00:00:00"}, {"startTime": "InvalidParameterValue"}),
        ({"startTime": "0001-01-01T00:00:00Z", "endTime": "9999-12-31T11:59:59Z"}, {}),
        ({"misfire": {"policy": "runOnce", "withinSeconds": 0}}, {"misfire.withinSeconds": "InvalidParameterValue"}),
    ],
)  # fmt: skip
def test_a_schedule_is_sound(schedule, wrong):
    found = job("j", {"schedule": schedule})

    assert {
        error.target.removeprefix("properties.schedule."): error.code for error in found
    } == wrong


def test_all_that_is_wrong_with_a_job_is_told():
    given = {"priority": 1001, "retentionDays": 0, "owner": "x" * 257, "labels": {"-": "x"}}

    assert targets(job("", given)) == {
        "name", "properties.priority", "properties.retentionDays", "properties.owner", "properties.labels.-",
    }  # fmt: skip


@pytest.mark.parametrize("priority", [1, -1])
def test_a_priority_is_refused_as_long_as_it_has_no_effect(priority):
    (error,) = job("j", {"priority": priority})

    assert (error.target, error.code) == ("properties.priority", "OptionNotSupported")
    assert job("j", {"priority": 0}) == []


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"stepId": 0}, "stepId"),
        ({"executionOptions": {"timeoutSeconds": 0}}, "executionOptions.timeoutSeconds"),
        ({"executionOptions": {"retryAttempts": -1}}, "executionOptions.retryAttempts"),
        ({"executionOptions": {"initialRetryIntervalSeconds": 121}}, "executionOptions.maximumRetryIntervalSeconds"),
        ({"executionOptions": {"retryIntervalBackoffMultiplier": 0.5}}, "executionOptions.retryIntervalBackoffMultiplier"),
        ({"executionOptions": {"maxParallelism": 0}}, "executionOptions.maxParallelism"),
        ({"output": {"serverName": "", "databaseName": "d", "tableName": "t"}}, "output.serverName"),
        ({"output": {"serverName": "s", "databaseName": "d", "tableName": ""}}, "output.tableName"),
        ({"settings": {"lockTimeoutSeconds": -1}}, "settings.lockTimeoutSeconds"),
        ({"settings": {"parameters": {"a b": "1"}}}, "settings.parameters.a b"),
        ({"settings": {"parameters": {"Search_Path": "pg_catalog"}}}, "settings.parameters.Search_Path"),
        ({"settings": {"parameters": {"role": "postgres"}}}, "settings.parameters.role"),
        ({"settings": {"parameters": {"muster.job": "x"}}}, "settings.parameters.muster.job"),
        *(({"settings": {"searchPath": path}}, "settings.searchPath") for path in CATALOG_PATHS),
        ({"rollout": {"waves": []}}, "rollout.waves"),
        ({"rollout": {"waves": [0]}}, "rollout.waves"),
        ({"rollout": {"waves": ["101%"]}}, "rollout.waves"),
        ({"rollout": {"waves": [True]}}, "rollout.waves"),
        ({"rollout": {"waves": [1] * 101}}, "rollout.waves"),
        ({"rollout": {"waves": [1], "haltAfterFailures": "0%"}}, "rollout.haltAfterFailures"),
        ({"rollout": {"waves": [1], "pauseBetween": "10m"}}, "rollout.pauseBetween"),
        ({"rollout": {"waves": [1], "pauseBetween": "P10000D"}}, "rollout.pauseBetween"),
        ({"rollout": {"waves": [1], "orderBy": "random(x)"}}, "rollout.orderBy"),
        ({"rollout": {"waves": [1], "orderBy": ""}}, "rollout.orderBy"),
        ({"output": OUTPUT | {"schemaName": "pg_catalog"}}, "output.schemaName"),
        ({"output": OUTPUT | {"schemaName": "information_schema"}}, "output.schemaName"),
        ({"verify": {"sql": " "}}, "verify.sql"),
        ({"verify": {"sql": "select 1", "expect": "value"}}, "verify.value"),
        ({"verify": {"sql": "select 1", "value": 1}}, "verify.value"),
        ({"verify": {"sql": "select 1", "expect": "value", "value": []}}, "verify.value"),
        ({"retryOn": ["4000"]}, "retryOn[0]"),
        ({"slotsPerDatabase": 0}, "slotsPerDatabase"),
        ({"jitter": 1.1}, "jitter"),
    ],
)  # fmt: skip
def test_a_step_is_sound(given, wrong):
    assert targets(step("s", given)) == {f"properties.{wrong}"}


def test_a_step_that_follows_the_rollout_of_the_step_before_has_none_of_its_own():
    (error,) = step("s", {"advance": "perTarget", "rollout": {"waves": [1, "100%"]}})

    assert (error.target, error.code) == ("properties.rollout", "InvalidParameterValue")
    assert "write it there" in error.message
    assert step("s", {"advance": "perTarget"}) == []


def test_a_step_with_all_its_options_is_sound():
    given = {
        "stepId": 3, "executionOptions": {"retryAttempts": 0, "retryIntervalBackoffMultiplier": 1},
        "advance": "barrier", "retryOn": ["40001", "53"],
        "rollout": {"waves": [1, "5%", "100%"], "haltAfterFailures": 2, "pauseBetween": "PT10M"},
        "settings": {"lockTimeoutSeconds": 0.5, "parameters": {"work_mem": "1MB"}}, "jitter": 0,
        "output": OUTPUT | {"schemaName": "dbo", "includeTarget": True, "onMismatch": "addColumn"},
    }  # fmt: skip

    assert step("s", given) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("c", {"InvalidResourceId"}),
        ("/subscriptions/s", {"InvalidResourceId"}),
        (f"{ACCOUNT}/targetGroups/c", {"InvalidResourceId"}),
        (f"{ACCOUNT}/credentials/c".replace("/s/", "/t/"), {"MismatchingSubscriptionWithUrl"}),
        (f"{ACCOUNT}/credentials/c".replace("/g/", "/h/"), {"MismatchingResourceGroupNameWithUrl"}),
        (f"{ACCOUNT}/credentials/c".replace("/srv/", "/x/"), {"MismatchingServerNameWithUrl"}),
        (f"{ACCOUNT}x/credentials/c", {"MismatchingJobAccountNameWithUrl"}),
        (f"{ACCOUNT}/credentials/c".upper(), set()),
    ],
)
def test_a_reference_stays_in_its_account(text, code):
    assert codes(references.check("where", text, ACCOUNT, "credentials")) == code
    foreign = references.foreign(text, ACCOUNT, "credentials")
    assert (foreign is not None) == any(each.startswith("Mismatching") for each in code)


def test_a_step_becomes_the_control_database_s_document():
    group = f"{ACCOUNT}/targetGroups/Fleet"
    output = {
        "serverName": "s",
        "databaseName": "d",
        "tableName": "t",
        "credential": "",
        "onMismatch": "fail",
    }
    given = {"targetGroup": group, "action": {"value": "select 1"}, "output": output, "guard": True}

    made = document(given)

    assert made["targetGroup"] == {"name": "Fleet", "asGiven": group}
    assert made["credential"] is None
    assert made["options"] == {"guard": True, "output": {"onMismatch": "fail"}}
    assert made["output"] == {
        "type": "SqlDatabase", "serverName": "s", "databaseName": "d", "schemaName": "dbo",
        "tableName": "t", "credential": None,
    }  # fmt: skip


def test_filters_are_read_and_every_wrong_one_is_told():
    wanted, top = filters(
        {
            "isActive": "True",
            "createTimeMin": "2031-01-01T01:00:00+01:00",
            "$skip": "0",
            "$top": "7",
        }
    )
    assert wanted == {"isActive": True, "createTimeMin": "2031-01-01T00:00:00+00:00", "skip": 0}
    assert top == 7

    with pytest.raises(InvalidRequest) as refused:
        filters({"isActive": "1", "endTimeMax": "2031-01-01", "$skip": "x", "$top": str(2**63)})
    assert targets(refused.value.details) == {"isActive", "endTimeMax", "$skip", "$top"}


def test_conditions_are_row_versions():
    assert condition(a_call(if_match='"7", W/"8"', if_none_match="*")) == {
        "ifMatch": ["7", "8"], "ifNoneMatch": "*",
    }  # fmt: skip
    assert condition(a_call(if_match="*", if_none_match='"7"')) == {"ifMatch": "*"}
    assert condition(a_call()) == {}
