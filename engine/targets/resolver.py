"""What a target group yields now: members are listed at their servers, exclusions win, doubles collapse.

    found = await Resolver(document, lister).resolve()
    found.targets       # in a stable order; a server that can't be listed is one target of its own
    found.left_out      # databases that enumeration passed over, each with the reason
    found.excluded      # targets that an Exclude rule removed, each with the rule

A name is looked at only where it must be: for a run, a database that is named is a target whether it
is there or not, and fails alone. So does one that does not tell its schemas. `resolve(look=True)` asks
for named databases too and tells which are missing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar
from uuid import UUID

from engine.model.credential import Credential
from engine.model.group_document import Document, Member
from engine.model.server import Server
from engine.model.task import UNLISTED
from engine.targets.exclusions import Exclusions
from engine.targets.resolution import Excluded, Resolution, SkippedDatabase, Target
from engine.targets.server_retry import ServerRetry
from engine.targets.sql_like import LikePattern, database_pattern
from muster.core.clock import Clock
from muster.core.errors import Fault, InvalidRequest, NotFound, Unavailable

T = TypeVar("T")
Door = Callable[[str], asyncio.Lock]  # of a server, by its id: one looks at a time

PARALLEL = 32  # servers that are asked at once
MOST_LABELS = 64  # of a row, as of a resource
LONGEST_LABEL = 256  # characters
LONGEST_NAME = 63  # bytes of a database or schema
NO_LABELS = frozenset({"server_name", "database_name", "schema_name", UNLISTED})


@dataclass(frozen=True)
class Listed:
    """A database as its server shows it."""

    name: str
    reason: str | None = None  # why it is no target


class Lister(Protocol):
    """Asks servers; a Fault says why one could not be asked."""

    door: Door

    async def databases(self, server: Server, who: Credential) -> list[Listed]: ...

    async def schemas(
        self, server: Server, database: str, pattern: str, who: Credential
    ) -> list[str]: ...

    async def rows(
        self, server: Server, database: str, member: Member, who: Credential
    ) -> list[dict[str, Any]]: ...


class Resolver:
    def __init__(
        self,
        document: Document,
        lister: Lister,
        otherwise: Credential | None = None,
        patience: ServerRetry | None = None,
    ) -> None:
        self._document = document
        self._lister = lister
        self._otherwise = otherwise  # who lists where nobody is named for it
        self._patience = patience or ServerRetry(Clock(), 0)
        self._room = asyncio.Semaphore(PARALLEL)
        self._lists: dict[tuple[str, str], asyncio.Task[list[Listed]]] = {}
        self._groups: dict[UUID, asyncio.Task[list[Target]]] = {}
        self._left_out: dict[tuple[str, str], SkippedDatabase] = {}
        self._excluded: dict[tuple[str, str, str], Excluded] = {}
        self._unchecked: dict[tuple[str, str, str], Fault] = {}

    async def resolve(self, *, look: bool = False) -> Resolution:
        missing: list[Target] = []
        try:
            targets = await self._group(self._document.target_group_id)
            if look:
                targets, missing = await self._present(targets)
        finally:
            for task in (*self._lists.values(), *self._groups.values()):
                task.cancel()
        kept = {target.key for target in targets}
        left_out = [
            each
            for (server_id, database), each in sorted(self._left_out.items())
            if (server_id, database, "") not in kept
        ]
        excluded = [each for key, each in sorted(self._excluded.items()) if key not in kept]
        ordered = sorted(targets, key=lambda target: target.key)
        return Resolution(ordered, left_out, excluded, missing, self._unchecked)

    async def _present(self, targets: list[Target]) -> tuple[list[Target], list[Target]]:
        """The targets with what was found out about those that are named, and those that are missing."""
        named = [target for target in targets if target.named]
        rest = [target for target in targets if not target.named]
        members = {
            m.target_id: m for group in self._document.groups.values() for m in group.members
        }
        looked = await _all(self._look(target, members[target.rule]) for target in named)
        missing = [target for target, there in zip(named, looked, strict=True) if there is None]
        return rest + [there for there in looked if there is not None], missing

    async def _look(self, target: Target, member: Member) -> Target | None:
        """None: its server has no such database."""
        try:
            listed = await self._listed(member, target.server)
        except Unavailable as away:
            return replace(target, error=away)
        except Fault as refused:
            self._unchecked[target.key] = refused
            return target
        return target if any(each.name == target.database for each in listed) else None

    async def _group(self, group: UUID) -> list[Target]:
        members = self._document.groups[group].members
        answers = list(zip(members, await _all(map(self._member, members)), strict=True))
        excluded = Exclusions(self._document)
        for member, targets in answers:
            if not member.includes:
                excluded.add(member, targets)
        found: dict[tuple[str, str, str], Target] = {}
        for member, targets in answers:
            if member.includes:
                for target in targets:
                    known = found.setdefault(target.key, target)
                    if target.error is not None and known.error is None:
                        found[target.key] = target  # what is missing must not go unseen
        rules = {key: excluded.takes(target) for key, target in found.items()}
        for key, rule in rules.items():
            if rule is not None:
                excluded_by = Excluded(found[key], rule.target_id, self._text(rule))
                self._excluded.setdefault(key, excluded_by)
        return [target for key, target in found.items() if rules[key] is None]

    def _text(self, rule: Member) -> str:
        group = self._document.groups.get(rule.target_group_id or rule.target_id)
        return rule.text if group is None else f"{rule.type} {group.name}"

    async def _member(self, member: Member) -> list[Target]:
        """What it names; an exclusion is only asked for where its own words do not decide."""
        if (inner := member.target_group_id) is not None:
            if inner not in self._groups:  # once, however many groups contain it
                self._groups[inner] = asyncio.create_task(self._group(inner))
            return await self._groups[inner]
        server = self._document.server(member.server_name or "")
        if server is None:
            raise NotFound(
                f"The server '{member.server_name}' is not in the directory.",
                code="InvalidTargetServer",
            )
        if not member.includes and member.type in Exclusions.BY_WORDS:
            return []
        try:
            return await self._ask(member, server)
        except Fault as fault:
            return [self._target(member, server, None, error=fault)]

    async def _ask(self, member: Member, server: Server) -> list[Target]:
        match member.type:
            case "SqlDatabase" if (pattern := database_pattern(member.database_name)) is not None:
                names = await self._databases(member, server, pattern)
                return [self._target(member, server, name) for name in names]
            case "SqlDatabase":
                return [self._target(member, server, member.database_name, named=True)]
            case "SqlServer":
                names = await self._databases(member, server)
                return [self._target(member, server, name) for name in names]
            case "SqlElasticPool":
                wanted = (member.elastic_pool_name or "").lower()
                names = await self._databases(member, server)
                inside = [n for n in names if (server.pool_of(n) or "").lower() == wanted]
                return [self._target(member, server, name) for name in inside]
            case "SqlSchema":
                return await self._schemas(member, server)
            case _:
                return await self._rows(member, server)

    async def _schemas(self, member: Member, server: Server) -> list[Target]:
        one, pattern = member.database_name, database_pattern(member.database_name)
        listed = one is None or pattern is not None
        names = await self._databases(member, server, pattern) if listed else [one or ""]
        who = self._who(member, server)
        found: list[Target] = []
        silent: Fault | None = None  # where one database keeps us waiting the others would too
        for name in names:
            try:
                if silent is not None:
                    raise silent
                question = partial(
                    self._lister.schemas, server, name, member.schema_pattern or "%", who
                )
                schemas = await self._ask_server(server, question)
                found += [self._target(member, server, name, schema) for schema in schemas]
            except Fault as fault:
                silent = fault if fault.code == "TargetTimeout" else None
                found.append(self._target(member, server, name, error=fault))
        return found

    async def _rows(self, member: Member, server: Server) -> list[Target]:
        """Rows with server_name, database_name and perhaps schema_name; the rest are labels."""
        database = member.database_name or server.maintenance_database
        who = self._who(member, server)
        question = partial(self._lister.rows, server, database, member, who)
        rows = await self._ask_server(server, question)
        return [self._row(member, row) for row in rows]

    def _row(self, member: Member, row: dict[str, Any]) -> Target:
        named = self._document.server(str(row["server_name"]))
        if named is None:
            raise NotFound(
                f"The query names the server '{str(row['server_name'])[:100]}', which is not in the directory.",
                code="InvalidTargetServer",
            )
        labels = {
            name: str(value)
            for name, value in row.items()
            if name not in NO_LABELS and value is not None
        }
        if not row["database_name"]:
            raise InvalidRequest("A row names no database.", code="InvalidTargetQuery")
        schema = row.get("schema_name")
        _refuse_large(labels, str(row["database_name"]), str(schema or ""))
        return self._target(
            member,
            named,
            str(row["database_name"]),
            None if schema is None else str(schema),
            labels,
            named=True,
        )

    async def _databases(
        self, member: Member, server: Server, pattern: LikePattern | None = None
    ) -> list[str]:
        """Those that fit, and may be listed."""
        listed = await self._listed(member, server)
        fitting = [each for each in listed if pattern is None or pattern.matches(each.name)]
        for each in fitting:
            if each.reason is not None:
                left = SkippedDatabase(server.name, each.name, each.reason, member.target_id)
                self._left_out.setdefault((server.server_id.lower(), each.name), left)
        return [each.name for each in fitting if each.reason is None]

    async def _listed(self, member: Member, server: Server) -> list[Listed]:
        """Asked once for each server and login, however many members want to know."""
        who = self._who(member, server)
        key = (server.server_id, who.name)
        if key not in self._lists:
            self._lists[key] = asyncio.create_task(self._list(server, who))
        return await self._lists[key]

    async def _list(self, server: Server, who: Credential) -> list[Listed]:
        return await self._ask_server(server, partial(self._lister.databases, server, who))

    async def _ask_server(self, server: Server, question: Callable[[], Awaitable[T]]) -> T:
        """Nobody waits at its door, or for room, while it is left in peace."""

        async def ask() -> T:
            async with self._lister.door(server.server_id), self._room:
                return await question()

        return await self._patience.ask(server.server_id, ask)

    def _who(self, member: Member, server: Server) -> Credential:
        named = self._document.credential(
            member.refresh_credential_id, member.credential_id, name=server.job_credential
        )
        found = named or self._otherwise
        if found is None:
            raise NotFound(
                f"Nobody may list the databases of '{server.name}': name a refreshCredential in the"
                " target group, a jobCredential on the server, or a defaultCredential on the account.",
                code="CredentialMissing",
            )
        return found

    def _target(
        self,
        member: Member,
        server: Server,
        database: str | None,
        schema: str | None = None,
        labels: dict[str, str] | None = None,
        error: Fault | None = None,
        *,
        named: bool = False,
    ) -> Target:
        return Target(
            server=server,
            database=database,
            schema=schema,
            labels=_labels(server, database) | (labels or {}),
            credential_id=member.credential_id,
            rule=member.target_id,
            error=error,
            named=named,
        )


def _refuse_large(labels: dict[str, str], *names: str) -> None:
    """Each label and name of a row goes into the snapshot of every run."""
    problem = None
    if len(labels) > MOST_LABELS:
        problem = f"A row has more than {MOST_LABELS} labels."
    elif long := [name for name, value in labels.items() if len(value) > LONGEST_LABEL]:
        problem = f"The label '{long[0]}' of a row has more than {LONGEST_LABEL} characters."
    elif any(len(name.encode()) > LONGEST_NAME for name in names):
        problem = f"A row names a database or schema with more than {LONGEST_NAME} bytes."
    if problem:
        raise InvalidRequest(problem, code="InvalidTargetQuery")


def _labels(server: Server, database: str | None) -> dict[str, str]:
    labels = server.labels_of(database)
    labels.pop(UNLISTED, None)
    return labels


def asks(document: Document) -> bool:
    """Whether a server must be asked what the group means; the other groups are their own words."""
    return any(
        member.target_group_id is None
        and (member.type != "SqlDatabase" or database_pattern(member.database_name) is not None)
        and (member.includes or member.type not in Exclusions.BY_WORDS)
        for group in document.groups.values()
        for member in group.members
    )


async def _all(asking: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All at once; the first that fails ends the others."""
    several = list(asking)
    if len(several) == 1:
        return [await several[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in several]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]
