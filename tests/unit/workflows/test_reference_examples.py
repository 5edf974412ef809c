"""The JSON examples of docs/reference are bodies that the API accepts; tests/unit/workflows/test_start.py has those of starts."""

import json
import re
import time
from pathlib import Path
from typing import get_args

from engine import sql
from muster.core.settings import Secret, Settings
from muster.core.webhook import sign
from workflows.model.webhook import Notification

import msgspec

from workflows.model.step import StepProperties
from workflows.validation.step import step
from workflows.validation.target_group import target_group
from workflows.validation.webhook import webhook

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


def test_the_webhook_of_the_reference_is_accepted():
    properties, request = map(
        json.loads, re.findall(r"```json\n(.*?)```", page("webhooks.md"), re.DOTALL)
    )
    settings = Settings(database_url=Secret("x"))

    assert webhook("ops", properties, settings) == []
    assert webhook("ops", properties | {"url": "https://127.0.0.1/"}, settings)
    assert set(request["events"]) < set(get_args(Notification))
    words = set(re.findall(r"^\| `(\w+)` \| ", page("webhooks.md"), re.MULTILINE))
    assert set(get_args(Notification)) < words


def test_the_page_about_events_has_every_kind():
    functions = Path(sql.__file__).parent
    written = "".join(each.read_text("utf-8") for each in functions.rglob("*.sql"))
    column = re.search(r"comment on column jobs_internal.event.kind is (.*?);", written, re.DOTALL)
    kinds = set(re.findall(r"\b[a-z]+[A-Z]\w+|\btest\b", column[1]))

    assert len(kinds) == 15
    assert kinds < set(re.findall(r"`(\w+)`", page("events.md")))


def test_the_receiver_of_the_how_to_accepts_what_is_signed():
    (code,) = re.findall(r"```python\n(.*?)```", page("../how-to/verify-a-webhook.md"), re.DOTALL)
    names: dict = {}
    exec(code, names)
    now = int(time.time())

    def headers(timestamp, secret="a secret"):
        signature = sign(Secret(secret), timestamp, b"{}")
        return {"Muster-Timestamp": str(timestamp), "Muster-Signature": signature}

    assert names["is_genuine"](headers(now), b"{}", "a secret")
    assert not names["is_genuine"](headers(now), b"{ }", "a secret")
    assert not names["is_genuine"](headers(now, "another"), b"{}", "a secret")
    assert not names["is_genuine"](headers(now - 301), b"{}", "a secret")


def page(name):
    return (REFERENCE / name).read_text("utf-8")
