"""The provider under the real Terraform, against a running Muster: what a user does in a year of a fleet."""

import json
import re

import pytest

from tests.infra.terraform import Terraform
from tests.support.stack import Stack

pytestmark = [pytest.mark.terraform, pytest.mark.timeout(600)]

PASSWORD = "a-secret-nobody-may-see"
SERVERS = "/subscriptions/s1/resourceGroups/{group}/providers/Microsoft.Sql/servers"
FLEET = """
variable "password" {
  type      = string
  ephemeral = true
}
variable "version_of_password" {
  type    = number
  default = null
}
resource "muster_resource_group" "all" {
  subscription_id = "/subscriptions/s1"
  name            = "GROUP"
}
resource "muster_server" "home" {
  resource_group_id                       = muster_resource_group.all.id
  name                                    = "SERVER"
  administrator_login                     = "home_admin"
  administrator_login_password_wo         = var.password
  administrator_login_password_wo_version = var.version_of_password
  deletion_policy                         = "Drop"
}
resource "muster_database" "jobs" {
  server_id = muster_server.home.id
  name      = "jobs"
}
resource "muster_database" "tenant" {
  for_each        = toset(["tenant_1", "tenant_2"])
  server_id       = muster_server.home.id
  name            = each.key
  labels          = { tier = "gold" }
  deletion_policy = "Drop"
}
resource "muster_job_account" "nightly" {
  server_id   = muster_server.home.id
  name        = "nightly"
  database_id = muster_database.jobs.id
}
resource "muster_credential" "tenants" {
  account_id          = muster_job_account.nightly.id
  name                = "tenants"
  username            = "home_admin"
  password_wo         = var.password
  password_wo_version = var.version_of_password
}
resource "muster_target_group" "gold" {
  account_id = muster_job_account.nightly.id
  name       = "gold"
  member {
    type        = "SqlServer"
    server_name = muster_server.home.name
    labels      = "tier=gold"
  }
  member {
    type            = "SqlDatabase"
    server_name     = muster_server.home.name
    database_name   = "jobs"
    membership_type = "Exclude"
  }
}
resource "muster_job" "count" {
  account_id  = muster_job_account.nightly.id
  name        = "nightly count"
  description = "every night"
  schedule {
    cron      = "0 3 * * *"
    time_zone = "Europe/Berlin"
  }
  step {
    name         = "write"
    target_group = muster_target_group.gold.id
    credential   = muster_credential.tenants.id
    sql          = "create table if not exists t (a int)"
    guard        = true
    rollout {
      waves               = ["1", "50%"]
      halt_after_failures = 2
    }
  }
  step {
    name         = "count"
    target_group = muster_target_group.gold.id
    credential   = muster_credential.tenants.id
    sql          = "select count(*) from t"
    verify {
      sql    = "select 1"
      expect = "value"
      value  = 1
    }
    execution_options {
      retry_attempts = 2
    }
  }
}
data "muster_job" "count" {
  account_id = muster_job_account.nightly.id
  name       = muster_job.count.name
}
output "first_step" {
  value = data.muster_job.count.step[0].sql
}
"""
EXTRA_STEP = """
  step {
    name         = "before"
    target_group = muster_target_group.gold.id
    sql          = "select 0"
  }
"""
FIRST_STEP = """  step {
    name         = "write\""""


def a_fleet(name: str) -> str:
    return FLEET.replace("GROUP", name).replace("SERVER", f"{name}-home")


def account_of(name: str) -> str:
    return f"{SERVERS.format(group=name)}/{name}-home/jobAgents/nightly"


def step_names(stack: Stack, job: str) -> list[str]:
    return [each["name"] for each in stack.get(f"{job}/steps")["value"]]


def versions_of(stack: Stack, job: str) -> int:
    return len(stack.get(f"{job}/versions")["value"])


def secrets_in(folder: Terraform) -> list[str]:
    """Files of the folder that have the password in plain text; a plan is a zip, so as Terraform shows it."""
    files = [
        each for each in folder.folder.rglob("*") if each.is_file() and each.stat().st_size < 1e6
    ]
    found = [each.name for each in files if PASSWORD.encode() in each.read_bytes()]
    return found + ["show"] * (PASSWORD in folder.run("show", "-json", "plan"))


