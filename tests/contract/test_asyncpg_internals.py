"""The places where Muster depends on internals of asyncpg, which is pinned below its next minor version for that.

1. `muster/core/pinned_transport.py`: asyncpg opens each connection by `loop.create_connection(factory, host, port)`, so
   that a `Dialer` in the place of the loop decides where it leads; the protocol is an `asyncio.Protocol`.
2. `engine/pgwire/errors.py`: `PostgresError.new(fields)` makes an exception of a server's error, by the protocol's
   field codes, and keeps the fields in its `__dict__`, as `as_dict()` returns them.
3. `muster/core/connect.py`, `connect_errors.py`: names from submodules that asyncpg does not document.
"""

import inspect
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import asyncpg
from asyncpg import connect_utils

from engine.pgwire.errors import server_error

ROOT = Path(__file__).parents[2]
SOURCES = [
    file
    for package in ("api", "workflows", "fsm", "nodeagent", "engine", "muster")
    for file in (ROOT / package).rglob("*.py")
]
INTERNALS = re.compile(
    r"from asyncpg\.[\w.]+ import .+|PostgresError\.new\(|loop=cast\(.*dialer\)|\.as_dict\(\)"
)


def test_there_are_no_other_places():
    places = {
        (str(file.relative_to(ROOT)), found)
        for file in SOURCES
        for found in INTERNALS.findall(file.read_text(encoding="utf-8"))
    }

    assert places == {
        ("muster/core/connect.py", 'loop=cast("asyncio.AbstractEventLoop", dialer)'),
        ("muster/core/connect.py", "from asyncpg.connect_utils import SessionAttribute"),
        ("muster/core/connect_errors.py", "from asyncpg.pgproto import pgproto"),
        ("engine/pgwire/errors.py", "PostgresError.new("),
        ("engine/attempt/outcome.py", ".as_dict()"),
    }


def test_asyncpg_is_pinned_below_its_next_minor_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    major, minor = map(int, version("asyncpg").split(".")[:2])

    assert f"asyncpg>={major}.{minor},<{major}.{minor + 1}" in project["dependencies"]


def test_it_opens_connections_by_the_loop_that_it_is_given():
    source = inspect.getsource(connect_utils)

    assert "loop.create_connection(proto_factory, *addr)" in source


def test_it_makes_exceptions_of_the_fields_of_an_error():
    error = server_error({"C": "22012", "M": "division by zero", "P": "8", "H": "don't"})

    assert isinstance(error, asyncpg.DivisionByZeroError)
    fields = error.as_dict()
    assert (fields["sqlstate"], fields["message"], fields["position"], fields["hint"]) == (
        "22012", "division by zero", "8", "don't",
    )  # fmt: skip


def test_an_error_that_it_takes_for_a_warning_is_an_exception_all_the_same():
    error = server_error({"C": "01000", "M": "a warning"})

    assert isinstance(error, asyncpg.PostgresError)
    assert error.as_dict()["message"] == "a warning"
