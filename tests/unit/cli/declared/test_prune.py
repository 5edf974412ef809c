"""A question before anything is deleted: no deletes nothing and writes nothing."""

import pytest

from muster.cli import main as cli
from tests.unit.cli.fake_rest import ACCOUNT, an_account, listed

KEPT = {"name": "kept", "properties": {"description": "d", "labels": {}}}
GONE = {"name": "gone", "properties": {"description": "", "labels": {"muster.applied": "true"}}}


@pytest.fixture
def jobs(rest):
    rest.on("GET", ACCOUNT, an_account())
    rest.on("GET", f"{ACCOUNT}/jobs", listed(KEPT, GONE))
    for each in (KEPT, GONE):
        rest.on("GET", f"{ACCOUNT}/jobs/{each['name']}", each)
        rest.on("GET", f"{ACCOUNT}/jobs/{each['name']}/steps", listed())
    rest.on("DELETE", f"{ACCOUNT}/jobs/gone", {})
    rest.on("PATCH", f"{ACCOUNT}/jobs/kept", KEPT)
    return rest


@pytest.mark.parametrize(("answer", "code", "written"), [("y\n", 0, 1), ("n\n", 1, 0), ("", 1, 0)])
def test_a_question_is_asked_before_the_first_write(
    jobs, terminal, tmp_path, answer, code, written
):
    file = tmp_path / "a.yaml"
    file.write_text("kind: job\nname: kept\ndescription: new\n")
    streams = terminal(answer)

    assert cli.main(["apply", "-f", str(file), "--prune"]) == code

    asked = streams["stderr"].getvalue()
    assert "To be deleted: job gone\nDelete 1 resource? [y/N]" in asked
    assert ("nothing was applied" in asked) == (not written)
    assert len(jobs.sent("DELETE", f"{ACCOUNT}/jobs/gone")) == written
    assert len(jobs.sent("PATCH", f"{ACCOUNT}/jobs/kept")) == written
