"""README.md does what it says, command by command, on a fresh installation and a server of the reader's own."""

import pytest

from muster.cli.exits import Exit
from tests.docs.conftest import PASSWORD, access
from tests.support.pages import page
from tests.support.shell import PROGRAMS, commands, shell
from tests.support.stack import until

TENANTS = ("tenant_1", "tenant_2", "tenant_3")
UP = 'make up &                                   # until it says "Muster is up"'


@pytest.fixture
def tenants(own_server):
    """In the third one the table belongs to another role, and may only be read."""
    own = "alter table orders owner to "
    for name in TENANTS:
        own_server.query("postgres", f"create database {name} owner deploy")
        own_server.query(name, "create table orders (placed_at timestamptz)", own + "deploy")
    own_server.query("tenant_3", own + "postgres", "grant select on orders to deploy")
    return own_server


def test_the_commands_of_the_readme_work(tmp_path, muster, tenants):
    with page("README.md") as readme, shell(tmp_path, **access(muster)) as bash:
        a_fleet_of_yours(bash, readme.take("A fleet of yours"), tmp_path, tenants)
        a_tour_with_curl(bash, readme.take("A tour with curl"), muster)


def a_fleet_of_yours(bash, block, folder, tenants):
    (folder / "fix.sql").write_text("update orders set placed_at = now()")
    own = {"--host db-7.internal": tenants.arguments, "$PWD/.venv/bin": str(PROGRAMS), UP: ":"}
    codes = {"muster job start add-index": Exit.SOME_FAILED}
    outputs = {}
    for command in commands(block.with_(own)):
        if (
            "run rerun" in command
        ):  # what its reader does about the error that the line before shows
            tenants.query("tenant_3", "alter table orders owner to deploy")
        outputs |= bash.block(command, typed=PASSWORD, codes=codes)

    def printed(start):
        return next(text for command, text in outputs.items() if command.startswith(start))

    assert "3 targets, 0 with a problem." in printed("muster group doctor")
    assert "3 of 3 targets succeeded." in printed("muster exec")
    assert "2 of 3 targets succeeded, 1 failed." in printed("muster job start add-index")
    assert "must be owner of table orders" in printed("muster run errors")
    assert "1 of 1 targets succeeded." in printed("muster run rerun")
    assert "step 1 main: 3 targets in waves of 1, 2" in printed("muster job plan")
    assert "1 of 1 targets succeeded." in printed("muster job start fix")


def a_tour_with_curl(bash, block, muster):
    own = {
        UP + ", unless it runs already": ":",
        "~/.local/share/muster/secrets/token": str(muster.folder / "secrets" / "token"),
        "http://127.0.0.1:8080": muster.url,
        ".venv/bin/muster run show": "muster run show",
    }

    outputs = bash.block(block.with_(own))

    answers = [text for command, text in outputs.items() if command.startswith("api ")]
    assert len(answers) == 13
    assert [text for text in answers if not text.startswith('{"') or '"error"' in text] == []
    [last] = [command for command in outputs if command.startswith("muster run show vacuum")]
    until(lambda: "2 of 2 targets succeeded." in bash.run(last).output)
