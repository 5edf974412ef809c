"""The document of a target group: everything that its resolution needs, read in one call."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

import msgspec

from engine.model.credential import Credential
from engine.model.server import Server, TargetServer
from muster.core import label_selector
from muster.core.label_selector import LabelSelector

AZURE = ".database.windows.net"


class _Read(msgspec.Struct, frozen=True, kw_only=True):
    """Unknown fields are ignored, so that a newer schema may have more."""


class Member(_Read, frozen=True, rename="camel", dict=True):
    target_id: UUID
    membership_type: str
    type: str
    server_name: str | None = None
    server_id: str | None = None  # of the server that had the name when the member was written
    database_name: str | None = None
    elastic_pool_name: str | None = None
    shard_map_name: str | None = None
    schema_pattern: str | None = None
    query: str | None = None
    labels: str | None = None  # label selector
    target_group_id: UUID | None = None  # nested
    refresh_credential_id: UUID | None = None
    credential_id: UUID | None = None

    @property
    def includes(self) -> bool:
        return self.membership_type == "Include"

    @property
    def text(self) -> str:
        """For messages: its type and what it names."""
        names = (
            self.server_name,
            self.database_name,
            self.elastic_pool_name or self.schema_pattern or self.shard_map_name,
        )
        parts = (self.type, "/".join(name for name in names if name), self.labels or "")
        return " ".join(part for part in parts if part)

    @cached_property
    def selector(self) -> LabelSelector | None:
        return None if self.labels is None else label_selector.parse(self.labels)


@dataclass(frozen=True)
class Rule:
    """A member of a target group, as users read it."""

    target_id: UUID
    group: str
    position: int  # in the group, from 1
    text: str


class Group(_Read, frozen=True):
    name: str
    members: tuple[Member, ...]


class Directory(_Read, frozen=True):
    revision: int
    servers: tuple[TargetServer, ...]


class Document(msgspec.Struct, frozen=True, kw_only=True, rename="camel", dict=True):
    """The group, all nested groups, and the servers and credentials that they may name."""

    target_group_id: UUID
    hash: str
    identity: UUID  # of the control database: sealed secrets are bound to it
    groups: dict[UUID, Group]
    credentials: dict[UUID, Credential]
    directory: Directory

    @cached_property
    def _by_name(self) -> dict[str, TargetServer]:
        """Short names and Azure's names take precedence; a host name counts only where one server has it."""
        servers = self.directory.servers
        hosts = Counter(host for server in servers for host in {*map(str.lower, server.hosts)})
        named = {h.lower(): s for s in servers for h in s.hosts if hosts[h.lower()] == 1}
        for server in servers:
            named[server.name.lower() + AZURE] = named[server.name.lower()] = server
        return named

    @cached_property
    def members(self) -> dict[UUID, Member]:
        """Of all groups, by their target_id."""
        groups = self.groups.values()
        return {member.target_id: member for group in groups for member in group.members}

    @cached_property
    def rules(self) -> dict[UUID, Rule]:
        return {
            member.target_id: Rule(member.target_id, group.name, position, self.text_of(member))
            for group in self.groups.values()
            for position, member in enumerate(group.members, 1)
        }

    def text_of(self, member: Member) -> str:
        nested = self.groups.get(member.target_group_id) if member.target_group_id else None
        return member.text if nested is None else f"{member.type} {nested.name}"

    def server(self, name: str) -> Server | None:
        return self._by_name.get(name.lower())

    def server_of(self, member: Member) -> Server | None:
        """None as well where another server has taken the name: its use as a target was not checked."""
        server = self.server(member.server_name or "")
        if server is None or server.server_id.lower() != (member.server_id or "").lower():
            return None
        return server

    def credential(self, *ids: UUID | None, name: str | None = None) -> Credential | None:
        """The first of the ids that exists; else the credential with that name."""
        for id in ids:
            if id is not None and id in self.credentials:
                return self.credentials[id]
        if name is None:
            return None
        named = (each for each in self.credentials.values() if each.name.lower() == name.lower())
        return next(named, None)
