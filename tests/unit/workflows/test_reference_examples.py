"""The JSON examples of docs/reference are bodies that the API accepts; tests/unit/workflows/test_start.py has those of starts."""

import json
import re
from pathlib import Path

import msgspec

from workflows.model.step import StepProperties
from workflows.validation.step import step
from workflows.validation.target_group import target_group

REFERENCE = Path(__file__).parents[3] / "docs/reference"


def example(page):
    (text,) = re.findall(r"```json\n(.*?)```", (REFERENCE / page).read_text("utf-8"), re.DOTALL)
    return json.loads(text)


def test_the_rollout_of_the_reference_is_accepted():
    shown = {
        "action": {"value": "select 1"},
        "targetGroup": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Sql/servers/srv/jobAgents/a/targetGroups/t",
    }

    assert step("s", shown | example("rollouts.md")) == []
    assert step("s", shown | {"rollout": example("rollouts.md")["rollout"] | {"waves": [0]}})


def test_the_output_of_the_reference_is_accepted():
    shown = example("output.md")

    assert step("s", shown) == []
    assert convert_step(shown) == shown
    assert step("s", {"output": shown["output"] | {"tableName": ""}})


def convert_step(properties):
    """As a request is read; an unknown property is refused."""
    return msgspec.to_builtins(msgspec.convert(properties, StepProperties))


def test_the_member_of_the_reference_is_accepted():
    member = example("target-groups.md")

    assert target_group("g", {"members": [member]}) == []
    assert target_group("g", {"members": [member | {"labels": "tier in"}]})
