"""The TypeScript SDK as it is installed: compiled strictly, and a whole job over TLS."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.sdk.conftest import PROGRAMS, clean, package, printed

TOOLS = Path(__file__).parents[2] / ".venv" / "openapi-tools" / "node_modules"
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

pytestmark = pytest.mark.timeout(600)


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


def test_a_whole_job_runs(folder, arguments):
    shutil.copy(PROGRAMS / "whole_job.ts", folder)
    printed([TOOLS / ".bin" / "tsc", "-p", folder])

    url, token, ca, _ = arguments
    said = printed(
        ["node", folder / "whole_job.js", url, token], env=clean() | {"NODE_EXTRA_CA_CERTS": ca}
    )

    assert said == "all went well\n"


def test_the_package_has_types_and_no_dependency():
    with tarfile.open(package("muster-sdk-*.tgz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        described = json.load(archive.extractfile("package/package.json"))

    assert {"lib/index.js", "lib/index.d.ts", "lib/clients.js", "LICENSE", "README.md"} <= names
    assert not {"dependencies", "peerDependencies", "scripts"} & described.keys()
