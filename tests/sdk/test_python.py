"""The Python SDK as it is installed: whole jobs over TLS, its types, and the way it was built."""

import filecmp
import sys
import tarfile
from pathlib import Path

import pytest

from tests.sdk.conftest import PROGRAMS, clean, package, printed

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("program", ["whole_job.py", "whole_job_async.py"])
def test_a_whole_job_runs(python, arguments, program, tmp_path):
    said = printed(
        [python, "-W", "error", PROGRAMS / program, *arguments], cwd=tmp_path, env=clean()
    )

    assert said == "all went well\n"


def mypy(python: Path, folder: Path, *what: str | Path) -> str:
    """Strict, as a program that has installed the package is checked."""
    strict = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python]
    return printed([*strict, "--cache-dir", folder / "cache", *what], cwd=folder)


def test_the_package_passes_a_strict_type_check(python, tmp_path):
    assert "Success" in mypy(python, tmp_path, "-p", "muster_sdk")


def test_a_program_knows_the_types_of_what_it_gets(python, tmp_path):
    assert "Success" in mypy(python, tmp_path, PROGRAMS / "typed.py")


def test_a_type_checker_sees_each_mistake(python, tmp_path):
    """Each line has an `ignore` with its error; one that is not needed is an error too."""
    assert "Success" in mypy(python, tmp_path, PROGRAMS / "wrongly_typed.py")


def test_the_same_document_gives_the_same_sources(tmp_path):
    for name in ("once", "again"):
        printed([sys.executable, "-m", "openapi.sdk", tmp_path / name], cwd=ROOT)

    compared = filecmp.dircmp(tmp_path / "once", tmp_path / "again")
    pending = [compared]
    while pending:
        one = pending.pop()
        assert (one.left_only, one.right_only, one.diff_files) == ([], [], [])
        pending += one.subdirs.values()
    assert compared.common_dirs


def test_the_source_distribution_has_all_modules():
    with tarfile.open(package("muster_sdk-*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {
        "LICENSE", "README.md", "muster_sdk/py.typed", "muster_sdk/models.py", "muster_sdk/aio/_groups.py",
        "muster_sdk/sync/_groups.py",
    } <= names  # fmt: skip
