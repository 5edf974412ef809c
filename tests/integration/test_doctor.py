"""The three support cases: creation stuck, agent timeout, agent unhealthy. Each provoked, each explained."""

import contextlib
import json
import os
import signal

import pytest

from tests.support.stack import SERVER, a_server, an_account, muster_up, until

pytestmark = pytest.mark.newest
QUICK = {
    "MUSTER_WORKLOAD_HEARTBEAT": "300ms",
    "MUSTER_WORKLOAD_SILENT": "2s",
    "MUSTER_MONITOR_SWEEP": "300ms",
    "MUSTER_NODE_AGENT_HEARTBEAT": "300ms",
    "MUSTER_NODE_AGENT_SILENT": "2s",
    "MUSTER_ACCOUNT_CHECK": "500ms",
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    with muster_up(tmp_path_factory.mktemp("doctor"), **QUICK) as stack:
        a_server(stack)
        yield stack


@contextlib.contextmanager
def asleep(stack, role):
    pid = json.loads((stack.folder / "run" / f"{role}.json").read_text())["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def begin(stack, name):
    stack.put(f"{SERVER}/databases/jobs_{name}", {"location": "local"})
    body = {"location": "local", "properties": {"databaseId": f"{SERVER}/databases/jobs_{name}"}}
    return stack.put(f"{SERVER}/jobAgents/{name}", body, wait=False)


def diagnosis(stack, name, words, steps=()):
    """The doctor's report once it has this advice, and the account is in one of the steps."""

    def look():
        report = stack.client.post(f"{SERVER}/jobAgents/{name}/doctor").json()
        advised = any(words in advice for advice in report["advice"])
        return report if advised and (not steps or report["step"] in steps) else None

    return until(look, seconds=30)


def test_a_creation_that_is_stuck_names_the_missing_launcher(stack):
    with asleep(stack, "launcher"):
        operation = begin(stack, "stuck")

        report = diagnosis(stack, "stuck", "No launcher is alive", {"starting_instance"})

    assert report["healthy"] is False
    assert report["waitsFor"] == "a launcher with capacity for the engine"
    assert report["since"]
    assert stack.follow(operation)["status"] == "Succeeded"


def test_an_agent_that_does_not_answer_is_named_with_what_was_tried(stack):
    with asleep(stack, "nodeagent"):
        operation = begin(stack, "silent")

        told = diagnosis(stack, "silent", "No node agent is alive")

    assert told["step"] in {"preparing_database", "queuing_instance"}
    assert stack.follow(operation)["status"] == "Succeeded"


def test_a_pause_is_told_whoever_paused(stack):
    path = an_account(stack, "held")

    def says(paused):
        return stack.client.post(f"{path}/doctor").json()["paused"] is paused

    stack.psql("jobs_held", "select jobs.sp_pause()")
    until(lambda: says(True))
    assert stack.get(path)["properties"]["paused"] is True

    stack.psql("jobs_held", "select jobs.sp_resume()")
    until(lambda: says(False))


def test_an_account_that_lost_its_engine_says_so_until_it_is_back(stack):
    path = an_account(stack, "unwell")
    engines = stack.processes("engine")
    with asleep(stack, "launcher"):
        for pid in engines:
            os.kill(pid, signal.SIGKILL)

        told = diagnosis(stack, "unwell", "No launcher is alive")
        shown = until(lambda: (p := stack.get(path)["properties"])["state"] == "Disabled" and p)

    assert told["liveLaunchers"] == 0
    assert shown["provisioningState"] == "Succeeded"
    until(lambda: stack.get(path)["properties"]["state"] == "Ready")
