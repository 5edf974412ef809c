"""command-line: what a call of `muster` takes of its own, beside an empty Python program.

The API is a server that answers at once from memory, so that nothing but the command line is measured.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.report import compare, print_line, summary

ROUNDS = 5
CALLS = 5  # of each command in a round
ACCOUNT = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Sql/servers/eu1/jobAgents/night"
JOB = {
    "id": f"{ACCOUNT}/jobs/nightly",
    "name": "nightly",
    "properties": {"version": 1, "description": "", "schedule": {"enabled": False}},
}
PAGE = json.dumps({"value": [JOB] * 20}).encode()
COMMANDS = {
    "version": ["version"],
    "help": ["job", "create", "--help"],
    "complete": ["__complete", "bash", "job", "cr"],
    "list": ["job", "list", "-o", "json"],
    "query": ["job", "list", "--query", "value[].name", "-o", "yaml"],
}


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        """Not measured."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, api() as url:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "MUSTER_URL": url,
            "MUSTER_TOKEN": "t",
            "MUSTER_ACCOUNT": ACCOUNT,
        }
        program = [str(Path(sys.executable).with_name("muster"))]
        seconds: dict[str, list[float]] = {name: [] for name in ("python", *COMMANDS)}
        for _ in range(ROUNDS):
            seconds["python"].append(taken([sys.executable, "-c", "pass"], environ))
            for name, words in COMMANDS.items():
                seconds[name].append(taken([*program, *words], environ))
    ratios = {name: compare(seconds[name], seconds["python"]) for name in COMMANDS}
    rounds = {"ours": seconds["list"], "limit": seconds["python"]}
    print_line(
        summary(
            "command-line",
            rounds,
            digits=3,
            ratios={name: ratio for name, (ratio, _) in ratios.items()},
            seconds={name: round(statistics.median(each), 3) for name, each in seconds.items()},
            goal="0.3 s of its own",
            note="seconds of a call, `job list` of an API in memory beside `python -c pass`",
        )
    )


@contextmanager
def api() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def taken(command: Sequence[str], environ: dict[str, str]) -> float:
    """The median of some calls."""
    times = []
    for _ in range(CALLS):
        began = time.perf_counter()
        subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


if __name__ == "__main__":
    main()
