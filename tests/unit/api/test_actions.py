"""What a request has and is not read is refused: a run on more targets than was meant can't be taken back."""

import json

import pytest

from api import envelope
from api.handlers import _arguments
from api.resources.executions import EXECUTIONS
from api.resources.jobs import JOBS
from api.resources.target_groups import TARGET_GROUPS
from muster.core.errors import InvalidRequest
from muster.core.ids import ResourceId
from tests.support.requests import request_context

TARGETS = [{"serverName": "eu1"}]


def read(action, body):
    context = request_context(headers={"content-type": "application/json"})
    return _arguments(action, context, json.dumps(body).encode())


@pytest.mark.parametrize("action", [JOBS.actions["plan"], TARGET_GROUPS.actions["resolve"]])
def test_an_action_without_options_takes_none(action):
    assert read(action, {}) == []
    with pytest.raises(InvalidRequest, match="'targets' is not known"):
        read(action, {"targets": TARGETS})


@pytest.mark.parametrize("name", ["planId", "targets", "limit", "overrides"])
def test_null_does_not_start_everything(name):
    start = JOBS.actions["start"]

    assert read(start, {"targets": TARGETS}) == [{"targets": TARGETS}]
    with pytest.raises(InvalidRequest, match=f"null is no value of '{name}'"):
        read(start, {name: None})
    with pytest.raises(InvalidRequest, match="null is no value of 'databaseName'"):
        read(start, {"targets": [{"serverName": "eu1", "databaseName": None}]})


def test_an_execution_that_is_put_takes_no_options():
    run = ResourceId.parse(f"{JOB}/executions/7c1e0f5a-93c4-4f0e-8a2b-5d6b7c8d9e10")

    assert envelope.read(EXECUTIONS, run, {"properties": {}}, merge=False).properties == {}
    with pytest.raises(InvalidRequest, match="leave the properties out"):
        envelope.read(EXECUTIONS, run, {"properties": {"limit": 1}}, merge=False)


JOB = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Sql/servers/v/jobAgents/a/jobs/j"
