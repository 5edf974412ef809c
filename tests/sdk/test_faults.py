"""Lost answers, busy APIs and streams that break, in each form of the SDKs."""

import json
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.sdk.conftest import PROGRAMS, TOOLS, clean, printed
from tests.sdk.faulty_api import NAME, FaultyApi, faulty_api

pytestmark = pytest.mark.timeout(600)

Call = Callable[[str], Any]


@pytest.fixture
def api() -> Iterator[FaultyApi]:
    with faulty_api() as running:
        yield running


@pytest.fixture(params=["sync", "aio", "typescript"])
def call(request: pytest.FixtureRequest, api: FaultyApi) -> Call:
    """What comes of one call against the API, made by an installed SDK."""
    if request.param == "typescript":
        program = ["node", request.getfixturevalue("compiled") / "one_call.js"]
    else:
        python = request.getfixturevalue("python")
        program = [python, "-W", "error", PROGRAMS / "one_call.py", request.param]
    return lambda name: json.loads(printed([*program, api.url, name], env=clean()))


@pytest.fixture(scope="session")
def compiled(folder):
    shutil.copy(PROGRAMS / "one_call.ts", folder)
    printed([TOOLS / ".bin" / "tsc", "-p", folder])
    return folder


@pytest.mark.parametrize("name", ["create", "change", "start"])
def test_a_write_whose_answer_is_lost_takes_effect_once_and_succeeds(api, call, name):
    api.faults = ["lost", "lost"]

    assert call(name) == "1"

    first, *again = api.sent("idempotency-key")
    assert first and again == [first, first]
    assert list(api.versions.values()) == [1]


def test_each_call_has_a_key_of_its_own(api, call):
    assert [call("start"), call("start")] == ["1", "2"]
    assert call("create") == "1"
    assert call("create") == ["PreconditionFailed", 412]
    assert len(set(api.sent("idempotency-key"))) == 4


def test_the_key_of_the_caller_is_sent(api, call):
    api.faults = ["lost"]

    assert call("create-under-own-key") == "1"

    assert api.sent("idempotency-key") == ["mine", "mine"]


def test_a_read_has_no_key_and_is_sent_again(api, call):
    api.faults = ["lost"]

    assert call("read") == "0"

    assert api.sent("idempotency-key") == [None, None]


def test_a_busy_api_is_asked_again(api, call):
    api.faults = [(429, {"Retry-After": "0"}), (503, {"Retry-After": "0"}), (503, {})]

    assert call("change") == "1"

    assert len(set(api.sent("idempotency-key"))) == 1
    assert len(api.requests) == 4


def test_the_wait_that_an_answer_names_is_kept(api, call):
    """One longer than a call may take is told to the caller at once, so nothing was waited for."""
    api.faults = [(429, {"Retry-After": "3600"})]

    assert call("change") == ["Busy", 429]

    assert len(api.requests) == 1


def test_a_stream_that_breaks_goes_on_after_its_last_event(api, call):
    """The names have characters at which Unicode ends a line."""
    api.faults = ["lost", "lost"]

    assert call("events") == [[number, NAME] for number in range(1, 7)]

    assert api.sent("last-event-id") == [None, "2", "4"]
