"""What a control database must hold after an install: read from the data package `engine.sql`."""

import re
from dataclasses import dataclass

from engine.sql import MIGRATIONS, MIN_ENGINE_VERSION, REPLACEABLE
from muster.core.errors import Internal
from muster.core.migrate import files, scripts

AUDIENCE = re.compile(r"-- for: (\w+(?:, \w+)*)\n")
AUDIENCES = frozenset({"owner", "agent", "engine", "reader", "operator", "admin"})


@dataclass(frozen=True)
class ExpectedSchema:
    migrations: str = MIGRATIONS
    replaceable: tuple[str, ...] = REPLACEABLE
    min_engine_version: str = MIN_ENGINE_VERSION

    @property
    def version(self) -> int:
        return len(scripts(self.migrations))

    def audiences(self) -> list[tuple[str, str]]:
        """Pairs of function or view and role, from the first line of each file."""
        pairs: list[tuple[str, str]] = []
        for file, text in [each for package in self.replaceable for each in files(package)]:
            match = AUDIENCE.match(text)
            roles = set(match[1].split(", ")) if match else set()
            if not roles or not roles <= AUDIENCES:
                raise Internal(f"{file}: expected a first line -- for: role, …")
            pairs += [(file.removesuffix(".sql"), role) for role in sorted(roles - {"owner"})]
        return pairs
