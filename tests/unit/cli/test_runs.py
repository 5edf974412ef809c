"""How runs and targets are named."""

import pytest

from tests.unit.cli.fake_rest import ACCOUNT, JOB, RUN, RUN_ID, a_run, a_summary, a_target, listed

OTHER_ID = "3f2a9999-2222-4222-8222-222222222222"
ALL = f"{ACCOUNT}/executions"


@pytest.fixture
def three_runs(rest):
    """Two runs of nightly, one of a job in a second page; ids begin alike."""
    rest.on("GET", f"{JOB}/executions", listed(a_run(), a_run(OTHER_ID)))
    rest.on("GET", ALL, listed(a_run(), next=f"{ALL}/2?api-version=1"))
    rest.on("GET", f"{ALL}/2", listed(a_run(OTHER_ID, "week ly")))
    for path in (
        RUN,
        f"{ACCOUNT}/jobs/week ly/executions/{OTHER_ID}",
        f"{JOB}/executions/{OTHER_ID}",
    ):
        rest.on("GET", f"{path}/summary", a_summary(Succeeded=1))
    return rest


def shown(muster, name):
    code, out, err = muster("run", "show", name)
    return out.split(":")[0] if code == 0 else (code, err)


def test_a_run_goes_by_its_id(muster, three_runs):
    assert shown(muster, RUN_ID.upper()) == f"nightly {RUN_ID}"
    assert shown(muster, OTHER_ID) == f"week ly {OTHER_ID}"


def test_a_run_goes_by_the_unique_beginning_of_its_id(muster, three_runs):
    assert shown(muster, "3f2a1") == f"nightly {RUN_ID}"
    assert shown(muster, "3F2A9") == f"week ly {OTHER_ID}"


def test_a_beginning_of_several_is_a_question(muster, three_runs):
    code, err = shown(muster, "3f2a")

    assert code == 1
    assert RUN_ID in err and f"week ly {OTHER_ID}" in err


def test_a_job_means_its_newest_run(muster, three_runs):
    assert shown(muster, "nightly") == f"nightly {RUN_ID}"
    assert {"$top": "1"} in three_runs.asked(f"{JOB}/executions")


def test_a_job_and_a_beginning_go_together(muster, three_runs):
    assert shown(muster, "nightly/3f2a9") == f"nightly {OTHER_ID}"


@pytest.mark.parametrize("name", ["nothing", "abc", "00000000-0000-4000-8000-000000000000"])
def test_what_is_not_there_is_not_found(muster, three_runs, name):
    code, err = shown(muster, name)

    assert code == 6 and name in err


def test_a_job_that_never_ran_says_so(muster, rest):
    rest.on("GET", f"{ACCOUNT}/jobs/cafe/executions", listed())

    assert shown(muster, "cafe") == (6, "muster: the job 'cafe' has not run yet\n")


@pytest.fixture
def with_targets(three_runs):
    items = [
        a_target("tenant_07"),
        a_target("tenant_08"),
        a_target("tenant_07", server="fleet-2", targetId="other"),
    ]
    three_runs.on("GET", f"{RUN}/targets", listed(*items))
    for id in ("id-of-tenant_07", "id-of-tenant_08", "other"):
        three_runs.on("POST", f"{RUN}/steps/main/targets/{id}/cancel", {})
    return three_runs


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("fleet-1/tenant_07", "id-of-tenant_07"),
        ("FLEET-2/tenant_07", "other"),
        ("tenant_08", "id-of-tenant_08"),
        ("other", "other"),
    ],
)
def test_a_target_goes_by_its_names_and_its_id(muster, with_targets, name, id):
    assert muster("run", "cancel", "nightly", "--target", name, "--reason", "why not")[0] == 0

    assert with_targets.sent("POST", f"{RUN}/steps/main/targets/{id}/cancel") == [
        {"reason": "why not"}
    ]


def test_a_target_of_two_servers_is_a_question(muster, with_targets):
    code, _, err = muster("run", "cancel", "nightly", "--target", "tenant_07")

    assert code == 1 and "fleet-1/tenant_07" in err and "fleet-2/tenant_07" in err
    assert muster("run", "cancel", "nightly", "--target", "nowhere")[0] == 6


def test_an_empty_name_is_refused_before_a_request(muster, rest):
    code, _, err = muster("job", "start", "")

    assert (code, err) == (1, "muster: a name is empty\n")


def test_targets_are_retried_when_all_of_them_are_known(muster, three_runs):
    rest = three_runs
    found = a_target("tenant_07", "Failed"), a_target("tenant_08", "TimedOut")
    rest.on("GET", f"{RUN}/targets", listed(*found))
    for each in found:
        name = each["name"]
        again = a_target(name.removeprefix("id-of-"), "Created", waitReason="Halted")
        rest.on("POST", f"{RUN}/steps/main/targets/{name}/retry", again)

    words = ("run", "retry", "nightly", "--target", "tenant_07", "--target")
    code, out, _ = muster(*words, "fleet-1/tenant_08", "-o", "tsv")

    rows = [line.split("\t")[2:] for line in out.splitlines()[1:]]
    assert (code, rows) == (0, [
        ["main", "fleet-1/tenant_07", "Created", "Halted"],
        ["main", "fleet-1/tenant_08", "Created", "Halted"],
    ])  # fmt: skip
    note = f"The run is halted: muster run resume {RUN_ID} goes on with it."
    assert note in muster(*words, "fleet-1/tenant_08")[1]
    retried = len([each for each in rest.requests if each.method == "POST"])
    assert muster(*words, "nowhere")[0] == 6
    assert len([each for each in rest.requests if each.method == "POST"]) == retried == 4
