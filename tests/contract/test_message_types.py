"""The structs of hosts and of the core have the names of the composite types that they are sent or read as."""

import re
from pathlib import Path

import pytest

from engine.attempt.outcome import Outcome
from engine.host.reporter import KEY_FIELDS
from engine.model.task import Task
from engine.scheduling.runs import CompletionItem

SCHEMA = Path(__file__).parents[2] / "engine/sql/schema.sql"
TYPE = re.compile(r"^create type jobs_internal\.(\w+) as \((.*?)^\);", re.MULTILINE | re.DOTALL)
ATTRIBUTES = {
    name: tuple(line.split()[0] for line in body.strip().splitlines())
    for name, body in TYPE.findall(SCHEMA.read_text(encoding="utf-8"))
}


def test_a_result_has_the_fields_of_its_type():
    assert sorted(ATTRIBUTES["task_result"]) == sorted((*KEY_FIELDS, *Outcome.__struct_fields__))


def test_a_completion_item_has_the_fields_of_its_type():
    assert sorted(ATTRIBUTES["completion_item"]) == sorted(CompletionItem.__struct_fields__)


def test_a_dispatched_task_has_every_field_of_a_task():
    more = set(ATTRIBUTES["dispatched_task"]) - set(Task.__struct_fields__)

    assert more == {"number", "kind", "slot", "started"}
    assert set(Task.__struct_fields__) < set(ATTRIBUTES["dispatched_task"])


@pytest.mark.parametrize("name", ["task_start", "commit_intent", "task_result", "task_release"])
def test_every_item_of_a_report_begins_with_the_key_of_its_task(name):
    assert ATTRIBUTES[name][: len(KEY_FIELDS)] == KEY_FIELDS
