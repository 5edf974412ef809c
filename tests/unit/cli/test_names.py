"""A name that is not there is not found, and told with the nearest ones."""

import pytest

from muster.cli import client, names
from muster.cli.client import Api, Refused
from muster.cli.exits import Exit
from tests.unit.cli.fake_rest import ACCOUNT, JOB, RUN, SERVER, a_run, a_target, listed, refusal

LOGIN = {"name": "fleet-login", "properties": {"username": "u"}}


@pytest.fixture
def definitions(rest):
    rest.on("GET", f"{ACCOUNT}/jobs", listed({"name": "nightly", "properties": {}}))
    rest.on("GET", f"{ACCOUNT}/credentials", listed(LOGIN))
    return rest


@pytest.mark.parametrize(
    "words",
    [
        ["job", "show", "nigthly"],
        ["job", "start", "nigthly"],
        ["job", "stop", "nigthly"],
        ["job", "delete", "nigthly", "--yes"],
        ["run", "list", "nigthly"],
    ],
)
def test_a_job_that_is_not_there_is_told_with_the_nearest(muster, definitions, words):
    code, _, err = muster(*words)

    assert (code, err) == (6, "muster: there is no job 'nigthly'; did you mean nightly?\n")


def test_a_run_is_looked_for_by_its_job_too(muster, definitions):
    code, _, err = muster("run", "show", "nigthly")

    assert (code, err) == (6, "muster: there is neither a run nor a job 'nigthly'; did you mean nightly?\n")  # fmt: skip


@pytest.mark.parametrize(
    "message", ["credential 'fleet-logn' was not found.", 'Credential "fleet-logn" was not found']
)
def test_a_credential_that_is_not_there_is_told_with_the_nearest(muster, definitions, message):
    where = "properties.members[0].credential"
    definitions.on(
        "PUT", f"{ACCOUNT}/targetGroups/all", refusal(400, "InvalidParameterValue", message, where)
    )

    code, _, err = muster("group", "create", "all", "--server", "x", "--credential", "fleet-logn")

    assert (code, err) == (6, "muster: there is no credential 'fleet-logn'; did you mean fleet-login?\n")  # fmt: skip


def test_what_is_missing_below_a_job_that_is_there_is_told_as_the_api_says_it(muster, definitions):
    definitions.on("POST", f"{JOB}/start", refusal(404, "ResourceNotFound", "It has no steps."))

    code, _, err = muster("job", "start", "nightly")

    assert (code, err) == (6, "muster: ResourceNotFound: It has no steps.\n")


def test_a_name_like_no_other_gets_no_suggestion(muster, definitions):
    assert muster("job", "show", "xxx")[2] == "muster: there is no job 'xxx'\n"


def test_a_list_that_may_not_be_read_takes_nothing_from_the_answer(muster, definitions):
    definitions.on("GET", f"{ACCOUNT}/jobs", refusal(403, "AuthorizationFailed", "No."))

    code, _, err = muster("job", "show", "nigthly")

    assert code == 6 and "There is no GET" in err


def test_a_server_that_is_not_there_is_told_with_the_nearest(muster, rest):
    code, _, err = muster("account", "create", "a", "--database", "fleet1/jobs")

    assert (code, err) == (6, "muster: there is no server 'fleet1'; did you mean fleet-1?\n")
    assert rest.sent("PUT", f"{SERVER}/databases/jobs") == []


def test_an_account_that_is_not_there_is_told_with_the_nearest(muster, rest):
    _, _, err = muster("job", "list", "--account", "dmeo")

    assert err == "muster: there is no account 'dmeo'; did you mean demo?\n"


BELOW_SERVER = {
    "databases": "database",
    "elasticPools": "elastic pool",
    "jobAgents/demo/webhooks": "webhook",
    "jobAgents/demo/jobs/nightly/steps": "step",
    "jobAgents/demo/privateEndpoints": "private endpoint",
    "providers/Microsoft.Authorization/locks": "lock",
}


@pytest.mark.parametrize(("collection", "kind"), BELOW_SERVER.items())
def test_every_resource_that_is_not_there_is_told_with_the_nearest(rest, collection, kind):
    path = f"{SERVER}/{collection}"
    rest.on("GET", path, listed({"id": f"{path}/first"}, {"id": f"{path}/second"}))
    refused = Refused("no", Exit.NOT_FOUND, path=f"{path}/secnod/history")

    with client.connect("http://x", "a-token") as http:
        told = names.explained(Api(http), refused)

    assert told.line == f"muster: there is no {kind} 'secnod'; did you mean second?"


def test_a_parent_that_is_not_there_is_what_is_missing(muster, rest):
    servers = SERVER.rpartition("/")[0]
    rest.on("GET", servers, listed({"id": SERVER, "name": "fleet-1"}))
    away = f"{servers}/fleet-2/databases"
    rest.on("GET", away, refusal(404, "ParentResourceNotFound", "No parent."))
    refused = Refused("no", Exit.NOT_FOUND, path=f"{away}/jobs")

    with client.connect("http://x", "a-token") as http:
        told = names.explained(Api(http), refused)

    assert told.line == "muster: there is no server 'fleet-2'; did you mean fleet-1?"


def test_what_is_created_is_not_what_is_missing(muster, definitions):
    definitions.on(
        "PUT",
        f"{ACCOUNT}/webhooks/new",
        refusal(404, "ResourceNotFound", "Something else is not there."),
    )
    definitions.on("GET", f"{ACCOUNT}/webhooks", listed())

    _, _, err = muster(
        "webhook",
        "create",
        "new",
        "--to",
        "http://x",
        "--events",
        "failed",
        "--secret-file",
        "/dev/null",
    )

    assert "there is no webhook" not in err


def test_a_target_of_a_run_is_told_with_the_nearest(muster, rest):
    rest.on("GET", f"{ACCOUNT}/jobs/nightly/executions", listed(a_run()))
    rest.on("GET", f"{RUN}/targets", listed(a_target("tenant_07"), a_target("tenant_08")))

    code, _, err = muster("run", "why", "nightly", "fleet-1/tenant_7")

    assert code == 6 and "did you mean fleet-1/tenant_07" in err
