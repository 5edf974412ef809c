"""`muster diff -f`: what differs, and nothing is written."""

import pytest

from tests.support.declared_files import start_files
from tests.support.jobs_fixture import a_step, ref

pytestmark = pytest.mark.newest

SAME = """\
kind: credential
name: LOGIN
username: u
passwordFile: no-such-file
---
kind: group
name: fleet
members:
  - {type: SqlServer, serverName: SRV, refreshCredential: login}
---
kind: job
name: nightly
description: d
steps:
  - name: first
    targetGroup: Fleet
    credential: login
    action: {value: select 1}
    executionOptions: {timeoutSeconds: 43200}
"""


@pytest.fixture
async def files(settings, targets, tmp_path):
    async with start_files(settings, targets, tmp_path) as made:
        await made.api.a_job()
        yield made


async def test_what_is_the_same_differs_in_nothing(files):
    files.write("all.yaml", SAME)
    before = await files.writes()

    assert await files.muster("diff", "-f", "all.yaml") == (0, "", "")
    assert await files.muster("diff", "-f", "-", stdin=SAME) == (0, "", "")
    assert await files.writes() == before


async def test_a_difference_is_a_unified_diff_and_exits_with_2(files):
    files.write("all.yaml", SAME.replace("select 1", "select 2").replace("description: d\n", ""))
    await files.api.made("jobs/nightly/steps/last", a_step("select 3"))

    code, out, err = await files.muster("diff", "-f", ".")

    assert (code, err) == (2, "")
    lines = out.splitlines()
    assert lines[:2] == ["--- job nightly (account)", "+++ job nightly (all.yaml:11)"]
    assert "     targetGroup: Fleet" in lines, "what is the same is shown as the file has it"
    changed = [each for each in lines[2:] if each[0] in "+-"]
    assert changed[:4] == ["-      value: select 1", "+      value: select 2", "-  - name: last", "-    targetGroup: fleet"]  # fmt: skip
    assert [each["name"] for each in (await files.api.seen("jobs/nightly/steps"))["value"]] == [
        "first",
        "last",
    ]


async def test_what_is_new_is_shown_whole(files):
    files.write(
        "new.yaml",
        "kind: webhook\nname: ops\nurl: https://alerts.example.org/\nevents: [failed]\nsecretEnv: OPS\n",
    )

    code, out, err = await files.muster("diff", "-f", "new.yaml")

    assert (code, err) == (2, "")
    assert [each for each in out.splitlines() if each[0] == "+"][1:] == [
        "+kind: webhook", "+name: ops", "+url: https://alerts.example.org/", "+events:", "+  - failed", "+secretEnv: OPS",
    ]  # fmt: skip


async def test_a_password_differs_only_when_asked(files):
    files.write("all.yaml", SAME)

    code, out, _ = await files.muster("diff", "-f", "all.yaml", "--update-secrets")

    assert code == 2
    assert [each for each in out.splitlines() if each[0] in "+-"][2:] == [
        "+passwordFile: no-such-file"
    ]


async def test_a_password_in_the_place_of_a_reference_differs(files):
    where = "update jobs_internal.credential set secret = 'env:OTHER' where name = 'login'"
    await files.api.control(where)

    files.write("a.yaml", "kind: credential\nname: login\nusername: u\npasswordEnv: PW\n")

    code, out, _ = await files.muster("diff", "-f", "a.yaml")

    assert code == 2
    assert [each for each in out.splitlines() if each[0] in "+-"][2:] == [
        "-reference: env:OTHER",
        "+passwordEnv: PW",
    ]


async def test_what_nothing_has_is_refused_with_its_line(files):
    files.write("all.yaml", SAME.replace("targetGroup: Fleet", "targetGroup: fleeet"))
    files.write("b.yaml", "kind: job\nname: b\nsteps:\n  - name: s\n    action: {}\n")

    code, out, err = await files.muster("diff", "-f", ".")

    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "muster: b.yaml:4: steps[0].targetGroup: it is missing",
        "muster: b.yaml:5: steps[0].action.value: it is missing",
        "muster: all.yaml:16: steps[0].targetGroup: there is no target group 'fleeet' in the account or the files; did you mean fleet?",
    ]  # fmt: skip


async def test_an_account_that_is_not_there_is_an_error_and_no_difference(files):
    files.write("all.yaml", SAME)

    code, _, err = await files.muster("diff", "-f", "all.yaml", "--account", "nowhere")

    assert (code, err) == (6, "muster: there is no account 'nowhere'\n")
    gone = await files.muster("diff", "-f", "all.yaml", "--account", ref("").rstrip("/") + "2")
    assert gone[0] == 6
