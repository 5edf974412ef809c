"""One `muster up --tls` and one fresh environment for each SDK; `make sdk` builds what is installed there."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stack import Stack, muster_up

DIST = Path(__file__).parents[2] / "dist"
PROGRAMS = Path(__file__).parent / "programs"
TOOLS = DIST.parent / ".venv" / "openapi-tools" / "node_modules"
OPTIONS = {
    "target": "es2022",
    "module": "nodenext",
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "noUncheckedIndexedAccess": True,
    "skipLibCheck": False,
    "types": ["node"],
    "typeRoots": [str(TOOLS / "@types")],
}


def package(pattern: str) -> Path:
    built = list(DIST.glob(pattern))
    assert len(built) == 1, f"dist/ has {built} for {pattern}: run `make sdk` with an empty dist"
    return built[0]


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


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the built package is installed, and nothing else."""
    made = tmp_path_factory.mktemp("typescript")
    (made / "package.json").write_text('{"type": "module", "private": true}')
    (made / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": OPTIONS, "include": ["*.ts"]})
    )
    install = ["npm", "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"]
    printed([*install, package("muster-sdk-*.tgz")], cwd=made)
    assert [each.name for each in (made / "node_modules" / "@muster").iterdir()] == ["sdk"]
    return made


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
