"""An API on the loopback that answers a few requests, and fails as it is told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME = "north\u2028south\u2029east\u0085west"  # JSON has these as they are
PIECE = 5  # bytes; characters and lines are cut apart


class FaultyApi(ThreadingHTTPServer):
    """Each request meets the next of `faults`: "lost" after it was carried out, or a status and its headers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.faults: list[str | tuple[int, dict[str, str]]] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.versions: dict[str, int] = {}  # of each path that was written
        self.answers: dict[str, tuple[int, dict]] = {}  # by the key of the write

    def sent(self, header: str) -> list[str | None]:
        return [headers.get(header) for _, headers in self.requests]

    def write(self, path: str, headers: dict[str, str]) -> tuple[int, dict]:
        """Under one key once, and under conditions, as Muster does it."""
        key = headers.get("idempotency-key", "")
        if key in self.answers:
            return self.answers[key]
        version = self.versions.get(path, 0)
        is_refused = (headers.get("if-none-match") == "*" and version > 0) or (
            headers.get("if-match", str(version)) != str(version)
        )
        if is_refused:
            return 412, {"error": {"code": "PreconditionFailed", "message": "It has changed."}}
        self.versions[path] = version + 1
        answer = 200, shown_at(path, version + 1)
        if key:
            self.answers[key] = answer
        return answer


def shown_at(path: str, version: int) -> dict:
    return {"id": path, "name": str(version), "type": "T", "properties": {}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyApi

    def do_PUT(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.rfile.read(int(headers.get("content-length", 0)))
        self.server.requests.append((self.command, headers))
        fault = self.server.faults.pop(0) if self.server.faults else None
        path = self.path.partition("?")[0]
        if isinstance(fault, tuple):
            status, more = fault
            self.reply(status, {"error": {"code": "Busy", "message": "Later."}}, more)
        elif path.endswith("/events"):
            self.events(int(headers.get("last-event-id", 0)), is_cut=fault == "lost")
        else:
            status, shown = (
                (200, shown_at(path, self.server.versions.get(path, 0)))
                if self.command == "GET"
                else self.server.write(path, headers)
            )
            if fault == "lost":
                self.close_connection = True
            else:
                self.reply(status, shown, {})

    do_PATCH = do_POST = do_GET = do_PUT

    def reply(self, status: int, content: dict, headers: dict[str, str]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def events(self, after: int, *, is_cut: bool) -> None:
        """Two events after the one that the client has; then the end, or a connection that is lost."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        data = json.dumps({"name": NAME}, ensure_ascii=False)
        lines = [f"id: {after + n}\nevent: target\ndata: {data}\n\n" for n in (1, 2)]
        text = "".join(lines) + ("id: 9" if is_cut else "event: end\ndata: {}\n\n")
        content = text.encode()
        for at in range(0, len(content), PIECE):
            piece = content[at : at + PIECE]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if not is_cut:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def faulty_api() -> Iterator[FaultyApi]:
    server = FaultyApi()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