def test_a_fleet_from_the_first_apply_to_destroy(terraform, stack):
    fleet = terraform("one")
    secret = {"TF_VAR_password": PASSWORD, "TF_VAR_version_of_password": "1"}
    fleet.write(a_fleet("tf-life"))
    fleet.run("init")

    created = fleet.plan(**secret)
    assert set(map(tuple, created.values())) == {("create",)} and len(created) == 9
    printed = fleet.apply(**secret)

    assert 'first_step = "create table if not exists t (a int)"' in printed
    account = account_of("tf-life")
    job = f"{account}/jobs/nightly count"
    shown = stack.get(job)["properties"]
    assert shown["schedule"]["enabled"] and shown["schedule"]["cron"] == "0 3 * * *"
    assert step_names(stack, job) == ["write", "count"]
    assert stack.get(f"{job}/steps/write")["properties"]["rollout"]["waves"] == [1, "50%"]
    assert fleet.plan(**secret) == {}, "nothing is left to do after apply"

    run = stack.client.post(f"{job}/start").json()["id"]
    ended = wait_for_end(stack, run)
    assert ended["lifecycle"] == "Succeeded", "the password reached the servers"

    changed = a_fleet("tf-life").replace("select count(*) from t", "select count(*), now() from t")
    changed = changed.replace(FIRST_STEP, EXTRA_STEP + FIRST_STEP).replace(
        'tier = "gold"', 'tier = "gold", eu = "yes"'
    )
    fleet.write(changed)
    assert set(fleet.plan(**secret)) == {
        'muster_database.tenant["tenant_1"]', 'muster_database.tenant["tenant_2"]', "muster_job.count",
    }  # fmt: skip
    versions = versions_of(stack, job)
    fleet.apply(**secret)
    assert step_names(stack, job) == ["before", "write", "count"]
    assert versions_of(stack, job) == versions + 1, "two of its steps are written as one version"
    assert fleet.plan(**secret) == {}

    stack.client.patch(
        f"{job}/steps/count", json={"properties": {"action": {"value": "drop table t"}}}
    )
    stack.client.delete(f"{account}/targetGroups/none")
    assert fleet.plan(**secret) == {"muster_job.count": ["update"]}, "drift is seen"
    assert "drop table t" in fleet.run("show", "plan")
    fleet.apply(**secret)
    assert stack.get(f"{job}/steps/count")["properties"]["action"]["value"].startswith(
        "select count"
    )

    fleet.write(changed.replace(EXTRA_STEP, ""))
    fleet.apply(**secret)
    assert step_names(stack, job) == ["write", "count"]

    fleet.plan(**secret | {"TF_VAR_version_of_password": "2"})
    assert secrets_in(fleet) == []
    assert re.search(r'"password_wo": ?null', (fleet.folder / "terraform.tfstate").read_text())

    fleet.destroy(**secret)
    assert fleet.state() == {}
    assert stack.client.get("/subscriptions/s1/resourceGroups/tf-life").status_code == 404


def wait_for_end(stack: Stack, run: str) -> dict:
    from tests.support.stack import until

    def ended() -> dict | None:
        shown = stack.get(run)["properties"]
        return (
            shown
            if shown["lifecycle"] not in ("Created", "InProgress", "WaitingForChildJobExecutions")
            else None
        )

    return until(ended, seconds=60)


def test_what_is_there_already_is_imported_and_nothing_is_left_to_do(terraform, stack):
    secret = {"TF_VAR_password": PASSWORD}
    first, second = terraform("one"), terraform("two")
    first.write(a_fleet("tf-import"))
    first.run("init")
    first.apply(**secret)
    before = first.state()

    second.write(a_fleet("tf-import"))
    second.run("init")
    for address, values in before.items():
        if not address.startswith("data."):
            second.run("import", "-input=false", address, values["id"], **secret)

    assert second.plan(**secret) == {}
    assert {
        name: values for name, values in second.state().items() if not name.startswith("data.")
    } == {name: values for name, values in before.items() if not name.startswith("data.")}
    second.destroy(**secret)


def test_what_changed_since_the_plan_is_not_overwritten(terraform, stack):
    fleet, group = terraform("one"), "/subscriptions/s1/resourceGroups/tf-etag"
    text = """
resource "muster_resource_group" "all" {
  subscription_id = "/subscriptions/s1"
  name            = "tf-etag"
  tags            = { by = "WHOM" }
}
"""
    fleet.write(text.replace("WHOM", "terraform"))
    fleet.run("init")
    fleet.apply()

    fleet.write(text.replace("WHOM", "a plan"))
    assert fleet.plan() == {"muster_resource_group.all": ["update"]}
    before = stack.client.get(group).headers["etag"]
    for whom in ("another", "terraform"):
        written = stack.client.patch(group, json={"tags": {"by": whom}})
    assert written.headers["etag"] != before
    fleet.run("apply", "-input=false", "plan")
    assert stack.get(group)["tags"] == {"by": "a plan"}, "nothing that was planned had changed"

    fleet.write(text.replace("WHOM", "terraform again"))
    assert fleet.plan() == {"muster_resource_group.all": ["update"]}
    assert stack.client.patch(group, json={"tags": {"by": "another"}}).is_success
    refused = fleet.run("apply", "-input=false", "plan", code=1)

    assert "ChangedSincePlan" in refused and "Plan again" in " ".join(refused.split())
    assert stack.get(group)["tags"] == {"by": "another"}
    fleet.apply()
    assert stack.get(group)["tags"] == {"by": "terraform again"}
    fleet.destroy()


