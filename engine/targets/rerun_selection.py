"""The targets of a rerun: chosen from an earlier run, its origin.

In a step that the origin has reached they are those of its snapshot, whatever the target group resolves to now. In a
step that it has not reached, and for a server that could not be listed then, the group is resolved again and only
chosen targets are kept.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import msgspec

from engine.model.group_document import Document
from engine.model.server import Server
from engine.model.task import UNLISTED
from engine.targets.ordering import order
from engine.targets.resolution import Resolution, Target, TargetKey
from muster.core.db import Row

Resolve = Callable[..., Awaitable[Resolution]]  # with filters of targets


@dataclass(frozen=True)
class RerunSelection:
    stored: list[Row]  # databases and schemas, as the origin had them in this step
    servers: frozenset[str]  # all targets of these servers, which could not be listed
    keys: frozenset[TargetKey]  # of further chosen targets, if the group has them

    @classmethod
    def of(cls, rows: Iterable[Row], *, in_origin: bool) -> Self:
        chosen = [row for row in rows if row["in_step"]] if in_origin else list(rows)
        listed = [row for row in chosen if row["database_name"] is not None]
        return cls(
            stored=listed if in_origin else [],
            servers=frozenset(
                row["server_id"].lower() for row in chosen if row["database_name"] is None
            ),
            keys=frozenset() if in_origin else frozenset(map(_key, listed)),
        )

    async def resolve(
        self, document: Document, order_by: str | None, resolve: Resolve
    ) -> Resolution:
        servers = {server.server_id.lower(): server for server in document.directory.servers}
        targets = {target.key: target for target in (_target(row, servers) for row in self.stored)}
        if self.servers or self.keys:
            resolution = await resolve(self._keeps)
            targets = {target.key: target for target in resolution.targets} | targets
        return Resolution(order(targets.values(), order_by), [])

    def _keeps(self, target: Target) -> bool:
        return target.key in self.keys or target.key[0] in self.servers


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


def _target(row: Row, servers: Mapping[str, Server]) -> Target:
    """A server that the directory does not have any more stays in the plan, so that its targets fail visibly."""
    id = row["server_id"]
    labels: dict[str, str] = msgspec.json.decode(row["labels"])
    labels.pop(UNLISTED, None)
    return Target(
        server=servers.get(id.lower()) or _unknown_server(row),
        database=row["database_name"],
        schema=row["schema_name"],
        labels=labels,
        credential_id=row["credential_id"],
        rule=row["rule"],
    )
