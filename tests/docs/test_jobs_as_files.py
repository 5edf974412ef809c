"""docs/how-to/jobs-as-files.md: an account becomes files, and the files become the account."""

import asyncio

from tests.support import arm
from tests.support.declared_files import Files, start_files
from tests.support.jobs_fixture import ACCOUNT
from tests.support.pages import page
from tests.support.shell import shell


async def test_an_account_is_kept_as_files(settings, targets, tmp_path):
    async with start_files(settings, targets, tmp_path) as files:
        await files.api.a_job()

        await asyncio.to_thread(follow_the_page, files)

        (job,) = (await files.api.seen("jobs"))["value"]
        assert (job["name"], job["properties"]["description"]) == ("nightly", "new")


def follow_the_page(files: Files) -> None:
    where = {"MUSTER_URL": files.url, "MUSTER_TOKEN": arm.TOKEN, "MUSTER_ACCOUNT": ACCOUNT}
    with (
        page("docs/how-to/jobs-as-files.md") as told,
        shell(files.folder, **where) as bash,
    ):
        bash.block(told.take("Begin with what there is").text)
        text = (files.folder / "jobs/account.yaml").read_text()
        assert "description: d\n" in text

        files.write("jobs/account.yaml", text.replace("description: d\n", "description: new\n"))
        changed = bash.block(told.take("Change something").text)
        assert "+description: new" in "".join(changed.values())
        assert "1 updated" in changed["muster apply -f jobs/"]

        extra = files.write("jobs/extra.yaml", "kind: job\nname: extra\nsteps: []\n")
        bash.block(told.take("In CI").text)
        assert "+name: extra" in (files.folder / "difference.txt").read_text()
        bash.block("muster apply -f jobs/")
        extra.unlink()
        (pruned,) = bash.block(told.take("In CI").text).values()
        assert "1 deleted" in pruned

        assert bash.block(told.take("See drift").text) == {"muster diff -f jobs/ --prune-all": ""}
