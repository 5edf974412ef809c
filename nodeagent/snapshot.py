"""`python -P -m nodeagent.snapshot`: writes engine/sql/schema.sql, the schema as reviewers read it.

The types, tables, constraints, triggers and views are those of a schema that is installed in a throw-away
cluster. `--check` fails when the file differs.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

from muster.core.address_source import embedded
from muster.core.clock import Clock
from muster.core.cluster import HOST, Cluster
from muster.core.connect import Connector, Endpoint
from muster.core.db import Connection
from muster.core.secrets import Keyring
from muster.core.settings import Secret, Settings
from muster.core.sql import Queries
from nodeagent.client import seal
from nodeagent.command_table import COMMANDS
from nodeagent.commands import install_schema
from nodeagent.control_db import Access, ControlDatabases
from nodeagent.invocation import Invocation, Services
from nodeagent.protocol import Door, InstallSchema

A = Queries("nodeagent.sql", "administer.sql")

HEAD = """\
-- Written by `python -P -m nodeagent.snapshot` and never run: the types, tables and views that migrations/
-- and views/ create, for reviewers. Functions are in functions/.
"""
NO_ACCOUNT = UUID(int=0)
SPEC = COMMANDS["install_schema"]
ZEROS = "A" * 43 + "="  # 32 bytes in base64


def path() -> Path:
    return Path(str(resources.files("engine.sql"))) / "schema.sql"


async def describe(connection: Connection) -> str:
    """As the administrator, who belongs to the owner role."""
    rows = await connection.fetch(A.describe)
    return render([(row["kind"], row["name"], row["definition"]) for row in rows])


def render(objects: Iterable[tuple[str, str, str]]) -> str:
    by_kind: dict[str, dict[str, str]] = {}
    for kind, name, definition in objects:
        by_kind.setdefault(kind, {})[name] = definition
    parts = [f"create schema {name};" for name in by_kind.get("schema", {})]
    parts += [_type(name, by_kind) for name in by_kind.get("type", {})]
    parts += [_table(name, by_kind) for name in by_kind.get("table", {})]
    parts += [
        f"create view {name} as\n{text.strip()}" for name, text in by_kind.get("view", {}).items()
    ]
    return HEAD + "\n" + "\n\n".join(parts) + "\n"


def _type(name: str, by_kind: Mapping[str, Mapping[str, str]]) -> str:
    attributes = _inside(by_kind, "column", name).items()
    lines = [f"    {attribute} {text}" for attribute, text in attributes]
    return f"create type {name} as (\n" + ",\n".join(lines) + "\n);"


def _table(name: str, by_kind: Mapping[str, Mapping[str, str]]) -> str:
    constraints = _inside(by_kind, "constraint", name)
    lines = [f"    {column} {text}" for column, text in _inside(by_kind, "column", name).items()]
    lines += [f"    constraint {each} {text}" for each, text in constraints.items()]
    indexes = [
        text for each, text in _inside(by_kind, "index", name).items() if each not in constraints
    ]
    triggers = list(_inside(by_kind, "trigger", name).values())
    body = "(\n" + ",\n".join(lines) + "\n)" if lines else "()"
    return "\n".join([f"create table {name} {body};"] + [f"{text};" for text in indexes + triggers])


def _inside(by_kind: Mapping[str, Mapping[str, str]], kind: str, table: str) -> dict[str, str]:
    start = f"{table}."
    objects = by_kind.get(kind, {}).items()
    return {name.removeprefix(start): text for name, text in objects if name.startswith(start)}


async def build(read: Callable[[Connection], Awaitable[str]] = describe) -> str:
    """What `read` gives of a schema that is installed in a throw-away cluster."""
    with tempfile.TemporaryDirectory(prefix="muster-snapshot-") as folder:
        Path(folder).chmod(0o755)  # noqa: ASYNC240 - PostgreSQL may run as another user
        cluster = Cluster(Path(folder) / "cluster")
        await cluster.create()
        await cluster.start()
        try:
            return await _install_and_read(cluster.superuser_url(), read)
        finally:
            await cluster.destroy()


async def _install_and_read(superuser: Secret, read: Callable[[Connection], Awaitable[str]]) -> str:
    url = urlsplit(superuser.reveal())
    settings = Settings(database_url=Secret("postgresql://nowhere.invalid/none"))
    connector = Connector(settings, embedded((HOST, url.port or 0)))
    databases = ControlDatabases(connector, settings, Clock())
    keyring = Keyring(Secret(f"snapshot:{ZEROS}"))
    password = Secret(url.password or "")
    sealed = {name: seal(keyring, NO_ACCOUNT, name, password) for name in SPEC.sealed}
    invocation = Invocation(
        services=Services(databases, connector, keyring),
        account_uid=NO_ACCOUNT,
        command_id=NO_ACCOUNT,
        spec=SPEC,
        args=InstallSchema(
            identity=NO_ACCOUNT,
            public_key=ZEROS,
            agent_password=sealed["agent_password"],
            engine_password=sealed["engine_password"],
        ),
        access=Access(
            Endpoint(host=HOST, port=url.port or 0, ssl_mode="disable"),
            "postgres",
            url.username or "",
            password,
        ),
        digest="",
        caller="snapshot",
        door=Door.FSM,
    )
    await install_schema.run(invocation)
    async with databases.administer(invocation.access, SPEC.timeout) as connection:
        return await read(connection)


def main() -> int:
    text = asyncio.run(build())
    if "--check" in sys.argv[1:]:
        return 0 if path().read_text(encoding="utf-8") == text else 1
    path().write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
