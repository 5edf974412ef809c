"""ARM's rules over every declared type."""

import re

import pytest

from api.endpoint import Endpoint, Kind, table
from api.resource import ResourceType
from api.resources import RESOURCES
from api.resources.providers import list_operations
from workflows.model.wire import Properties

ENDPOINTS = table(RESOURCES)


def each_type() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("kind", RESOURCES, ids=lambda kind: kind.arm_type)


def each_endpoint() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.operation_id)


@each_type()
def test_what_can_be_put_can_be_read_and_listed(kind: ResourceType) -> None:
    if kind.put:
        assert kind.get
        assert kind.list
        assert kind.properties is not None


@each_type()
def test_only_long_types_are_polled(kind: ResourceType) -> None:
    long = any(verb and verb.long for verb in (kind.put, kind.patch, kind.delete))

    assert long == (kind.polling is not None)


@each_type()
def test_names_in_a_type_are_known_once(kind: ResourceType) -> None:
    struct = kind.properties or Properties
    known = set(struct.__struct_encode_fields__)

    assert not known & struct.READ_ONLY
    assert known >= struct.WRITE_ONLY | struct.REQUIRED
    assert kind.observed.keys() <= struct.READ_ONLY
    assert struct.READ_ONLY - kind.observed.keys() <= {"provisioningState"}


@each_endpoint()
def test_an_operation_has_a_name_by_azures_rule(endpoint: Endpoint) -> None:
    assert re.fullmatch(r"[A-Z][A-Za-z]+_[A-Z][A-Za-z]+", endpoint.operation_id)


@each_endpoint()
def test_every_write_asks_for_a_right(endpoint: Endpoint) -> None:
    if endpoint.method not in {"GET", "HEAD"}:
        assert endpoint.action.endswith(("/write", "/delete", "/action"))
    elif endpoint.kind not in {Kind.STATUS, Kind.RESULT} and not (
        endpoint.verb and endpoint.verb.open
    ):
        assert endpoint.action.endswith("/read")


@each_endpoint()
def test_the_name_in_an_example_fits_its_pattern(endpoint: Endpoint) -> None:
    assert re.search(endpoint.type.pattern, endpoint.type.name_example)


async def test_operations_of_the_provider_are_all_rights_there_are() -> None:
    page = await list_operations(None, None, None, None, 0)  # type: ignore[arg-type]
    names = {each["name"] for each in page.items}

    assert "Microsoft.Sql/register/action" in names
    assert names >= {each.action for each in ENDPOINTS if each.action.startswith("Microsoft.Sql/")}
