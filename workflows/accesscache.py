"""A short-lived cache of account access, so that a GET below an account reads no metadata."""

from dataclasses import dataclass, field
from uuid import UUID

from muster.core.clock import Clock
from muster.core.ids import ResourceId
from nodeagent.protocol import Login

LIMIT = 10_000  # accounts remembered at once
AGE = 2.0  # seconds; a login that no longer holds is found out by its first use


@dataclass(frozen=True)
class Access:
    """An account whose control database can be asked; the password in the login is sealed."""

    uid: UUID
    id: ResourceId
    identity: UUID  # of its control database
    public_key: str  # what secrets are sealed for
    login: Login


@dataclass
class AccessCache:
    _known: dict[tuple[str, str], tuple[float, Access]] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)

    def get(self, tenant_id: str, key: str) -> Access | None:
        at, access = self._known.get((tenant_id, key), (0.0, None))
        return access if access is not None and self.clock.monotonic() - at < AGE else None

    def keep(self, tenant_id: str, key: str, access: Access) -> None:
        if len(self._known) >= LIMIT:
            self._known.clear()
        self._known[tenant_id, key] = (self.clock.monotonic(), access)

    def forget(self, tenant_id: str, key: str) -> None:
        self._known.pop((tenant_id, key), None)
