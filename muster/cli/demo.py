"""`muster demo`: a fleet of 60 tenants, a nightly job, two failures as every DBA knows them, and their end.

Starts everything in a directory of its own. On a terminal it stays up until Enter or Ctrl-C; without
one it stops by itself and leaves no process.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from muster.cli import client, demo_tour
from muster.cli.announce import announced
from muster.cli.arguments import Parser, epilog
from muster.cli.client import Api, Refused
from muster.cli.demo_fleet import ADMIN
from muster.cli.demo_tour import ACCOUNT, SERVERS, Place, Wrong
from muster.cli.exits import Exit
from muster.core.errors import Fault
from muster.core.files import make_folder

START_LIMIT = 120.0  # seconds


def add(made: Parser) -> None:
    made.add_argument("--data-dir", type=Path, default=Path(".demo"), help="default: .demo")
    made.epilog = epilog("muster demo --data-dir .demo")
    made.set_defaults(run=lambda options: run(options.data_dir))


def run(data_dir: Path) -> int:
    began = time.monotonic()
    folder = make_folder(data_dir.resolve(), 0o755)
    try:
        with _up(folder) as place, client.connect(place.url, place.token) as http:
            os.environ |= {
                "MUSTER_URL": place.url,
                "MUSTER_TOKEN": place.token,
                "MUSTER_ACCOUNT": ACCOUNT,
            }
            demo_tour.walk(place, Api(http))
            print(f"\nAll of this took {time.monotonic() - began:.0f} s.")
            if sys.stdin.isatty() and sys.stdout.isatty():
                _stay(place, Api(http))
    except Refused as refused:
        print(refused.line, file=sys.stderr)
        return Exit.USAGE
    except Exception as error:  # noqa: BLE001 - a new user gets one line and the logs, no traceback
        print(f"muster demo: {_first_line(error)} The logs are in {folder}/logs.", file=sys.stderr)
        return Exit.USAGE
    print("\nDone: everything is stopped, the data is kept in", folder)
    return Exit.SUCCEEDED


@contextlib.contextmanager
def _up(folder: Path) -> Iterator[Place]:
    ready = folder / "ready.json"
    ready.unlink(missing_ok=True)
    words = ["up", "--data-dir", folder, "--listen", "127.0.0.1:0", "--ready-file", ready]
    environ = {name: value for name, value in os.environ.items() if name != "MUSTER_ACCOUNT"}
    command = [sys.executable, "-P", "-m", "muster", *map(str, words)]
    up = subprocess.Popen(command, env=environ)  # noqa: S603 - ourselves
    try:
        with announced("Starting Muster (the first start makes a PostgreSQL cluster)"):
            addresses = _wait(up, ready)
        yield Place(folder, addresses["url"], addresses["token"], addresses["database_url"])
    finally:
        up.send_signal(signal.SIGTERM)
        with announced("\nEnding the demo"):
            code = up.wait(timeout=30)
    if code:
        raise Wrong(f"muster up ended with {code}")


def _wait(up: "subprocess.Popen[bytes]", ready: Path) -> dict[str, Any]:
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        if up.poll() is not None:
            raise Wrong(f"muster up ended with {up.returncode}")
        if ready.exists():
            document: dict[str, Any] = json.loads(ready.read_text(encoding="utf-8"))
            return document
        time.sleep(0.1)
    raise Wrong(f"Muster did not become ready within {START_LIMIT:.0f} s; see the logs.")


def _first_line(error: BaseException) -> str:
    """The first failure of a group of tasks, in one line; with its type if it is an unexpected one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = str(error).strip().partition("\n")[0] or "no message."
    expected = isinstance(error, Wrong | Fault | OSError | subprocess.SubprocessError)
    return text if expected else f"{type(error).__name__}: {text}"


def _stay(place: Place, api: Api) -> None:
    endpoint = api.get(f"{SERVERS}/fleet-1")["properties"]["endpoint"]
    where = f"-h {endpoint['host']} -p {endpoint['port']} -U {ADMIN} -d jobs"
    token, password = (shlex.quote(str(f)) for f in (place.token_file, place.password_file))
    print(
        f"""
Muster stays up at {place.url} until Enter or Ctrl-C. In another terminal:
  export MUSTER_URL={place.url} MUSTER_TOKEN_FILE={token}
  {_program()} run list
  the control database:  PGPASSWORD=$(cat {password}) psql {where}
  your own server:       {_program()} server add NAME --host HOST --job-credential CREDENTIAL"""
    )
    with contextlib.suppress(KeyboardInterrupt, EOFError):
        input()


def _program() -> str:
    """As it was called: perhaps no path leads to it."""
    called = Path(sys.argv[0])
    return shlex.quote(str(called.resolve())) if called.name == "muster" else "muster"
