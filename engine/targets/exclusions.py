"""The Exclude members of one target group: by the names they contain, or by the targets they list."""

from collections.abc import Callable, Iterator

from engine.model.group_document import Document, Member
from engine.targets.resolution import Target
from engine.targets.sql_like import LikePattern, database_pattern
from muster.core.label_selector import LabelSelector


class Exclusions:
    """A server is excluded with all of its databases, a database with all of its schemas."""

    BY_NAME = frozenset({"SqlServer", "SqlElasticPool", "SqlDatabase", "SqlSchema"})

    def __init__(self, document: Document) -> None:
        self._document = document
        self._servers: dict[str, Member] = {}
        self._pools: dict[tuple[str, str], Member] = {}
        self._databases: dict[tuple[str, str], Member] = {}
        self._schemas: dict[tuple[str, str, str], Member] = {}
        self._patterns: list[tuple[str, Callable[[Target], bool], Member]] = []

    def add(self, member: Member, targets: list[Target]) -> None:
        if member.type not in self.BY_NAME:
            self._add_targets(member, targets)
            return
        server = self._document.server_of(member)
        assert server is not None
        id, database = server.server_id.lower(), member.database_name
        match member.type:
            case _ if member.selector is not None:
                self._patterns.append((id, _with_labels(member, member.selector), member))
            case "SqlServer":
                self._servers.setdefault(id, member)
            case "SqlElasticPool":
                self._pools.setdefault((id, (member.elastic_pool_name or "").lower()), member)
            case "SqlDatabase" if (pattern := database_pattern(database)) is not None:
                self._patterns.append((id, _in_databases(pattern), member))
            case "SqlDatabase":
                self._databases.setdefault((id, database or ""), member)
            case _:
                self._patterns.append((id, _in_schemas(member), member))

    def rule_for(self, target: Target) -> Member | None:
        """The rule that excludes the target."""
        return next(self._rules(target), None)

    def _rules(self, target: Target) -> Iterator[Member]:
        id, database, _ = target.key
        if (rule := self._servers.get(id)) is not None:
            yield rule
        if (rule := self._databases.get((id, database))) is not None:
            yield rule
        if (rule := self._schemas.get(target.key)) is not None:
            yield rule
        if (rule := self._pools.get((id, (target.pool or "").lower()))) is not None:
            yield rule
        yield from (
            rule for server, matches, rule in self._patterns if server == id and matches(target)
        )

    def _add_targets(self, member: Member, targets: list[Target]) -> None:
        for target in targets:
            if target.error is not None:  # unknown what it excludes: no target may start
                raise target.error
            if target.schema is None:
                self._databases.setdefault(target.key[:2], member)
            else:
                self._schemas.setdefault(target.key, member)


def _with_labels(member: Member, selector: LabelSelector) -> Callable[[Target], bool]:
    """A server that could not be listed is not excluded: the labels of its databases are unknown."""
    name = member.database_name
    pattern = database_pattern(name)

    def matches(target: Target) -> bool:
        database = target.database
        named = name in {None, database} or (
            pattern is not None and pattern.matches(database or "")
        )
        return database is not None and named and selector.matches(target.labels)

    return matches


def _in_databases(pattern: LikePattern) -> Callable[[Target], bool]:
    return lambda target: target.database is not None and pattern.matches(target.database)


def _in_schemas(member: Member) -> Callable[[Target], bool]:
    """Matches schemas of one database, of the databases that match a pattern, or of all."""
    schemas, name = LikePattern(member.schema_pattern or "%"), member.database_name
    databases = database_pattern(name)

    def matches(target: Target) -> bool:
        database = target.database or ""
        inside = name in {None, database} or (databases is not None and databases.matches(database))
        return target.schema is not None and inside and schemas.matches(target.schema)

    return matches
