"""One `muster up --tls` and one fresh environment for each SDK; `make sdk` builds what is installed there."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.stack import Stack, muster_up

DIST = Path(__file__).parents[2] / "dist"
PROGRAMS = Path(__file__).parent / "programs"

Run = Callable[..., str]


def package(pattern: str) -> Path:
    [built] = DIST.glob(pattern) or pytest.fail(f"dist/ has no {pattern}: run `make sdk` first")
    return built


def printed(command: list[str | Path], **more) -> str:
    """What a program prints; fails with all of it when the program does."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, (
        f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    )
    return done.stdout


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with muster_up(tmp_path_factory.mktemp("muster"), tls=True) as running:
        yield running


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has the built wheel, what it needs, and nothing of Muster."""
    folder = tmp_path_factory.mktemp("python")
    uv = Path(sys.executable).parent / "uv"
    printed([uv, "venv", "-q", "--python", sys.executable, folder / "env"])
    own = folder / "env" / "bin" / "python"
    printed([uv, "pip", "install", "-q", "--python", own, package("muster_sdk-*.whl")])
    return own


@pytest.fixture
def arguments(stack: Stack, tmp_path: Path) -> list[str]:
    """What a program is told: where Muster is, who asks, whom to trust, and a folder for files."""
    return [stack.url, stack.token, stack.ca, str(tmp_path)]


def clean() -> dict[str, str]:
    """An environment in which no program finds Muster or its token by itself."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MUSTER_", "PYTHON"))
    }
