"""The TypeScript SDK as it is installed: compiled strictly, and a whole job over TLS."""

import json
import shutil
import tarfile

import pytest

from tests.sdk.conftest import PROGRAMS, TOOLS, clean, package, printed

pytestmark = pytest.mark.timeout(600)


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
