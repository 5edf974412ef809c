"""Attack group E through the front door: a server's endpoint as a way into places that are not theirs."""

from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from tests.support.running_api import serve_in_thread

GROUP = "/subscriptions/s1/resourceGroups/g1"
SERVER = GROUP + "/providers/Microsoft.Sql/servers/srv"

LOOPBACK = [
    "127.0.0.1",
    "localhost",
    "::1",
    "0.0.0.0",
    "2130706433",
    "0x7f.1",
    "127.1",
    "::ffff:127.0.0.1",
    "LOCALHOST.",
    "127.0.0.1.",
]
METADATA = [
    "169.254.169.254",
    "fd00:ec2::254",
    "[fd00:ec2::254]",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::",
]
SYNTAX = [
    "/var/run/postgresql",
    "@abstract",
    "h1,h2",
    "h sslmode=disable",
    "h?options=-cstatement_timeout=0",
    "user@host",
    "host:5432",
    "h\u200bost",
    "ｌocalhost",
    "a" * 300,
    "http://h",
]


@pytest.fixture
def client(settings):
    """The egress rules as shipped: nothing is opened for tests."""
    with serve_in_thread(replace(settings, target_allow=())) as running, running.client() as client:
        client.put("/subscriptions/s1", json={}).raise_for_status()
        client.put(GROUP, json={"location": "local"}).raise_for_status()
        yield client


def attempt(client, **endpoint):
    answer = client.put(SERVER, json={"location": "local", "properties": {"endpoint": endpoint}})
    return answer.status_code, answer.json()["error"]["code"] if answer.is_error else None


def test_no_form_of_a_forbidden_host_is_taken(client):
    answers = {host: attempt(client, host=host) for host in LOOPBACK + METADATA + SYNTAX}

    assert {
        host: answer for host, answer in answers.items() if answer != (400, "InvalidTargetServer")
    } == {}
    assert client.get(SERVER).status_code == 404


def test_each_host_of_a_list_and_the_direct_host_are_checked(client):
    assert attempt(client, hosts=["db.example.org", "127.0.0.1"]) == (400, "InvalidTargetServer")
    assert attempt(client, host="db.example.org", directHost="169.254.169.254") == (
        400,
        "InvalidTargetServer",
    )


@pytest.mark.parametrize("port", [22, 6379, 0, 65536, -1, 2**31])
def test_a_port_that_no_database_has_is_refused(client, port):
    status, code = attempt(client, host="db.example.org", port=port)

    assert status == 400
    assert code in {"InvalidTargetServer", "InvalidParameterValue", "InvalidRequestContent"}


def test_a_port_is_a_number(client):
    assert attempt(client, host="db.example.org", port="5432 host=x")[0] == 400


def test_our_own_database_is_no_target_even_where_loopback_is_open(settings):
    own = urlsplit(settings.database_url.reveal())
    with serve_in_thread(settings) as running, running.client() as client:
        client.put("/subscriptions/s1", json={}).raise_for_status()
        client.put(GROUP, json={"location": "local"}).raise_for_status()

        assert attempt(client, host="127.0.0.1", port=own.port, sslMode="disable") == (
            400,
            "InvalidTargetServer",
        )


def test_a_connection_string_has_no_place_to_stand(client):
    answer = client.put(
        SERVER,
        json={
            "location": "local",
            "properties": {
                "endpoint": {
                    "host": "db.example.org",
                    "service": "x",
                    "passfile": "/etc/passwd",
                    "options": "-c x",
                }
            },
        },
    )

    assert answer.status_code == 400
    named = {detail["target"] for detail in answer.json()["error"]["details"]}
    assert named == {f"properties.endpoint.{name}" for name in ("service", "passfile", "options")}
