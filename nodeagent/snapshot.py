"""`python -P -m nodeagent.snapshot`: the schema of a control database as reviewers read it.

Machines run the migrations; this writes what they lead to into engine/sql/schema.sql, from a
throw-away cluster. `--check` fails when the file tells something else.
"""

import asyncio
import sys
import tempfile
from collections.abc import Iterable, Mapping
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
from nodeagent.commands import install_schema
from nodeagent.control_db import Access, ControlDatabases
from nodeagent.expected_schema import ExpectedSchema
from nodeagent.invocation import Invocation, Services
from nodeagent.protocol import COMMANDS, Door, InstallSchema

A = Queries("nodeagent.sql", "administer.sql")

HEAD = """\
-- Written by `python -P -m nodeagent.snapshot` and never run: what migrations/, functions/ and views/
-- lead to, for reviewers.
"""
NOBODY = UUID(int=0)
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
    parts += [_table(name, by_kind) for name in by_kind.get("table", {})]
    parts += [
        f"create view {name} as\n{text.strip()}" for name, text in by_kind.get("view", {}).items()
    ]
    audiences: dict[str, list[str]] = {}
    for function, role in ExpectedSchema().audiences():
        audiences.setdefault(function, []).append(role)
    for name, text in by_kind.get("function", {}).items():
        roles = audiences.get(name.partition("(")[0].rpartition(".")[2], ["owner"])
        parts.append(f"-- for: {', '.join(roles)}\n{_signature(text)};")
    return HEAD + "\n" + "\n\n".join(parts) + "\n"


def _table(name: str, by_kind: Mapping[str, Mapping[str, str]]) -> str:
    constraints = _inside(by_kind, "constraint", name)
    lines = [f"    {column} {text}" for column, text in _inside(by_kind, "column", name).items()]
    lines += [f"    constraint {each} {text}" for each, text in constraints.items()]
    indexes = [
        text for each, text in _inside(by_kind, "index", name).items() if each not in constraints
    ]
    triggers = list(_inside(by_kind, "trigger", name).values())
    return "\n".join(
        [f"create table {name} (\n" + ",\n".join(lines) + "\n);"]
        + [f"{text};" for text in indexes + triggers]
    )


def _inside(by_kind: Mapping[str, Mapping[str, str]], kind: str, table: str) -> dict[str, str]:
    start = f"{table}."
    found = by_kind.get(kind, {}).items()
    return {name.removeprefix(start): text for name, text in found if name.startswith(start)}


def _signature(text: str) -> str:
    head = text.partition("\nAS $")[0]
    return "\n".join(line.rstrip() for line in head.splitlines())


async def made_anew() -> str:
    with tempfile.TemporaryDirectory(prefix="muster-snapshot-") as folder:
        Path(folder).chmod(0o755)  # noqa: ASYNC240 - PostgreSQL may run as another user
        cluster = Cluster(Path(folder) / "cluster")
        await cluster.create()
        await cluster.start()
        try:
            return await _installed(cluster.superuser_url())
        finally:
            await cluster.destroy()


async def _installed(superuser: Secret) -> str:
    url = urlsplit(superuser.reveal())
    settings = Settings(database_url=Secret("postgresql://nowhere.invalid/none"))
    connector = Connector(settings, embedded((HOST, url.port or 0)))
    databases = ControlDatabases(connector, settings, Clock())
    keyring = Keyring(Secret(f"snapshot:{ZEROS}"))
    password = Secret(url.password or "")
    sealed = {name: seal(keyring, NOBODY, name, password) for name in SPEC.sealed}
    invocation = Invocation(
        services=Services(databases, connector, keyring),
        account_uid=NOBODY,
        command_id=NOBODY,
        spec=SPEC,
        args=InstallSchema(
            identity=NOBODY,
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
        return await describe(connection)


def main() -> int:
    text = asyncio.run(made_anew())
    if "--check" in sys.argv[1:]:
        return 0 if path().read_text(encoding="utf-8") == text else 1
    path().write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
