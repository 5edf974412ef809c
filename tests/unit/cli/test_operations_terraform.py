"""The Terraform column of docs/reference/operations.md: what it names is in the provider, and every operation has an entry."""

import re

from muster_terraform.resources import ALL
from openapi.terraform import PARTS, REASONS, RESOURCES, terraform
from tests.unit.cli.test_operations import OPERATIONS

TYPES = {each.full_name: each for each in ALL}


def test_the_resources_are_those_of_the_provider():
    assert {f"muster_{name}" for name in RESOURCES.values()} == set(TYPES)


def test_each_operation_has_a_resource_a_data_source_or_a_reason_and_nothing_is_left_over():
    groups = {each.partition("_")[0] for each in OPERATIONS}

    assert RESOURCES.keys() | REASONS.keys() == groups
    assert RESOURCES.keys() & REASONS.keys() == set()
    assert PARTS.keys() <= OPERATIONS
    assert all(terraform(each) for each in OPERATIONS)


def test_a_block_that_stands_for_an_operation_is_one_of_its_resource():
    for entry in PARTS.values():
        block, resource = re.fullmatch(r"`(\w+)` of (?:data source )?`(\w+)`", entry).groups()
        assert block in {each.name for each in TYPES[resource].complete}


def test_a_resource_is_made_read_and_removed_by_its_operations():
    for group, name in RESOURCES.items():
        assert terraform(f"{group}_CreateOrUpdate") == f"`muster_{name}`"
        for verb in ("CreateOrUpdate", "Get", "Delete"):
            assert f"{group}_{verb}" in OPERATIONS
