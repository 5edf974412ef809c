"""infra/terraform/examples/fleet as a user takes it: copied, given variables, applied, changed, destroyed."""

import asyncio
import json
import shutil
from collections.abc import Iterator

import asyncpg
import pytest

from tests.infra.installation import ROOT
from tests.infra.terraform import Terraform, installed
from tests.infra.test_terraform import secrets_in, wait_for_end
from tests.support import postgres
from tests.support.stack import Stack, muster_up

pytestmark = [pytest.mark.terraform, pytest.mark.timeout(900)]

EXAMPLE = ROOT / "infra/terraform/examples/fleet"
PASSWORD = "a-secret-nobody-may-see"
OPERATORS = "22222222-2222-2222-2222-222222222222"


@pytest.fixture
def server() -> Iterator[postgres.Postgres]:
    with postgres.running(migrated=False) as running:
        yield running


@pytest.fixture
def muster(tmp_path, server) -> Iterator[Stack]:
    with muster_up(tmp_path, MUSTER_TARGET_ALLOW="127.0.0.1") as running:
        running.put("/subscriptions/main", {})
        yield running


async def schemas_and_tables(url: str) -> list[tuple[str, str]]:
    connection = await asyncpg.connect(url)
    try:
        found = await connection.fetch(
            "SELECT n.nspname AS schema, coalesce(t.tablename, '') AS name FROM pg_namespace n"
            " LEFT JOIN pg_tables t ON t.schemaname = n.nspname"
            " WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
        )
    finally:
        await connection.close()
    return [(row["schema"], row["name"]) for row in found]


def test_the_example_fleet(tmp_path, server, muster):
    login = server.administrator
    eu = {"host": server.host, "port": server.port, "ssl_mode": "disable", "login": login.name}
    variables = {
        "TF_VAR_password": PASSWORD, "TF_VAR_servers": json.dumps({"eu": eu}),
        "TF_VAR_passwords": json.dumps({"eu": login.password}), "TF_VAR_operators": OPERATORS,
        "TF_VAR_webhook_url": f"https://127.0.0.1:{server.port}/hook", "TF_VAR_webhook_secret": "s" * 40,
    }  # fmt: skip
    shutil.copytree(EXAMPLE, tmp_path / "fleet")
    environment = installed(tmp_path, {"MUSTER_URL": muster.url, "MUSTER_TOKEN": muster.token})
    fleet = Terraform(tmp_path / "fleet", environment)
    fleet.run("init")
    fleet.apply(**variables)
    assert fleet.plan(**variables) == {}
    assert secrets_in(fleet) == []

    state = fleet.state()
    job = state["muster_job.count"]["id"]
    run = muster.client.post(f"{job}/start").json()["id"]
    assert wait_for_end(muster, run)["lifecycle"] == "Succeeded"

    def properties(address: str) -> dict:
        return muster.get(state[address]["id"])["properties"]

    assert properties('muster_elastic_pool.tenants["eu"]')["maxConnections"] == 4
    assert properties("muster_webhook.pager[0]")["events"] == ["failed", "halted"]
    assert properties("muster_role_assignment.operators")["principalId"] == OPERATORS

    fleet.destroy(**variables)
    assert fleet.state() == {}
    assert muster.client.get("/subscriptions/main/resourceGroups/prod").status_code == 404
    left = asyncio.run(schemas_and_tables(server.url("tenant_1")))
    assert left == [("public", "orders")], (
        "a tenant keeps its database, and nothing of Muster is in it"
    )
