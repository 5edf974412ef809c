from types import SimpleNamespace
from uuid import uuid4

import pytest

from fsm.database_steps import EXISTED, _to_be_dropped

ENDPOINT = {"endpoint": {"host": "db"}}


@pytest.mark.parametrize(
    ("server", "own", "scratch", "payload", "dropped"),
    [
        ({}, None, {EXISTED: False}, {}, True),  # embedded: Drop by default
        ({}, "Retain", {EXISTED: False}, {}, False),
        ({}, None, {EXISTED: True}, {}, False),  # found there, not made by us
        ({}, "Drop", {EXISTED: True}, {}, True),
        ({}, None, {}, {}, False),  # deleted before anything was tried
        ({}, None, {EXISTED: False}, {"cascade": True}, False),
        (ENDPOINT, None, {EXISTED: False}, {}, False),  # registered: Retain by default
        (ENDPOINT, "Drop", {EXISTED: False}, {}, True),
        (ENDPOINT, "Drop", {EXISTED: False}, {"cascade": True}, False),
        (ENDPOINT | {"deletionPolicy": "Drop"}, None, {EXISTED: False}, {}, True),
        (ENDPOINT | {"deletionPolicy": "Drop"}, None, {EXISTED: True}, {}, False),
        (ENDPOINT | {"deletionPolicy": "Drop"}, "Retain", {EXISTED: False}, {}, False),
    ],
)
def test_what_is_dropped(server, own, scratch, payload, dropped):
    properties = {"administratorLogin": "a"} | server
    resource = SimpleNamespace(properties={"deletionPolicy": own} if own else {}, uid=uuid4())
    ctx = SimpleNamespace(scratch=scratch, payload=payload, resource=resource)
    parent = SimpleNamespace(
        properties=properties, provisioning_state="Succeeded", observed={"state": "Ready"}
    )

    assert _to_be_dropped(ctx, parent) is dropped


@pytest.mark.parametrize(
    ("provisioning", "state"), [("Deleting", "Deleting"), ("Failed", "Deleting")]
)
def test_nothing_is_dropped_on_a_server_that_goes(provisioning, state):
    ctx = SimpleNamespace(
        scratch={EXISTED: False}, payload={}, resource=SimpleNamespace(properties={})
    )
    parent = SimpleNamespace(
        properties={"administratorLogin": "a"},
        provisioning_state=provisioning,
        observed={"state": state},
    )

    assert _to_be_dropped(ctx, parent) is False
