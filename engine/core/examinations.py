"""Examines for the control plane how the targets of a group can be used, and where a credential can log in."""

import asyncio
from typing import Any
from uuid import UUID

import msgspec

from engine.context.core_context import CoreContext
from engine.db.control_connection import ControlConnection
from engine.model.credential import Credential, VersionedCredential, render_name
from engine.model.group_document import Document
from engine.model.server import Server, ServerLookup
from engine.targets import findings
from engine.targets.examination import Examination, Needs
from engine.targets.findings import Finding
from engine.targets.group_doctor import GroupDoctor, Use, page, session_facts
from engine.targets.resolution import Resolution, TargetKey
from engine.targets.resolver import Resolver
from muster.core.errors import Fault, Unavailable
from muster.core.sql import Queries

Q = Queries("engine.db.queries", "instance.sql", "executions.sql")

DEADLINE = 18.0  # seconds to examine; the control plane waits a little longer
MAX_PARALLEL_SERVERS = 32
KEPT_RESOLUTION = 300.0  # seconds: the pages of one group follow each other


class Examinations:
    def __init__(self, context: CoreContext, connection: ControlConnection) -> None:
        self._context = context
        self._connection = connection
        self._resolved: tuple[tuple[str, int], float, Resolution] | None = None

    async def doctor(self, group: str, after: str | None = None) -> dict[str, Any]:
        """A page of the targets of a group; `next` is the `after` of the following one."""
        deadline = self._context.clock.monotonic() + DEADLINE
        text = await self._connection.value(Q.group_document, group)
        document = msgspec.json.decode(text, type=Document)
        rows = await self._connection.fetch(Q.group_uses, group)
        uses = [msgspec.convert(dict(row), Use) for row in rows]
        credentials = await self._read_credentials(uses)
        examination = self._context.targets.examination(document.identity)
        first = next(iter(credentials.values()), None)
        last = msgspec.json.decode(after, type=TargetKey) if after else None
        resolution = await self._resolve(document, examination, first, again=last is None)
        missing = {target.key for target in resolution.missing}
        everything = sorted(
            (*resolution.targets, *resolution.missing), key=lambda target: target.key
        )
        targets, more = page(everything, last)
        doctor = GroupDoctor(
            document, examination, uses, credentials, self._context.clock, deadline
        )
        value = await doctor.examine(targets, missing)
        following = msgspec.json.encode(targets[-1].key).decode() if more else None
        return {"value": value, "next": following, "count": len(everything)}

    async def test(self, name: str, server_ids: list[str], database: str | None) -> dict[str, Any]:
        """The login at each of the servers, each tried once."""
        deadline = self._context.clock.monotonic() + DEADLINE
        rows = await self._connection.fetch(Q.credential_named, name)
        text = await self._connection.value(Q.servers, server_ids)
        lookup = msgspec.json.decode(text, type=ServerLookup)
        credential = VersionedCredential.of(dict(rows[0])) if rows else None
        if credential is None:
            return {"value": []}
        examination = self._context.targets.examination(lookup.identity)
        parallel = asyncio.Semaphore(MAX_PARALLEL_SERVERS)

        async def test(server: Server) -> dict[str, Any]:
            async with parallel:
                return await self._log_in(examination, server, credential, database, deadline)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(test(server)) for server in lookup.servers]
        return {"value": [task.result() for task in tasks]}

    async def _log_in(
        self,
        examination: Examination,
        server: Server,
        credential: Credential,
        database: str | None,
        deadline: float,
    ) -> dict[str, Any]:
        name = database or server.maintenance_database
        row: dict[str, Any] = {"serverName": server.name, "databaseName": name}
        try:
            values = {"target_server_name": server.name, "target_database_name": name}
            row["username"] = render_name(credential.username, values)
            left = deadline - self._context.clock.monotonic()
            async with asyncio.timeout(max(0.0, left)):
                async with examination.admin_lock(server.server_id):
                    rights = await examination.rights(server, name, credential, Needs())
            return row | {"ok": True, **session_facts(server, rights.session)}
        except TimeoutError:
            message = f"The time was up before '{server.name}' was asked."
            fault: Fault = Unavailable(message, code="NotChecked")
        except Fault as error:
            fault = error
        finding: Finding = findings.failure(fault, name, row.get("username"))
        return row | {"ok": False, **msgspec.to_builtins(finding)}

    async def _read_credentials(self, uses: list[Use]) -> dict[UUID, Credential]:
        ids = [use.credential_id for use in uses if use.credential_id is not None]
        rows = await self._connection.fetch(Q.secrets, ids) if ids else []
        found = [VersionedCredential.of(dict(row)) for row in rows]
        return {credential.credential_id: credential for credential in found}

    async def _resolve(
        self,
        document: Document,
        examination: Examination,
        credential: Credential | None,
        *,
        again: bool,
    ) -> Resolution:
        """What the first page resolved counts for those that follow it."""
        key, now = (document.hash, document.directory.revision), self._context.clock.monotonic()
        kept = self._resolved
        if kept is not None and not again and kept[0] == key and now - kept[1] < KEPT_RESOLUTION:
            return kept[2]
        resolver = Resolver(document, examination, credential)
        resolution = await resolver.resolve(check_named=True)
        self._resolved = key, now, resolution
        return resolution
