"""What the body of a start may say, and that the examples of the reference say it."""

import json
import re
from pathlib import Path

import pytest

from api.shape import Findings, shape_of
from workflows.model.start import Start
from workflows.validation.start import start

PAGE = (Path(__file__).parents[3] / "docs/reference/plans.md").read_text("utf-8")
EXAMPLES = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
PLAN = "7c1e0f5a-93c4-4f0e-8a2b-5d6b7c8d9e10"


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_reference_is_a_start(example):
    findings = Findings(merge=False)
    body = shape_of(Start)(json.loads(example), "", findings)

    assert (findings.errors, start(body)) == ([], [])
    assert len(EXAMPLES) == 4


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"planId": "x"}, "planId"),
        ({"planId": PLAN, "limit": 1}, "limit"),
        ({"planId": PLAN, "targets": [{"serverName": "a"}]}, "targets"),
        ({"planId": PLAN, "overrides": {"retryAttempts": 0}}, "overrides"),
        ({"limit": 0}, "limit"),
        ({"targets": []}, "targets"),
        ({"targets": [{"serverName": ""}]}, "targets[0].serverName"),
        ({"targets": [{"serverName": "a", "databaseName": "\u0007"}]}, "targets[0].databaseName"),
        ({"targets": [{"serverName": "a", "schemaName": "b"}]}, "targets[0].databaseName"),
        ({"overrides": {}}, "overrides"),
        ({"overrides": {"timeoutSeconds": 0}}, "overrides.timeoutSeconds"),
        ({"overrides": {"retryAttempts": -1}}, "overrides.retryAttempts"),
        ({"overrides": {"rollout": {"waves": []}}}, "overrides.rollout.waves"),
    ],
)
def test_what_is_wrong_is_named(body, field):
    assert [error.target for error in start(body)] == [field]


def test_an_option_that_belongs_to_the_job_is_refused():
    findings = Findings(merge=False)
    shape_of(Start)({"overrides": {"guard": True}}, "", findings)

    assert [each.target for each in findings.errors] == ["overrides.guard"]
