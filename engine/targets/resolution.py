"""The result of resolving a target group: its targets, and what is no target and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from engine.model.group_document import Rule
from engine.model.server import Server
from engine.model.task import UNLISTED
from muster.core.errors import Fault, Unavailable
from muster.core.sanitize import plain

TargetKey = tuple[str, str, str]  # server id, database, schema


@dataclass(frozen=True, kw_only=True)
class Target:
    server: Server
    database: str | None = None  # None: the server itself, since listing it failed
    schema: str | None = None
    labels: dict[str, str] = field(default_factory=dict, compare=False)
    credential_id: UUID | None = field(default=None, compare=False)
    rule: UUID = field(compare=False)
    # Set when listing failed; this target then stands in for its databases or schemas.
    error: Fault | None = field(default=None, compare=False)
    named: bool = field(default=False, compare=False)  # by a member, not listed: it may not exist

    @property
    def key(self) -> TargetKey:
        return self.server.server_id.lower(), self.database or "", self.schema or ""

    @property
    def snapshot_labels(self) -> dict[str, str]:
        """Its labels, and why listing failed."""
        if self.error is None:
            return self.labels
        # A server that is starting, or has no session left, can be listed later as well.
        is_transient = isinstance(self.error, Unavailable) and self.error.code != "TargetTimeout"
        code = "TargetUnreachable" if is_transient else self.error.code
        return self.labels | {UNLISTED: f"{code}: {plain(self.error.message)}"}

    @property
    def type(self) -> str:
        if self.database is None:
            return "SqlServer"
        return "SqlSchema" if self.schema is not None else "SqlDatabase"

    @property
    def pool(self) -> str | None:
        return self.server.pool_of(self.database) if self.database is not None else None


@dataclass(frozen=True)
class SkippedDatabase:
    server: str
    database: str
    reason: str
    rule: UUID | None  # that would include it; None: no rule does
    exists: bool = True


@dataclass(frozen=True)
class Excluded:
    target: Target
    rule: UUID
    text: str  # of the rule, as users read it


@dataclass(frozen=True)
class Resolution:
    targets: list[Target]
    skipped: list[SkippedDatabase]
    excluded: list[Excluded] = field(default_factory=list)
    missing: list[Target] = field(default_factory=list)  # named, and not existing
    unchecked: dict[TargetKey, Fault] = field(default_factory=dict)  # why a check was impossible
    # Of `resolve(check_named=True)`: the other databases of the servers, and the rules by their id.
    unselected: list[SkippedDatabase] = field(default_factory=list)
    rules: Mapping[UUID, Rule] = field(default_factory=dict)