def test_a_new_name_replaces_and_what_is_there_is_not_taken_over(terraform, stack):
    secret = {"TF_VAR_password": PASSWORD}
    fleet, other = terraform("one"), terraform("two")
    fleet.write(a_fleet("tf-replace"))
    fleet.run("init")
    fleet.apply(**secret)

    fleet.write(a_fleet("tf-replace").replace('name       = "gold"', 'name       = "silver"'))
    assert fleet.plan(**secret) == {
        "muster_target_group.gold": ["delete", "create"], "muster_job.count": ["update"],
    }  # fmt: skip

    other.write(
        'resource "muster_resource_group" "mine" {\n  subscription_id = "/subscriptions/s1"\n  name = "tf-replace"\n}'
    )
    other.run("init")
    refused = other.run("apply", "-auto-approve", code=1)
    words = " ".join(refused.split())
    assert "AlreadyExists" in words and "terraform import muster_resource_group.NAME" in words
    assert other.state() == {}

    fleet.write(a_fleet("tf-replace"))
    fleet.destroy(**secret)


def test_an_error_of_the_api_names_code_and_attribute(terraform, stack):
    fleet = terraform("one")
    fleet.write(
        """
resource "muster_resource_group" "all" {
  subscription_id = "/subscriptions/s1"
  name            = "tf-errors"
}
resource "muster_server" "far" {
  resource_group_id = muster_resource_group.all.id
  name              = "tf-far"
  max_connections   = -3
  endpoint {
    host     = "localhost"
    port     = 99999
    ssl_mode = "disable"
  }
}
"""
    )
    fleet.run("init")
    refused = fleet.run("apply", "-auto-approve", code=1)
    for words in ("Error: InvalidParameterValue", "main.tf line", "max_connections", "port"):
        assert words in refused
    assert stack.client.get(SERVERS.format(group="tf-errors") + "/tf-far").status_code == 404
    fleet.destroy()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("guard        = true", 'guard        = "always"'),
            "'always' is not one of true, false, job",
        ),
        (
            ('name         = "count"', 'name         = "Write"'),
            "Another step has the name 'Write' too",
        ),
        (
            ("retry_attempts = 2", "retry_attempt = 2"),
            'An argument named "retry_attempt" is not expected here',
        ),
    ],
)
def test_what_can_be_known_before_is_refused_by_validate(terraform, change, said):
    fleet = terraform("one")
    fleet.write(a_fleet("tf-validate").replace(*change))
    fleet.run("init")
    assert said in fleet.run("validate", code=1)


def test_a_provider_without_token_or_answer_says_so(terraform):
    fleet = terraform("one")
    fleet.write(
        'data "muster_resource_group" "x" {\n  subscription_id = "/subscriptions/s1"\n  name = "x"\n}'
    )
    fleet.run("init")
    assert "TokenMissing" in fleet.run("plan", code=1, MUSTER_TOKEN="")
    assert "InvalidAuthenticationToken" in fleet.run("plan", code=1, MUSTER_TOKEN="wrong")
    assert "NoAnswer" in fleet.run("plan", code=1, MUSTER_URL="http://127.0.0.1:1")
    assert "ResourceNotFound" in fleet.run("plan", code=1)
    assert "AccountNotFound" in fleet.run("plan", code=1, MUSTER_ACCOUNT="nowhere")


def test_state_of_a_failed_create_is_kept_so_that_it_is_made_again(terraform, stack):
    """A server that does not answer is there all the same; Terraform must know of it."""
    fleet = terraform("one")
    server = """
resource "muster_resource_group" "all" {
  subscription_id = "/subscriptions/s1"
  name            = "tf-failed"
}
resource "muster_job_account" "nightly" {
  server_id   = "/subscriptions/s1/resourceGroups/tf-failed/providers/Microsoft.Sql/servers/none"
  name        = "nightly"
  database_id = "/subscriptions/s1/resourceGroups/tf-failed/providers/Microsoft.Sql/servers/none/databases/none"
  depends_on  = [muster_resource_group.all]
}
"""
    fleet.write(server)
    fleet.run("init")
    refused = fleet.run("apply", "-auto-approve", code=1)
    assert re.search(r"Error: \w+", refused) and json.loads(
        (fleet.folder / "terraform.tfstate").read_text()
    )
    assert set(fleet.state()) == {"muster_resource_group.all"}
    fleet.destroy()
