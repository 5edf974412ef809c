"""The workload API, spoken to over ASGI."""

from types import SimpleNamespace

from structlog.testing import capture_logs

from api.internal import BASE, build


async def test_a_client_that_is_gone_before_its_body_ended_is_no_error_of_ours():
    async def caller(_):
        return None

    received = iter(
        [
            {"type": "http.request", "body": b'{"work', "more_body": True},
            {"type": "http.disconnect"},
        ]
    )
    sent = []

    async def receive():
        return next(received)

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "PUT",
        "path": f"{BASE}/heartbeat",
        "raw_path": f"{BASE}/heartbeat".encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
        "http_version": "1.1",
    }
    with capture_logs() as logs:
        await build(SimpleNamespace(caller=caller))(scope, receive, send)
    assert sent[0]["status"] == 400
    assert [entry for entry in logs if entry["log_level"] == "error"] == []
