"""Only what is stated is compared; the patch has exactly what differs."""

import pytest

from muster.cli.declared import compare
from muster.cli.declared.kinds import CREDENTIALS, JOB, STEP, TARGET_GROUP
from tests.unit.cli.fake_rest import ACCOUNT

SCHEDULE = {
    "type": "Recurring", "enabled": True, "cron": "30 3 * * *", "timeZone": "UTC", "overlap": "skipTarget",
    "startTime": "0001-01-01T00:00:00Z", "misfire": {"policy": "runOnce"},
}  # fmt: skip
AS_SHOWN = {
    "description": "",
    "labels": {"a": "1", "muster.applied": "true"},
    "version": 7,
    "schedule": SCHEDULE,
}
STEP_AS_SHOWN = {
    "stepId": 1,
    "targetGroup": f"{ACCOUNT}/targetGroups/tenants",
    "action": {"type": "TSql", "source": "Inline", "value": "select 1"},
    "executionOptions": {"timeoutSeconds": 43200, "retryIntervalBackoffMultiplier": 2.0},
    "rollout": {"waves": [1, "5%"], "gate": "manual"},
}


def patch(fields, stated, current):
    made = compare.patch(fields, stated, current, ACCOUNT)
    old, new = (compare.plainly(fields, each, ACCOUNT) for each in (current, stated))
    before, after = compare.shown(fields, new, old)
    assert (before == after) == (made == {}), (
        "the difference that is shown is the one that is written"
    )
    return made


@pytest.mark.parametrize(
    "stated",
    [
        {},
        {"description": ""},
        {"owner": None, "retentionDays": None},
        {"labels": {"a": "1"}},
        {"schedule": {}},
        {"schedule": {"cron": "30 3 * * *", "enabled": True}},
        {
            "schedule": {
                "startTime": "0001-01-01T00:00:00+00:00",
                "misfire": {"withinSeconds": None},
            }
        },
    ],
)
def test_what_a_file_leaves_out_does_not_differ(stated):
    assert patch(JOB.properties, stated, AS_SHOWN) == {}


@pytest.mark.parametrize(
    ("stated", "made"),
    [
        ({"description": "d"}, {"description": "d"}),
        ({"labels": {"b": "2"}}, {"labels": {"a": None, "b": "2"}}),
        ({"labels": {}}, {"labels": {"a": None}}),
        ({"schedule": {"cron": "0 4 * * *", "enabled": True}}, {"schedule": {"cron": "0 4 * * *"}}),
        ({"schedule": {"type": "Recurring", "interval": "PT1H"}}, {"schedule": {"interval": "PT1H"}}),
        ({"schedule": {"misfire": {"withinSeconds": 60}}}, {"schedule": {"misfire": {"withinSeconds": 60}}}),
        ({"schedule": {"enabled": False}}, {"schedule": {"enabled": False}}),
        ({"runAttempts": {"enabled": True}}, {"runAttempts": {"enabled": True}}),
    ],
)  # fmt: skip
def test_a_patch_has_only_what_differs(stated, made):
    assert patch(JOB.properties, stated, AS_SHOWN) == made


@pytest.mark.parametrize(
    ("stated", "made"),
    [
        ({"targetGroup": "TENANTS", "credential": None, "output": None}, {}),
        ({"targetGroup": f"{ACCOUNT.upper()}/targetGroups/tenants"}, {}),
        ({"targetGroup": "others"}, {"targetGroup": f"{ACCOUNT}/targetGroups/others"}),
        (
            {"targetGroup": "/elsewhere/targetGroups/x"},
            {"targetGroup": "/elsewhere/targetGroups/x"},
        ),
        (
            {
                "action": {"value": "select 1"},
                "executionOptions": {"retryIntervalBackoffMultiplier": 2},
            },
            {},
        ),
        ({"action": {"value": "select 1\n"}}, {"action": {"value": "select 1\n"}}),
        ({"rollout": {"waves": [1, "5%"]}}, {}),
        (
            {"rollout": {"waves": ["5%", 1], "gate": None}},
            {"rollout": {"waves": ["5%", 1], "gate": None}},
        ),
        ({"rollout": None}, {"rollout": None}),
        ({"guard": False}, {"guard": False}),
    ],
)
def test_steps_name_their_references(stated, made):
    assert patch(STEP, stated, STEP_AS_SHOWN) == made


MEMBERS = [
    {"targetId": "x", "type": "SqlServer", "membershipType": "Include", "serverName": "eu1",
     "refreshCredential": f"{ACCOUNT}/credentials/login"},
    {"targetId": "y", "type": "TargetGroup", "membershipType": "Exclude", "targetGroup": f"{ACCOUNT}/targetGroups/old"},
]  # fmt: skip


@pytest.mark.parametrize(
    ("members", "same"),
    [
        ([{"type": "SqlServer", "serverName": "EU1", "refreshCredential": "login"},
          {"type": "TargetGroup", "targetGroup": "old", "membershipType": "Exclude"}], True),
        ([{"type": "SqlServer", "serverName": "eu1"},
          {"type": "TargetGroup", "targetGroup": "old", "membershipType": "Exclude"}], False),
        ([{"type": "SqlServer", "serverName": "eu1", "refreshCredential": "login"}], False),
        ([{"type": "SqlServer", "serverName": "eu1", "refreshCredential": "login"},
          {"type": "TargetGroup", "targetGroup": "old"}], False),
    ],
)  # fmt: skip
def test_the_members_of_a_group_are_whole(members, same):
    made = patch(TARGET_GROUP.properties, {"members": members}, {"members": MEMBERS})

    assert (made == {}) == same


def test_servers_of_a_credential_have_no_order():
    current = {"username": "u", "servers": ["a", "b"]}

    assert patch(CREDENTIALS.properties, {"servers": ["B", "a"]}, current) == {}
    assert patch(CREDENTIALS.properties, {"servers": ["*"]}, current) == {"servers": ["*"]}


def test_what_rest_needs_is_named_with_its_path():
    assert compare.missing(STEP, {"output": {"tableName": "t"}, "action": {}}) == [
        "targetGroup", "output.serverName", "output.databaseName", "action.value",
    ]  # fmt: skip
