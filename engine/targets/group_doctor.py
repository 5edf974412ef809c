"""Examines targets as steps would meet them: server, TLS, login and rights. No script runs, nothing is written.

The core has one session at a time at each server, opened no faster than the server's rate allows. A server that
can't be reached, and a login that a server refused, are tried once.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

import msgspec

from engine.model.credential import Credential, render_name
from engine.model.group_document import Document
from engine.model.server import Server
from engine.targets import findings, rights
from engine.targets.examination import Examination, Needs
from engine.targets.findings import Finding
from engine.targets.resolution import Target, TargetKey
from muster.core.clock import Clock
from muster.core.errors import Conflict, Fault, InvalidRequest, NotFound, Unavailable

MAX_TARGETS = 500  # of one answer
MAX_SERVER_TARGETS = 50  # of them at one server
MAX_PARALLEL_SERVERS = 32
CONNECTION_RATE = 5.0  # new connections per second and server, unless the server has its own


class Use(msgspec.Struct, frozen=True):
    """What a kind of steps needs at the targets of a group; a row of group_uses."""

    credential_id: UUID | None = None
    role: str | None = None
    guarded: bool = False
    writes: bool = False
    steps: tuple[str, ...] = ()


class Login(msgspec.Struct, frozen=True):
    """A credential at one target, and what the steps that use it need there."""

    credential: Credential | None
    needs: Needs
    steps: tuple[str, ...]


def page(targets: Sequence[Target], after: TargetKey | None) -> tuple[list[Target], bool]:
    """The next targets in the order of their keys, and whether there are more."""
    taken: list[Target] = []
    of_server = 0
    for target in targets:
        if after is not None and target.key <= after:
            continue
        same = bool(taken) and taken[-1].server.server_id == target.server.server_id
        of_server = of_server + 1 if same else 1
        if len(taken) == MAX_TARGETS or of_server > MAX_SERVER_TARGETS:
            return taken, True
        taken.append(target)
    return taken, False


class GroupDoctor:
    def __init__(
        self,
        document: Document,
        examination: Examination,
        uses: Sequence[Use],
        credentials: dict[UUID, Credential],
        clock: Clock,
        deadline: float,
    ) -> None:
        self._document = document
        self._examination = examination
        self._uses = uses or [Use()]
        self._credentials = credentials  # that steps name
        self._clock = clock
        self._deadline = (
            deadline  # of the monotonic clock: targets that are left then are not checked
        )
        self._opens_at: dict[str, float] = {}  # by server: when the next connection may be opened
        self._rates = {
            server.server_id: server.connections_per_second or CONNECTION_RATE
            for server in document.directory.servers
        }

    async def examine(
        self, targets: Iterable[Target], missing: set[TargetKey]
    ) -> list[dict[str, Any]]:
        """A row for each target and login, in the order of the targets, which are sorted by server."""
        parallel = asyncio.Semaphore(MAX_PARALLEL_SERVERS)

        async def examine_server(targets: list[Target]) -> list[dict[str, Any]]:
            async with parallel:
                return [row async for row in self._server(targets, missing)]

        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(examine_server(list(of_server)))
                for _, of_server in groupby(targets, lambda target: target.server.server_id)
            ]
        return [row for task in tasks for row in task.result()]

    async def _server(
        self, targets: list[Target], missing: set[TargetKey]
    ) -> AsyncIterator[dict[str, Any]]:
        known: dict[str, Fault] = {}  # by login; "" is the server
        for target in targets:
            for login in self._logins(target):
                row = _place(target) | _login(login)
                try:
                    self._refuse(target, login, known, missing=target.key in missing)
                    facts, found = await self._ask(target, login)
                    row |= facts
                except Fault as fault:
                    if findings.of_whole_server(fault):
                        known.setdefault("", fault)
                    elif findings.of_whole_login(fault) and login.credential:
                        known.setdefault(_key(login.credential), fault)
                    user = login.credential.username if login.credential else None
                    found = [findings.failure(fault, target.database, user)]
                yield row | _outcome(found)

    def _refuse(
        self, target: Target, login: Login, known: dict[str, Fault], *, missing: bool
    ) -> None:
        """Raises what is known without a session at the target."""
        server, credential = target.server, login.credential
        if server.disabled:
            raise Conflict(f"The server '{server.name}' is disabled.", code="ServerDisabled")
        if credential is None:
            message = f"No credential is found for '{server.name}'."
            raise NotFound(message, code="CredentialMissing")
        if fault := known.get("") or known.get(_key(credential)) or target.error:
            raise fault
        if missing:
            message = f"The database '{target.database}' does not exist on {server.name}."
            raise NotFound(message, code="TargetDatabaseNotFound")

    async def _ask(self, target: Target, login: Login) -> tuple[dict[str, Any], list[Finding]]:
        server, left = target.server, self._deadline - self._clock.monotonic()
        assert login.credential is not None
        try:
            async with asyncio.timeout(max(0.0, left)):
                await self._pace(server)
                async with self._examination.admin_lock(server.server_id):
                    facts = await self._examination.rights(
                        server, target.database, login.credential, login.needs
                    )
        except TimeoutError:
            message = f"The time was up before '{server.name}' was asked about this target."
            raise Unavailable(message, code="NotChecked") from None
        found = rights.findings(target.database or "", login.needs, facts)
        return session_facts(server, facts.session), list(found)

    async def _pace(self, server: Server) -> None:
        """Waits until the server's rate allows another connection."""
        now = self._clock.monotonic()
        opens_at = max(now, self._opens_at.get(server.server_id, now))
        self._opens_at[server.server_id] = opens_at + 1 / self._rates[server.server_id]
        await self._clock.sleep(timedelta(seconds=opens_at - now))

    def _logins(self, target: Target) -> Iterator[Login]:
        """The credentials that steps use at the target, each once with all that its steps need."""
        by_login: dict[str, list[tuple[Credential | None, Use]]] = {}
        for use in self._uses:
            credential = self._credential(target, use)
            by_login.setdefault(_key(credential), []).append((credential, use))
        for entries in by_login.values():
            uses = [use for _, use in entries]
            roles = dict.fromkeys(_role(use, target) for use in uses)
            needs = Needs(
                schema=target.schema,
                roles=tuple(roles),
                guarded=any(use.guarded for use in uses),
                writes=any(use.writes for use in uses),
            )
            steps = sorted({step for use in uses for step in use.steps})
            yield Login(entries[0][0], needs, tuple(steps))

    def _credential(self, target: Target, use: Use) -> Credential | None:
        """As an attempt finds it: of the step, of the member, of the server."""
        credential = self._credentials.get(use.credential_id) if use.credential_id else None
        credential = credential or self._document.credential(
            target.credential_id, name=target.server.job_credential
        )
        if credential is None or "$(" not in credential.username:
            return credential
        username = _rendered(credential.username, target) or credential.username
        return msgspec.structs.replace(credential, username=username)


