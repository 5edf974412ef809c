import errno
import io
import json
import logging

import pytest
import structlog

from muster.core import telemetry
from muster.core.settings import Secret, Settings


@pytest.fixture
def lines(capsys):
    telemetry.setup("test", Settings(database_url=Secret("postgresql://x"), log_level="debug"))
    yield lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    structlog.contextvars.clear_contextvars()
    telemetry._configure(logging.INFO)


def test_a_line_is_one_json_object(lines):
    telemetry.get("here").info("step finished", machine="a\r\nb\x1b[31m", took=1.5, none=None)

    (line,) = lines()
    assert line["event"] == "step finished"
    assert (line["role"], line["source"], line["level"]) == ("test", "here", "info")
    assert line["machine"] == "a\r\nb\x1b[31m"  # escaped on the wire, one line in the log


@pytest.mark.parametrize(
    "fields",
    [
        {"password": "hunter2"},
        {"administratorLoginPassword": "hunter2"},
        {"Authorization": "Bearer hunter2"},
        {"x": Secret("hunter2")},
        {"x": {"inner": {"api_token": "hunter2"}}},
        {"x": [{"client_secret": "hunter2"}]},
        {"url": "postgresql://user:hunter2@host/db"},
        {"header": "Bearer hunter2"},
        {"body": b"hunter2"},
        {"clientKey": "hunter2"},
    ],
)
def test_no_secret_is_ever_logged(lines, fields):
    telemetry.get("here").warning("something", **fields)

    (line,) = lines()
    assert "hunter2" not in json.dumps(line)


def test_an_exception_is_class_message_and_stack_without_locals(lines):
    def deep() -> None:
        local = "hunter2"
        raise ValueError(f"bad length {len(local)}")

    try:
        deep()
    except ValueError:
        telemetry.get("here").exception("failed")

    (line,) = lines()
    assert line["error"] == "ValueError: bad length 7"
    assert any(entry.endswith(" deep") for entry in line["stack"])
    assert "hunter2" not in json.dumps(line)


def test_an_unhandled_default_is_safe_too(capsys):
    telemetry.get("here").info("x", password="hunter2")
    line = capsys.readouterr().err
    assert '"password": "***"' in line


def test_a_document_is_cut(lines):
    telemetry.get("here").info("x", text="a" * 100_000)
    assert len(lines()[0]["text"]) < 5_000


def test_numbers_for_prometheus():
    telemetry.UNAUTHENTICATED.labels("api", "Test").inc()
    assert (
        b'muster_unauthenticated_requests_total{code="Test",listener="api"}' in telemetry.metrics()
    )


def test_a_line_that_cannot_be_written_stops_nothing(monkeypatch):
    class Full(io.StringIO):
        writes = 0

        def write(self, text):
            self.writes += 1
            raise OSError(errno.ENOSPC, "No space left on device")

    stream = Full()
    monkeypatch.setattr("sys.stderr", stream)

    telemetry.get(__name__).error("request failed", code="X")
    assert stream.writes
    stream.close()
    telemetry.get(__name__).error("request failed", code="X")
