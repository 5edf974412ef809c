"""No operation ignores a query parameter that it does not know."""

import pytest

from api import examples
from api.endpoint import Endpoint, table
from api.resources import RESOURCES
from tests.support import arm

pytestmark = pytest.mark.newest

VERSION = examples.VERSION
GROUPS = f"{arm.SUBSCRIPTION}/resourceGroups"


def path_of(endpoint: Endpoint) -> str:
    return "".join(f"/{examples.name(s) if s.is_name else s.text}" for s in endpoint.path)


async def test_every_operation_refuses_an_unknown_one(settings, db):
    ignored = {}
    async with arm.client(settings) as call:
        for endpoint in table(RESOURCES):
            answer = await call.request(
                endpoint.method, path_of(endpoint), params={"api-version": VERSION, "colour": "2"}
            )
            refused = answer.headers.get("x-ms-error-code") if endpoint.method == "HEAD" else None
            if endpoint.method != "HEAD" and answer.is_error:
                refused = answer.json()["error"]["code"]
            if answer.status_code != 400 or refused not in {"InvalidQueryParameter", None}:
                ignored[endpoint.operation_id] = (answer.status_code, refused)

    assert ignored == {}


async def test_every_operation_refuses_a_value_that_its_parameter_does_not_list(settings, db):
    accepted, tried = {}, 0
    async with arm.client(settings) as call:
        for endpoint in table(RESOURCES):
            for name in endpoint.choices:
                tried += 1
                answer = await call.request(
                    endpoint.method, path_of(endpoint), params={"api-version": VERSION, name: "?"}
                )
                if answer.json().get("error", {}).get("code") != "InvalidParameterValue":
                    accepted[endpoint.operation_id, name] = answer.status_code

    assert tried > 3
    assert accepted == {}


async def test_it_is_told_with_the_nearest_name(settings, db):
    async with arm.client(settings) as call:
        await arm.fill(call)
        near = await call.get(GROUPS, params={"api-version": VERSION, "$tpo": "1"})
        far = await call.get(GROUPS, params={"api-version": VERSION, "zzzz": "1"})
        azures = await call.get(
            GROUPS, params={"api-version": VERSION, "$FILTER": "x", "$top": "1"}
        )

    error = near.json()["error"]
    assert (near.status_code, error["code"], error["target"]) == (
        400, "InvalidQueryParameter", "$tpo",
    )  # fmt: skip
    assert "Did you mean '$top'?" in error["message"]
    assert "Did you mean" not in far.json()["error"]["message"]
    assert "Known: $filter, $skipToken, $top, api-version." in far.json()["error"]["message"]
    assert azures.status_code == 200
