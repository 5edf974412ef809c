"""The tables of the Terraform provider say what the OpenAPI document says."""

import json
from pathlib import Path

import pytest

from muster_terraform.attributes import Attribute, Nested
from muster_terraform.resources import ALL

DOCUMENT = json.loads((Path(__file__).parents[2] / "openapi/openapi.json").read_text())
SCHEMAS = {
    "resource_group": "ResourceGroup", "server": "Server", "database": "Database",
    "elastic_pool": "ElasticPool", "job_account": "JobAccount", "credential": "JobCredential",
    "target_group": "JobTargetGroup", "webhook": "JobWebhook", "role_assignment": "RoleAssignment",
    "job": "Job",
}  # fmt: skip
STORED = "Azure's; stored and shown, without effect in Muster"
LEFT_OUT = {
    "server": {
        "identity": STORED, "properties.version": STORED, "properties.minimalTlsVersion": STORED,
        "properties.publicNetworkAccess": STORED, "properties.primaryUserAssignedIdentityId": STORED,
        "properties.federatedClientId": STORED, "properties.keyId": STORED,
        "properties.administrators": STORED, "properties.restrictOutboundNetworkAccess": STORED,
        "properties.isIPv6Enabled": STORED, "properties.retentionDays": STORED,
        "properties.createMode": STORED,
    },
    "resource_group": {"properties": "nothing in it can be written"},
    "job_account": {"identity": STORED, "sku.tier": STORED, "sku.size": STORED, "sku.family": STORED},
    "job": {"properties.priority": "values other than 0 are refused"},
    "step": {"action.type": "only TSql", "action.source": "only Inline"},
    "output": {"type": "only SqlDatabase"},
    "role_assignment": {"properties.scope": "part of the id"},
}  # fmt: skip
MADE_HERE = {("server", "port"): "of the endpoint, also where Muster chose it"}


def resolve(schema: dict) -> dict:
    while "$ref" in schema or "anyOf" in schema:
        if "$ref" in schema:
            schema = DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
        else:
            schema = next(each for each in schema["anyOf"] if each.get("type") != "null")
    return schema


def at(schema: dict, path: tuple[str, ...]) -> dict | None:
    for word in path:
        found = resolve(schema).get("properties", {}).get(word)
        if found is None:
            return None
        schema = found
    return schema


def leaves(schema: dict, stop: set[str], above: str = "") -> set[str]:
    """What can be written, down to what an attribute stands for."""
    found: set[str] = set()
    for name, value in resolve(schema).get("properties", {}).items():
        path = f"{above}{name}"
        inner = resolve(value)
        if value.get("readOnly"):
            continue
        below = any(each.startswith(f"{path}.") for each in stop)
        if path not in stop and "properties" in inner and below:
            found |= leaves(inner, stop, f"{path}.")
        else:
            found.add(path)
    return found


def tables() -> list:
    """Every table of attributes with its schema: of a resource, or of a block in it."""
    found = []

    def add(name: str, attributes: tuple[Attribute, ...], schema: dict) -> None:
        found.append(pytest.param(name, attributes, schema, id=name))
        for each in attributes:
            if isinstance(each.kind, Nested) and (name, each.name) not in MADE_HERE:
                inner = resolve(at(schema, each.path))
                add(each.name, each.kind.attributes, inner.get("items", inner))

    for type in ALL:
        schema = DOCUMENT["components"]["schemas"][SCHEMAS[type.name]]
        add(type.name, type.complete, schema)
    return found


@pytest.mark.parametrize(("name", "attributes", "schema"), tables())
def test_each_attribute_is_a_property_with_the_same_choices(name, attributes, schema):
    for each in attributes:
        if each.path is None or (name, each.name) in MADE_HERE:
            continue
        found = at(schema, each.path)
        assert found is not None, f"{each.name}: there is no {'.'.join(each.path)}"
        if not each.only_computed and each.path != ("name",):
            assert not found.get("readOnly"), each.name
        choices = resolve(found.get("items", found)).get("enum")
        known = {
            json.dumps(one) if isinstance(one, bool) else one
            for one in choices or ()
            if one is not None
        }
        if each.name not in {"role"}:
            assert set(each.choices) == known, each.name


@pytest.mark.parametrize(("name", "attributes", "schema"), tables())
def test_each_property_is_an_attribute_or_left_out_for_a_reason(name, attributes, schema):
    stop = {".".join(each.path) for each in attributes if each.path}
    left_out = set(LEFT_OUT.get(name, {}))
    missing = leaves(schema, stop | left_out) - stop - left_out
    if name == "database":
        ours = {"properties.labels", "properties.deletionPolicy", "properties.elasticPoolId"}
        missing = {each for each in missing if each in ours}  # all others are Azure's
    if name == "elastic_pool":
        missing &= {
            "properties.databases",
            "properties.databasePattern",
            "properties.maxConnections",
        }
    assert missing == set()
