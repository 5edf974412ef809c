"""`make routes`: every operation with its use case."""

import importlib
from functools import partial, reduce

import pytest

from api import routes
from api.endpoint import Kind, table
from api.resources import RESOURCES

ENDPOINTS = table(RESOURCES)


def found_by_name(name: str) -> object:
    """What a program finds that follows the name from its module."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[length:], module)
    raise LookupError(name)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.operation_id)
def test_the_printed_name_leads_to_the_declared_use_case(endpoint):
    declared = endpoint.verb or endpoint.act or endpoint.report or endpoint.feed

    name = routes.use_case(endpoint)

    if declared is None:
        assert endpoint.kind in {Kind.STATUS, Kind.RESULT}
        assert name == f"api.handlers.{endpoint.kind}"
    else:
        assert found_by_name(name) == declared.run


def test_there_is_one_line_for_each_operation():
    printed = [line.split() for line in routes.lines()]

    assert [(method, template) for method, _, template in printed] == [
        (each.method, each.template) for each in ENDPOINTS
    ]


def test_a_start_is_served_by_the_use_case_of_jobs():
    (line,) = (line for line in routes.lines() if line.endswith("/jobs/{jobName}/start"))

    assert line.split()[:2] == ["POST", "workflows.jobs.start"]


def test_a_use_case_without_a_name_is_refused():
    with pytest.raises(LookupError):
        routes.qualified_name(partial(print))