def session_facts(server: Server, session: dict[str, Any]) -> dict[str, Any]:
    """Of a session that was opened: the version of the server, and TLS as the server reports it."""
    tls = {"mode": server.ssl_mode, "version": session["tls"]}
    return {"serverVersion": session["server_version"], "tls": tls}


def _key(credential: Credential | None) -> str:
    return "" if credential is None else f"{credential.name}\0{credential.username}"


def _role(use: Use, target: Target) -> str | None:
    """None as well where the role depends on the run: then nothing is known of it."""
    return use.role and _rendered(use.role, target)


def _rendered(text: str, target: Target) -> str | None:
    names = {
        "target_server_name": target.server.name,
        "target_database_name": target.database,
        "target_schema_name": target.schema,
        **{f"target_label.{name}": value for name, value in target.labels.items()},
    }
    try:
        return render_name(text, {name: value for name, value in names.items() if value})
    except InvalidRequest:
        return None


def _place(target: Target) -> dict[str, Any]:
    return {
        "serverName": target.server.name,
        "databaseName": target.database,
        "schemaName": target.schema,
    }


def _login(login: Login) -> dict[str, Any]:
    credential = login.credential
    return {
        "credential": credential and credential.name,
        "username": credential and credential.username,
        "steps": login.steps,
    }


def _outcome(found: list[Finding]) -> dict[str, Any]:
    """Of the first finding; the missing rights of all."""
    if not found:
        return {"ok": True}
    first = msgspec.to_builtins(found[0])
    grants = dict.fromkeys(grant for each in found for grant in each.grants)
    return {"ok": False, **first, "grants": list(grants)}
