"""schemathesis on what lies in an account, with a real control database; no engine moves anything.

Links of the document are followed: what was made is read, changed, started, cancelled and deleted.
"""

from pathlib import Path

import pytest

from tests.fuzz.fuzzing import ASKED, fuzz
from tests.support.accounts import SERVER, account, start_control_plane
from tests.support.arm import TOKEN

# Their answers need an engine, or have no end; other tests have them.
UNANSWERED = [
    f"--exclude-operation-id={operation}"
    for operation in (
        "JobTargetGroups_Resolve", "JobTargetGroups_Doctor", "JobCredentials_Test", "Jobs_Plan",
        "JobAgents_StreamEvents", "JobExecutions_StreamEvents",
    )
]  # fmt: skip
LOGIN = {"username": "u", "password": "p"}


@pytest.mark.timeout(3600)
def test_no_answer_inside_an_account_surprises(settings, targets, tmp_path: Path) -> None:
    with start_control_plane(
        settings, targets, tmp_path / "launcher", own_launcher=False
    ) as control_plane:
        control_plane.database("a")
        control_plane.begin("a")
        control_plane.until(
            lambda: control_plane.http.get(f"{account('a')}/jobs").status_code == 200
        )
        there = fill(control_plane)
        arguments = [r"--include-path-regex=jobAgents/\{jobAgentName\}/", *UNANSWERED]
        if not ASKED:
            arguments.append("--phases=examples,fuzzing,stateful")
        fuzz(control_plane.plane.url, TOKEN, tmp_path, there, *arguments, short=2)


def fill(control_plane) -> dict[str, str]:
    """One of each, and their names."""
    member = {"type": "SqlServer", "serverName": SERVER.rpartition("/")[2]}
    step = {"targetGroup": f"{account('a')}/targetGroups/g", "action": {"value": "select 1"}}
    for path, properties in {
        "credentials/c": LOGIN,
        "targetGroups/g": {"members": [member]},
        "jobs/j": {},
        "jobs/j/steps/s": step | {"credential": f"{account('a')}/credentials/c"},
        "privateEndpoints/p": {"targetServerAzureResourceId": SERVER},
    }.items():
        made = control_plane.http.put(f"{account('a')}/{path}", json={"properties": properties})
        assert made.is_success, made.text
    started = control_plane.http.post(f"{account('a')}/jobs/j/start").raise_for_status().json()
    subscription, group = SERVER.split("/")[2], SERVER.split("/")[4]
    return {
        "subscriptionId": subscription, "resourceGroupName": group,
        "serverName": member["serverName"], "jobAgentName": "a", "credentialName": "c",
        "targetGroupName": "g", "jobName": "j", "stepName": "s", "jobVersion": "1",
        "privateEndpointName": "p", "jobExecutionId": started["name"],
    }  # fmt: skip
