"""What a target group yields: targets, and what was passed over."""

from dataclasses import dataclass, field
from uuid import UUID

from engine.model.server import Server
from engine.model.task import UNLISTED
from muster.core.errors import Fault
from muster.core.sanitize import plain


@dataclass(frozen=True, kw_only=True)
class Target:
    server: Server
    database: str | None = None  # None: the server itself, since it could not be listed
    schema: str | None = None
    labels: dict[str, str] = field(default_factory=dict, compare=False)
    credential_id: UUID | None = field(default=None, compare=False)
    rule: UUID = field(compare=False)
    # Why nobody knows what stands in it: then it is there in the place of its databases or schemas.
    error: Fault | None = field(default=None, compare=False)
    named: bool = field(default=False, compare=False)  # not listed: it may not exist

    @property
    def key(self) -> tuple[str, str, str]:
        return self.server.server_id.lower(), self.database or "", self.schema or ""

    @property
    def told(self) -> dict[str, str]:
        """Its labels, and why it is there itself."""
        if self.error is None:
            return self.labels
        return self.labels | {UNLISTED: f"{self.error.code}: {plain(self.error.message)}"}

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
    rule: UUID


@dataclass(frozen=True)
class Excluded:
    target: Target
    rule: UUID
    text: str  # of the rule, for people


@dataclass(frozen=True)
class Resolution:
    targets: list[Target]
    left_out: list[SkippedDatabase]
    excluded: list[Excluded] = field(default_factory=list)
    missing: list[Target] = field(default_factory=list)  # named, and not there
    unchecked: dict[tuple[str, str, str], Fault] = field(default_factory=dict)  # why, by key
