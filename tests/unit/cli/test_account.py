"""`muster account …`."""

import json

import pytest

from tests.unit.cli.fake_rest import ACCOUNT, SERVER, an_account

WELL = {
    "healthy": True,
    "state": "Ready",
    "step": "ready",
    "since": "t",
    "does": "rests",
    "advice": [],
}
ILL = {
    "healthy": False, "state": "Creating", "step": "starting_instance", "since": "t", "does": "waits",
    "waitsFor": "a launcher", "advice": ["Start one."], "lastError": {"code": "C", "message": "M"},
    "engine": {"state": "absent", "epoch": 3, "lastHeartbeat": "h"},
}  # fmt: skip


def test_an_account_is_made_with_its_control_database(muster, rest):
    control = f"{SERVER}/databases/jobs"
    rest.on("PUT", control, {})
    rest.on("PUT", ACCOUNT, an_account())

    assert muster("account", "create", "demo", "--database", "fleet-1/jobs")[0] == 0

    assert rest.sent("PUT", control) == [{"location": "local"}]
    assert rest.sent("PUT", ACCOUNT) == [
        {"location": "local", "properties": {"databaseId": control}}
    ]
    assert rest.requests[-1].headers["if-none-match"] == "*"
    made = ("account", "create", "demo", "--database", "fleet-1/jobs")
    settings = (
        *("--capacity", "250", "--default-credential", "login"),
        *("--run-attempts", "off", "--max-attempts-in-a-row", "3", "--attempt-backoff", "10,2m"),
    )
    assert muster(*made, *settings)[0] == 0
    rules = {"enabled": False, "maxSuccessiveWithoutProgress": 3, "backoffSeconds": [10, 120]}
    assert rest.sent("PUT", ACCOUNT)[-1] == {
        "location": "local",
        "properties": {"databaseId": control, "defaultCredential": "login", "runAttempts": rules},
        "sku": {"name": "MUSTER", "capacity": 250},
    }
    assert muster(*made, *settings[-4:])[0] == 1, "without --run-attempts"
    assert muster("account", "create", "demo", "--database", "jobs")[0] == 1
    assert muster("account", "create", "demo", "--database", "none/jobs")[0] == 6


def test_no_database_is_made_for_an_account_that_is_there_already(muster, rest):
    rest.on("GET", ACCOUNT, an_account())

    assert muster("account", "create", "demo", "--database", "fleet-1/other") == (
        1,
        "",
        "muster: Exists: 'demo' is there already; muster account update changes it\n",
    )
    assert {each.method for each in rest.requests} == {"GET"}


def test_accounts_are_listed_and_shown(muster, rest):
    rest.on("GET", ACCOUNT, an_account(conditions=[{"type": "Sick", "message": "Very."}]))
    row = "fleet-1\tdemo\tReady\tfalse\t100\t0.1.0\t2031-01-01T00:00:00Z"

    assert muster("account", "list", "-o", "tsv")[1].splitlines() == [
        "server\tname\tstate\tpaused\tcapacity\tengine\tlast_heartbeat", row,
    ]  # fmt: skip
    assert muster("account", "show", "demo", "-o", "tsv")[1].splitlines()[1] == row
    assert "Sick: Very." in muster("account", "show")[1]


@pytest.mark.parametrize(("told", "code"), [(WELL, 0), (ILL, 2)])
def test_the_doctor_says_how_it_is_by_exit_code_too(muster, rest, told, code):
    rest.on("POST", f"{ACCOUNT}/doctor", told)

    assert muster("account", "doctor", "demo")[0] == muster("account", "doctor")[0] == code
    assert json.loads(muster("account", "doctor", "demo", "-o", "json")[1]) == told


def test_the_doctor_tells_what_to_do(muster, rest):
    rest.on("POST", f"{ACCOUNT}/doctor", ILL)

    assert muster("account", "doctor")[1].splitlines() == [
        "demo: Creating, needs help",
        "  step       starting_instance since t: waits",
        "  waits for  a launcher",
        "  engine     absent, epoch 3, last heartbeat h",
        "  last error C: M",
        "  → Start one.",
    ]
    assert (
        muster("account", "doctor", "-o", "tsv")[1]
        .splitlines()[1]
        .endswith("a launcher\tC: M\tStart one.\tfalse")
    )


def test_the_doctor_tells_of_the_hosts(muster, rest):
    hosts = [
        {"state": "running", "lastHeartbeat": "2031-01-01T00:00:00Z"},
        {"state": "failure", "reason": "exited", "message": "killed"},
    ]
    rest.on("POST", f"{ACCOUNT}/doctor", WELL | {"hosts": hosts})

    assert muster("account", "doctor")[1].splitlines()[2:] == [
        "  host       running, last heartbeat 2031-01-01T00:00:00Z",
        "  host       failure (exited: killed)",
    ]


def test_an_account_that_comes_up_needs_no_help_and_is_not_healthy(muster, rest):
    rest.on("POST", f"{ACCOUNT}/doctor", WELL | {"healthy": False, "state": "Updating"})

    code, out, _ = muster("account", "doctor")

    assert (code, out.splitlines()[0]) == (2, "demo: Updating, not ready")


def test_the_doctor_tells_of_a_pause_and_its_end(muster, rest):
    rest.on("POST", f"{ACCOUNT}/doctor", WELL | {"paused": True})

    code, out, _ = muster("account", "doctor")

    assert code == 0
    assert out.splitlines()[-1] == ("  paused     nothing new starts until: muster account resume")


def test_an_account_is_acknowledged(muster, rest):
    rest.on("POST", f"{ACCOUNT}/acknowledge", {"acknowledged": True})

    code, out, _ = muster("account", "acknowledge", "demo", "-o", "tsv")

    assert (code, out.splitlines()) == (0, ["account\tacknowledged", "demo\ttrue"])


def test_an_account_is_paused_and_resumed(muster, rest):
    rest.on("POST", f"{ACCOUNT}/pause", {"paused": True, "canceled": 2})
    rest.on("POST", f"{ACCOUNT}/resume", {"paused": False})

    assert (
        muster("account", "pause", "--cancel-running", "-o", "tsv")[1].splitlines()[1]
        == "demo\ttrue\t2"
    )
    assert rest.asked(f"{ACCOUNT}/pause") == [{"cancelRunning": "true"}]
    assert muster("account", "resume", "demo")[1].splitlines()[1].split() == ["demo", "false"]
