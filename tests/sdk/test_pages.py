"""docs/how-to/use-the-sdks.md and docs/how-to/azure-sdk.md do what they say, block by block, over TLS."""

import sys
from pathlib import Path

import pytest

from tests.sdk.conftest import TOOLS, clean, printed
from tests.support.pages import page
from tests.support.shell import shell
from tests.support.stack import LOGIN, SERVER, Stack, a_server, an_account

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def account(stack: Stack) -> str:
    """With a group `all` of two databases, and a credential that may log in to them."""
    a_server(stack)
    for name in ("tenant_1", "tenant_2"):
        stack.put(f"{SERVER}/databases/{name}", {"location": "local"})
    path = an_account(stack, "pages")
    login = {
        "username": LOGIN["administratorLogin"],
        "password": LOGIN["administratorLoginPassword"],
    }
    member = {"type": "SqlDatabase", "serverName": "fleet", "databaseName": "tenant_*"}
    stack.put(f"{path}/credentials/admin", {"properties": login})
    stack.put(f"{path}/targetGroups/all", {"properties": {"members": [member]}})
    return path


def access(stack: Stack) -> dict[str, str]:
    return {"MUSTER_URL": stack.url, "MUSTER_TOKEN": stack.token, "MUSTER_CA": stack.ca}


def test_use_the_sdks(stack, account, python, folder, tmp_path):
    environment = clean() | access(stack) | {"ACCOUNT": account, "NODE_EXTRA_CA_CERTS": stack.ca}

    def run(*command: str | Path) -> list[str]:
        return printed([*command], cwd=tmp_path, env=environment).splitlines()

    with page("docs/how-to/use-the-sdks.md") as blocks:
        whole = "".join(blocks.take("Python").text for _ in range(4))
        said = run(python, "-W", "error", "-c", whole)
        assert said[0] == "Succeeded"
        assert "sizes 1" in said
        assert said[-2].startswith("PreconditionFailed ")
        assert "nothing" in said[-1]
        assert (tmp_path / "sizes.csv").read_text().count("fleet,tenant_") == 2

        [rows] = run(python, "-W", "error", "-c", blocks.take("Python with asyncio").text)
        assert rows.count("tenant_") == 2

        (folder / "page.ts").write_text(blocks.take("TypeScript").text)
        run(TOOLS / ".bin" / "tsc", "-p", folder)
        said = run("node", folder / "page.js")
        assert (said[0], said[-1]) == ("Succeeded", "ResourceNotFound")
        assert sum(line.startswith("fleet,tenant_") for line in said) == 2


def test_the_azure_sdk(stack, tmp_path):
    with page("docs/how-to/azure-sdk.md") as blocks:
        with shell(tmp_path, **access(stack), SSL_CERT_FILE=stack.ca) as bash:
            bash.block(blocks.take("Use an Azure SDK").text)
        sections = ("The client", "A server and an account", "A job", "A job")
        whole = "".join(blocks.take(each).text for each in sections)

        said = printed([sys.executable, "-c", whole], cwd=tmp_path, env=clean() | access(stack))

    state, lifecycle, *targets = said.splitlines()  # words of Azure's are printed with their class
    assert (state, lifecycle) == ("JobAgentState.READY", "JobExecutionLifecycle.SUCCEEDED")
    assert sorted(targets) == [f"tenant_{n} JobExecutionLifecycle.SUCCEEDED" for n in (1, 2)]
