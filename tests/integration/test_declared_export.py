"""`muster export`: what it writes shows no difference, and makes an equal account of an empty one."""

import pytest

from tests.integration.test_declared_apply import ALL, SECRET
from tests.support.declared_files import start_files

pytestmark = pytest.mark.newest

NAMES = (
    "webhooks/ops",
    "jobs/nightly",
    "targetGroups/nested",
    "targetGroups/tenants",
    "credentials/login",
)


@pytest.fixture
async def files(settings, targets, tmp_path):
    async with start_files(settings, targets, tmp_path) as made:
        made.write("all.yaml", ALL)
        made.write("sql/second.sql", "select 2\n")
        made.write("secrets/login", "hush\n")
        code, _, err = await made.muster("apply", "-f", "all.yaml", **SECRET)
        assert (code, err) == (0, "")
        yield made


async def definitions(files):
    """All that is defined, without what belongs to the rows."""
    seen = {}
    for path in NAMES:
        seen[path] = (await files.api.seen(path))["properties"]
    for each in (await files.api.seen("jobs/nightly/steps"))["value"]:
        seen["step " + each["name"]] = each["properties"]
    seen["jobs/nightly"].pop("version")
    seen["webhooks/ops"]["events"].sort()  # they have no order
    for member in seen["targetGroups/tenants"]["members"] + seen["targetGroups/nested"]["members"]:
        del member["targetId"]
    return seen


async def test_an_export_shows_no_difference_and_makes_an_equal_account(files):
    code, out, err = await files.muster("export", "--to", "copy.yaml")
    assert (code, out, err) == (0, "", "")
    before, text = await definitions(files), (files.folder / "copy.yaml").read_text()

    assert await files.muster("export", "job", "--to", "copy.yaml") == (
        1,
        "",
        "muster: copy.yaml is there already; --replace writes over it\n",
    )
    assert (files.folder / "copy.yaml").read_text() == text
    assert (await files.muster("export", "--to", "copy.yaml", "--replace"))[0] == 0

    assert await files.muster("diff", "-f", "copy.yaml") == (0, "", "")
    assert (await files.muster("export"))[1] == text, "the order is stable"
    assert "      value: |\n        select 1;\n        select 'ä'\n" in text
    assert "hush" not in text and SECRET["OPS_SECRET"] not in text and "muster.applied" not in text

    for path in NAMES:
        assert (await files.api.delete(path)).status_code == 200
    secrets = {"SECRET_OF_OPS": SECRET["OPS_SECRET"], "PASSWORD_OF_LOGIN": "hush"}
    code, _, err = await files.muster("apply", "-f", "copy.yaml", **secrets)

    assert (code, err) == (0, "")
    assert await definitions(files) == before


async def test_a_part_is_exported(files):
    _, job, _ = await files.muster("job", "export", "NIGHTLY")
    _, groups, _ = await files.muster("export", "groups")

    assert (
        job.startswith("kind: job\nname: nightly\n")
        and job == (await files.muster("export", "job", "nightly"))[1]
    )
    assert [line for line in groups.splitlines() if line.startswith("name")] == [
        "name: nested",
        "name: tenants",
    ]
    assert await files.muster("export", "job", "nightyl") == (6, "", "muster: there is no job 'nightyl'; did you mean nightly?\n")  # fmt: skip
    assert await files.muster("export", "jbo") == (
        1,
        "",
        "muster: there is no kind 'jbo'; did you mean job?\n",
    )


async def test_prune_deletes_what_apply_created_and_no_file_states(files):
    await files.api.made("jobs/theirs", {"properties": {}})
    files.write("rest.yaml", ALL[: ALL.index("---\nkind: job")])

    code, out, _ = await files.muster("diff", "-f", "rest.yaml", "--prune")
    assert code == 2 and "--- job nightly (account)" in out and "theirs" not in out
    code, out, err = await files.muster("apply", "-f", "rest.yaml", "--prune")
    assert (code, out) == (1, "")
    assert err == "muster: deleting job nightly without a terminal needs --yes\n"
    code, out, err = await files.muster("apply", "-f", "rest.yaml", "--prune", "--yes", "-o", "tsv")

    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == ["webhook\tops\tunchanged", "job\tnightly\tdeleted"]
    assert [each["name"] for each in (await files.api.seen("jobs"))["value"]] == ["theirs"]
    assert (await files.api.get("targetGroups/tenants")).status_code == 200


async def test_prune_all_deletes_everything_that_no_file_states(files):
    await files.api.made("jobs/theirs", {"properties": {}})
    files.write("rest.yaml", ALL[ALL.index("kind: credential") :])

    code, out, err = await files.muster(
        "apply", "-f", "rest.yaml", "--prune-all", "--yes", "-o", "tsv"
    )

    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == [
        "credential\tlogin\tunchanged", "webhook\tops\tdeleted", "job\ttheirs\tdeleted", "job\tnightly\tdeleted",
        "group\tnested\tdeleted", "group\ttenants\tdeleted",
    ]  # fmt: skip
    assert (await files.muster("diff", "-f", "rest.yaml", "--prune-all")) == (0, "", "")
