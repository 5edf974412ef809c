"""The shell commands in docs/reference/ about jobs, groups and runs, on one installation with the names that they use.

Pages: command-line.md diagnosis.md output.md plans.md reruns.md results.md rollouts.md run-attempts.md target-groups.md
"""

import asyncio

import asyncpg
import pytest

from tests.docs.conftest import PASSWORD, access
from tests.support.pages import page
from tests.support.shell import shell
from tests.support.stack import until

DATABASES = ("tenant_1", "tenant_7", "shop", "fleet")
MIGRATE = """alter table orders add column if not exists note text;
select pg_sleep(600) from hold limit 1"""
ACCOUNT = """
muster server add home --admin home_admin --subscription main --resource-group prod --create
muster account create nightly --database home/jobs
"""
MORE = """
muster server add fleet OWN --job-credential fleet-login
muster server add reports OWN --job-credential fleet-login
muster group create all --server eu1 --exclude-database eu1/fleet
muster group create everything --server eu1 --exclude-database eu1/fleet
muster group create one --server fleet
muster job create refresh -g all -c "select 1"
"""


@pytest.fixture
def bash(tmp_path, muster, own_server):
    own = "alter table orders owner to deploy"
    for name in DATABASES:
        own_server.query("postgres", f"create database {name} owner deploy")
        own_server.query(name, "create table orders (id int)", own, "create table hold (id int)")
        own_server.query(name, "alter table hold owner to deploy")
    own_server.query("shop", "create schema tenant_7 authorization deploy")
    (tmp_path / "migrate.sql").write_text(MIGRATE)
    (tmp_path / "copy.sql").write_text("select 1")
    (tmp_path / "report.sql").write_text("select 3")
    (tmp_path / "nightly.sql").write_text("select 1 as a; select 2 as b")
    with shell(tmp_path, **access(muster, "nightly")) as made:
        made.block(ACCOUNT, typed=PASSWORD)
        yield made


def told(name, section, bash, changes=None, codes=None):
    """The one block of a page, run; its other blocks are run by tests that the page names too."""
    with page(f"docs/reference/{name}", language="sh") as blocks:
        return bash.block(blocks.take(section).with_(changes or {}), typed=PASSWORD, codes=codes)


def test_the_commands_of_the_reference_work(bash, tmp_path, own_server):
    with page("docs/reference/command-line.md", language="sh") as blocks:
        own = {
            "--username job_runner": "--username deploy",
            "--host db1.internal": own_server.arguments,
        }
        *_, ran = bash.block(blocks.take("In five lines").with_(own), typed=PASSWORD).values()
        assert "4 of 4 targets succeeded." in ran
        bash.block(MORE.replace("OWN", own_server.arguments))
        enabled, _, version = bash.block(blocks.take("Common to all").text).values()
        assert (enabled, version) == ("nightly", "1")
        for section in (
            "`muster job update JOB`",
            "`muster job start JOB`",
            "`muster step add JOB STEP`",
            "`muster step update JOB STEP`",
            "`muster run list [JOB]`",
        ):
            bash.block(blocks.take(section).text)
        counted = blocks.take("`muster exec`").with_({"--expect-targets 60": "--expect-targets 4"})
        bash.block(counted)
        assert (tmp_path / "orders.csv").read_text().count("eu1,") == 4

    doctor, credential, history = told(
        "diagnosis.md", "Diagnosis of targets and logins", bash
    ).values()
    assert "3 targets, 0 with a problem." in doctor
    assert "1 login, 0 with a problem." in credential

    told("output.md", "Output", bash)
    bash.block("muster job start sizes --wait")
    [row] = own_server.query("fleet", "select count(*) from sizes")
    assert row[0] == 3

    first, second, query = told("plans.md", "SQL and command line", bash).values()
    bash.block("muster run watch refresh")
    assert "1 of 1 targets succeeded." in query

    *_, messages = told("results.md", "On the command line", bash).values()
    assert (tmp_path / "orders.csv").read_text().count("eu1,") == 3

    with page("docs/reference/target-groups.md") as blocks:
        bash.block(blocks.take("Labels").text)
        before = bash.run("muster group show gold").output
        in_the_control_database(bash, blocks.take("Labels").text)
        assert before != bash.run("muster group show gold").output

    told("run-attempts.md", "Attempts of a run", bash)
    rollouts_and_reruns(bash, own_server)


def in_the_control_database(bash, statement):
    """As psql would, as the administrator of its server."""
    rows = bash.run("muster server list -o tsv").output.splitlines()
    [port] = [int(row.split("\t")[2]) for row in rows if row.startswith("home\t")]

    async def ask() -> None:
        where = {"host": "127.0.0.1", "port": port, "database": "jobs"}
        connection = await asyncpg.connect(**where, user="home_admin", password=PASSWORD)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(ask())


def rollouts_and_reruns(bash, own_server):
    """`migrate` fails at tenant_7 alone, until the table belongs to the login again."""
    told("rollouts.md", "Rollouts", bash)
    own_server.query("tenant_7", "alter table orders owner to postgres")
    bash.block(
        """muster job start migrate --wait --set rollout='{"waves": ["100%"]}'""", codes={"": 2}
    )
    own_server.query("tenant_7", "alter table orders owner to deploy")

    with page("docs/reference/reruns.md", language="sh") as blocks:
        [rerun] = bash.block(blocks.take("Rerun").text).values()
        assert "1 of 1 targets succeeded." in rerun

        own_server.query("tenant_7", "alter table orders owner to postgres")
        own_server.query("shop", "insert into hold values (1)")  # so that the run goes on
        bash.block("""muster job start migrate --set rollout='{"waves": ["100%"]}'""")
        until(lambda: "Failed=1" in bash.run("muster run show migrate").output, seconds=60)
        own_server.query("tenant_7", "alter table orders owner to deploy")
        bash.block(blocks.take("Retry").text)
        until(lambda: "Succeeded=2" in bash.run("muster run show migrate").output, seconds=60)
        bash.block("muster run cancel migrate")
