"""What the attempts of runs may be, and that the examples of the reference say it."""

import json
import re
import shlex
from pathlib import Path

import pytest

from api.shape import Findings, shape_of
from muster.cli.main import parser
from workflows.model.job import JobProperties
from workflows.validation.job import job
from workflows.validation.run_attempts import run_attempts

PAGE = (Path(__file__).parents[3] / "docs/reference/run-attempts.md").read_text("utf-8")
EXAMPLES = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).splitlines()


def found(body):
    findings = Findings(merge=False)
    clean = shape_of(JobProperties)(body, "properties", findings)
    return [error.target for error in findings.errors or job("j", clean)]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_reference_is_a_property_of_a_job(example):
    assert found(json.loads(example)) == []
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_reference_is_a_command(command):
    parser().parse_args(shlex.split(command)[1:])
    assert len(COMMANDS) == 4


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({}, "enabled"),
        ({"enabled": "on"}, "enabled"),
        ({"enabled": True, "maxSuccessiveWithoutProgress": 0}, "maxSuccessiveWithoutProgress"),
        ({"enabled": True, "maxWithoutProgress": 101}, "maxWithoutProgress"),
        ({"enabled": True, "maxWithProgress": -1}, "maxWithProgress"),
        ({"enabled": True, "maxWithProgres": 1}, "maxWithProgres"),
        ({"enabled": True, "backoffSeconds": []}, "backoffSeconds"),
        ({"enabled": True, "backoffSeconds": [1] * 21}, "backoffSeconds"),
        ({"enabled": True, "backoffSeconds": [0, 86_401]}, "backoffSeconds[1]"),
        ({"enabled": True, "backoffSeconds": [1.5]}, "backoffSeconds[0]"),
        ({"enabled": False, "maxWithProgress": 3}, "maxWithProgress"),
    ],
)
def test_what_is_wrong_is_named(rules, field):
    assert found({"runAttempts": rules}) == [f"properties.runAttempts.{field}"]


def test_a_patch_must_not_leave_out_whether_a_run_has_attempts():
    (error,) = run_attempts({"maxWithProgress": 3})

    assert error.target == "properties.runAttempts.enabled"


def test_numbers_of_an_account_hold_for_jobs_that_turn_attempts_on():
    rules = {"enabled": False, "maxWithProgress": 3}

    assert run_attempts(rules, defaults=True) == []
    (error,) = run_attempts(rules)
    assert error.code == "OptionHasNoEffect"
