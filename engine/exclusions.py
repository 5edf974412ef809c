"""What a target group takes away again, by the words of its members or by what they found."""

from engine.directory import Document, Member
from engine.found import Target
from engine.like import Like


class Exclusions:
    """What is taken away; a database takes its schemas along, a server everything."""

    BY_WORDS = frozenset({"SqlServer", "SqlElasticPool", "SqlDatabase", "SqlSchema"})

    def __init__(self, document: Document) -> None:
        self._document = document
        self._servers: set[str] = set()
        self._pools: set[tuple[str, str]] = set()
        self._databases: set[tuple[str, str]] = set()
        self._schemas: set[tuple[str, str, str]] = set()
        self._patterns: list[tuple[str, str | None, Like]] = []

    def add(self, member: Member, targets: list[Target]) -> None:
        if member.type not in self.BY_WORDS:
            self._add_targets(targets)
            return
        server = self._document.server(member.server_name or "")
        assert server is not None
        id = server.server_id.lower()
        match member.type:
            case "SqlServer":
                self._servers.add(id)
            case "SqlElasticPool":
                self._pools.add((id, (member.elastic_pool_name or "").lower()))
            case "SqlDatabase":
                self._databases.add((id, member.database_name or ""))
            case _:
                pattern = Like(member.schema_pattern or "%")
                self._patterns.append((id, member.database_name, pattern))

    def takes(self, target: Target) -> bool:
        id, database, schema = target.key
        return (
            id in self._servers
            or (id, database) in self._databases
            or target.key in self._schemas
            or (target.pool is not None and (id, target.pool.lower()) in self._pools)
            or any(
                server == id and one in {None, database} and pattern.matches(schema)
                for server, one, pattern in self._patterns
                if target.schema is not None
            )
        )

    def _add_targets(self, targets: list[Target]) -> None:
        for target in targets:
            if target.error is not None:  # whom it would spare is not known: nobody is touched
                raise target.error
            if target.schema is None:
                self._databases.add(target.key[:2])
            else:
                self._schemas.add(target.key)
