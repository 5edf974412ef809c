"""The targets of a run that were chosen when it was started, instead of what its target groups resolve to.

- A rerun: targets of an earlier run, its origin. In a step that the origin has reached they are those of its snapshot.
  In a step that it has not reached, and for a server that could not be listed then, the group is resolved again and
  only chosen targets are kept; if a caller had named the targets, they are resolved as in that run.
- A plan: exactly the targets of its snapshots, as they were then.
- The caller: databases, schemas, and whole servers, which are resolved like the members of a target group.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self
from uuid import UUID

import msgspec

from engine.model.group_document import Document, Group, Member
from engine.model.server import Server
from engine.model.task import UNLISTED
from engine.targets.ordering import order
from engine.targets.resolution import Resolution, Target, TargetKey
from muster.core.db import Row
from muster.core.errors import NotFound

Resolve = Callable[..., Awaitable[Resolution]]  # with filters of targets
LIKE_WILDCARDS = str.maketrans({"%": "\\%", "_": "\\_", "\\": "\\\\"})


@dataclass(frozen=True)
class ChosenTargets:
    stored: list[Row]  # databases and schemas, as the origin or the plan had them in this step
    servers: frozenset[str] = frozenset()  # all targets of these servers, which could not be listed
    keys: frozenset[TargetKey] = frozenset()  # of further chosen targets, if the group has them
    named: tuple[Row, ...] = ()  # by the caller
    pinned: bool = False  # also what could not be listed is as it was

    @classmethod
    def of_rerun(cls, rows: Iterable[Row], *, in_origin: bool, named: bool = False) -> Self:
        """`named`: a caller named them, so the group need not have them."""
        chosen = [row for row in rows if row["in_step"]] if in_origin else list(rows)
        listed = [row for row in chosen if row["database_name"] is not None]
        if named and not (in_origin and len(listed) == len(chosen)):
            return cls.of_caller(chosen)
        return cls(
            stored=listed if in_origin else [],
            servers=frozenset(
                row["server_id"].lower() for row in chosen if row["database_name"] is None
            ),
            keys=frozenset() if in_origin else frozenset(map(_key, listed)),
        )

    @classmethod
    def of_plan(cls, rows: Iterable[Row]) -> Self:
        """A server that could not be listed stays a target, which fails: its databases are not in the plan."""
        return cls(stored=[row for row in rows if row["in_step"]], pinned=True)

    @classmethod
    def of_caller(cls, rows: Iterable[Row]) -> Self:
        return cls(stored=[], named=tuple(rows))

    def of_servers(self, servers: frozenset[str]) -> Self:
        """Of what the caller named, only targets of these servers, by id in lower case."""
        named = tuple(row for row in self.named if row["server_id"].lower() in servers)
        return replace(self, named=named)

    def document(self, document: Document) -> Document:
        """With the group that is resolved."""
        if not self.named:
            return document
        members = tuple(_member(row, document) for row in self.named)
        groups = {document.target_group_id: Group("targets", members)}
        return msgspec.structs.replace(document, groups=groups)

    async def resolve(
        self, document: Document, order_by: str | None, resolve: Resolve
    ) -> Resolution:
        if self.named:
            resolution = await resolve()
            self._check_schemas(resolution)
            return resolution
        servers = {server.server_id.lower(): server for server in document.directory.servers}
        stored = [self._stored(row, servers) for row in self.stored]
        targets = {target.key: target for target in stored}
        if self.servers or self.keys:
            resolution = await resolve(self._keeps)
            targets = {target.key: target for target in resolution.targets} | targets
        return Resolution(order(targets.values(), order_by), [])

    def _stored(self, row: Row, servers: Mapping[str, Server]) -> Target:
        """A server that the directory does not have any more stays in the step, so that its targets fail visibly."""
        id = row["server_id"]
        labels: dict[str, str] = msgspec.json.decode(row["labels"])
        if not self.pinned:
            labels.pop(UNLISTED, None)
        return Target(
            server=servers.get(id.lower()) or _unknown_server(row),
            database=row["database_name"],
            schema=row["schema_name"],
            labels=labels,
            credential_id=row["credential_id"],
            rule=row["rule"],
        )

    def _keeps(self, target: Target) -> bool:
        return target.key in self.keys or target.key[0] in self.servers

    def _check_schemas(self, resolution: Resolution) -> None:
        """A script must not run without the schema that the caller named: it would change another one."""
        for row in self.named:
            server, database, schema = _key(row)
            places = {(server, database, schema), (server, database, ""), (server, "", "")}
            if schema and places.isdisjoint(target.key for target in resolution.targets):
                raise NotFound(
                    f"There is no schema '{schema}' in {row['server_name']}/{database}.",
                    code="InvalidTarget",
                )


def limited(resolution: Resolution, limit: int, earlier: Iterable[Row]) -> Resolution:
    """The first targets; only targets that an earlier step of the run had, if there are any."""
    keys = frozenset(map(_key, earlier))
    kept = [target for target in resolution.targets if target.key in keys]
    return replace(resolution, targets=(kept or resolution.targets)[:limit])


def _member(row: Row, document: Document) -> Member:
    """With the credentials that the group has for the server, if its members agree about them."""
    schema, id = row["schema_name"], row["server_id"].lower()
    members = [
        member
        for group in document.groups.values()
        for member in group.members
        if member.includes and (member.server_id or "").lower() == id
    ]
    return Member(
        target_id=row["rule"],
        membership_type="Include",
        type=row["target_type"],
        server_name=row["server_name"],
        server_id=row["server_id"],
        database_name=row["database_name"],
        schema_pattern=schema and schema.translate(LIKE_WILDCARDS),
        refresh_credential_id=_only({member.refresh_credential_id for member in members}),
        credential_id=_only({member.credential_id for member in members}),
    )


def _only(ids: set[UUID | None]) -> UUID | None:
    named = ids - {None}
    return named.pop() if len(named) == 1 else None


def _unknown_server(row: Row) -> Server:
    return Server(
        server_id=row["server_id"],
        name=row["server_name"],
        hosts=(),
        port=5432,
        ssl_mode="verify-full",
    )


def _key(row: Row) -> TargetKey:
    return row["server_id"].lower(), row["database_name"] or "", row["schema_name"] or ""
