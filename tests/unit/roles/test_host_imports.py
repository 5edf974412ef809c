"""A host process loads no module of the core, and a core process none of the host."""

import subprocess
import sys

import pytest

CORE = ("engine.core", "engine.context", "engine.targets", "engine.scheduling")
HOST = ("engine.host", "engine.attempt", "engine.pool", "engine.pgwire")
RUN = """
import asyncio, pathlib, sys
from muster.roles import {role}
code = asyncio.run({role}.run(pathlib.Path("no-such-start-file")))
print(code, *sorted(name for name in sys.modules if name.startswith("engine.")), sep="\\n")
"""


@pytest.mark.parametrize(("role", "own", "foreign"), [("host", HOST, CORE), ("engine", CORE, HOST)])
def test_a_started_process_loads_only_the_rooms_of_its_side(role, own, foreign):
    done = subprocess.run(
        [sys.executable, "-P", "-c", RUN.format(role=role)], capture_output=True, text=True
    )
    code, *modules = done.stdout.split()
    assert code != "0", done.stderr
    for room in own:
        assert room in modules
    assert [name for name in modules if name.startswith(foreign)] == []
