"""Hosts, versions, throttle and errors: the small rules around every request."""

from dataclasses import replace

import pytest

from api import errors, versions
from api.errors import ProtocolFault
from api.links import Links
from api.throttle import Throttle
from muster.core.clock import Clock
from muster.core.errors import FieldError, InvalidRequest, Throttled, Unavailable
from muster.core.settings import Secret, Settings
from tests.support.requests import request_context

SETTINGS = Settings(database_url=Secret("postgresql://nowhere"))


def base(
    settings: Settings, client: str = "10.0.0.1", *, server: str = "10.0.0.2", **headers: str
) -> str:
    given = request_context(
        client=client, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )
    given.scope["server"] = (server, 80)
    links = Links(settings)
    links.check_host(given)
    return links.base(given)


def test_links_use_the_host_that_was_called() -> None:
    settings = replace(SETTINGS, allowed_hosts=("m.example",))

    assert base(settings, host="m.example:8443") == "http://m.example:8443"


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "[::1]:80", "10.9.9.9:8080"])
def test_without_a_list_loopback_and_the_own_address_are_answered(host: str) -> None:
    assert base(SETTINGS, server="10.9.9.9", host=host) == f"http://{host}"


@pytest.mark.parametrize("host", ["evil.example", "10.9.9.8", "localhost.evil.example", "[::2]"])
def test_without_a_list_a_stranger_is_refused(host: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        base(SETTINGS, server="10.9.9.9", host=host)
    assert refused.value.code == "InvalidHostHeader"
    assert "MUSTER_ALLOWED_HOSTS" in refused.value.message and "restart" in refused.value.message


def test_a_public_url_wins_and_closes_the_list_of_hosts() -> None:
    settings = replace(SETTINGS, public_url="https://api.example/")

    assert base(settings, host="api.example") == "https://api.example"
    with pytest.raises(InvalidRequest) as refused:
        base(settings, host="evil.example")
    assert refused.value.code == "InvalidHostHeader"


def test_allowed_hosts_count_with_and_without_port() -> None:
    settings = replace(SETTINGS, allowed_hosts=("m.example",))

    assert base(settings, host="M.example:81") == "http://M.example:81"
    with pytest.raises(InvalidRequest):
        base(settings, host="m.example.evil")


@pytest.mark.parametrize(
    "host", ["", "a b", "a/b", "a@b", "a\\b", "<x>", "a:99999999", "a:b", "-a"]
)
def test_a_host_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(InvalidRequest):
        base(SETTINGS, host=host)


def test_forwarded_headers_count_only_from_trusted_peers() -> None:
    settings = replace(SETTINGS, forwarded_from=("10.1.0.0/16",))
    forwarded = {
        "host": "localhost",
        "x_forwarded_host": "outer.example",
        "x_forwarded_proto": "https",
    }

    assert base(settings, "10.1.2.3", **forwarded) == "https://outer.example"
    assert base(settings, "10.2.2.3", **forwarded) == "http://localhost"
    assert base(SETTINGS, "10.1.2.3", **forwarded) == "http://localhost"


@pytest.mark.parametrize("version", versions.SQL.listed)
def test_listed_versions_are_accepted(version: str) -> None:
    assert versions.SQL.check(version, "Microsoft.Sql/servers") == version


@pytest.mark.parametrize(
    ("kind", "version", "code"),
    [
        (versions.SQL, None, "MissingApiVersionParameter"),
        (versions.SQL, "", "MissingApiVersionParameter"),
        (versions.SQL, "2025-01-02", "NoRegisteredProviderFound"),
        (versions.SQL, "2.0", "NoRegisteredProviderFound"),
        (versions.RESOURCES, "2013-12-31", "InvalidApiVersionParameter"),
        (versions.RESOURCES, "2021-13-01", "InvalidApiVersionParameter"),
        (versions.RESOURCES, "2021-02-30", "InvalidApiVersionParameter"),
        (versions.RESOURCES, "2021-01-01-nope", "InvalidApiVersionParameter"),
        (versions.RESOURCES, "2.0", "InvalidApiVersionParameter"),
        (versions.RESOURCES, "٢٠٢١-01-01", "InvalidApiVersionParameter"),
    ],
)
def test_other_versions_are_refused(kind: versions.Versions, version: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        kind.check(version, "Microsoft.Sql/servers")

    assert refused.value.code == code
    if code == "NoRegisteredProviderFound":
        assert all(each in refused.value.message for each in versions.SQL.listed)


def test_dates_are_enough_for_the_core() -> None:
    assert versions.RESOURCES.accepts("2014-01-01")
    assert versions.RESOURCES.accepts("2099-12-31-preview")
    assert versions.SUBSCRIPTIONS.accepts("2.0")


class Hand(Clock):
    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at


async def test_a_bucket_empties_and_refills() -> None:
    clock = Hand()
    throttle = Throttle(replace(SETTINGS, throttle="on", throttle_writes=20), clock)
    left = [await throttle.spend("PUT", "alice", "s") for _ in range(20)]

    assert left[0] == (b"x-ms-ratelimit-remaining-subscription-writes", b"19")
    with pytest.raises(Throttled) as refused:
        await throttle.spend("PATCH", "alice", "S")
    assert refused.value.retry_after == 1
    assert refused.value.code == "TooManyRequests"
    await throttle.spend("PUT", "bob", "s")
    await throttle.spend("PUT", "alice", "other")
    await throttle.spend("DELETE", "alice", "s")
    clock.at += 1
    await throttle.spend("PUT", "alice", "s")


def test_the_throttle_is_on_with_an_issuer_only() -> None:
    assert not Throttle(SETTINGS, Clock()).on
    assert Throttle(replace(SETTINGS, oidc_issuer="https://i"), Clock()).on
    assert not Throttle(replace(SETTINGS, oidc_issuer="https://i", throttle="off"), Clock()).on


async def test_without_redis_each_process_counts_alone() -> None:
    settings = replace(SETTINGS, throttle="on", redis_url=Secret("redis://127.0.0.1:1/0"))
    throttle = Throttle(settings, Hand())

    assert await throttle.spend("GET", "a", None) == (
        b"x-ms-ratelimit-remaining-subscription-reads",
        b"249",
    )
    await throttle.close()


def test_an_error_has_arms_form() -> None:
    fault = InvalidRequest("no", target="a", details=[FieldError("a", "x"), FieldError("b", "y")])

    assert errors.body_of(fault, "r1") == {
        "error": {
            "code": "InvalidRequestContent",
            "message": "no",
            "target": "a",
            "details": [
                {"code": "InvalidParameterValue", "message": "x", "target": "a"},
                {"code": "InvalidParameterValue", "message": "y", "target": "b"},
            ],
            "additionalInfo": [{"type": "RequestId", "info": {"requestId": "r1"}}],
        }
    }


def test_retry_after_is_never_zero_and_only_where_wanted() -> None:
    again = errors.answer(Unavailable("away", retry_after=0), request_context())
    never = errors.answer(ProtocolFault(405, "X", "no"), request_context())

    assert (b"retry-after", b"1") in again.headers
    assert not any(name == b"retry-after" for name, _ in never.headers)


def test_ids_are_echoed_when_they_are_well_formed() -> None:
    good = request_context(
        headers={
            "x-ms-correlation-request-id": "abc-1",
            "x-ms-client-request-id": "mine",
            "x-ms-return-client-request-id": "true",
        }
    )
    bad = request_context(headers={"x-ms-correlation-request-id": "a b<script>"})

    assert dict(good.response_headers())[b"x-ms-correlation-request-id"] == b"abc-1"
    assert dict(good.response_headers())[b"x-ms-client-request-id"] == b"mine"
    assert bad.correlation_id == bad.request_id
