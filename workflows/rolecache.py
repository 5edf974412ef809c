"""A cache of role assignments for a few seconds, so that a GET costs one query."""

from dataclasses import dataclass, field

from muster.core.clock import Clock

LIMIT = 10_000  # principals and subscriptions remembered at once

Key = tuple[str, str, tuple[str, ...]]  # tenant, principal, its groups


@dataclass(frozen=True, slots=True)
class Grant:
    scope: str  # key of the scope
    role: str  # id of the role definition


@dataclass
class RoleCache:
    _grants: dict[Key, tuple[float, tuple[Grant, ...]]] = field(default_factory=dict)
    _tenants: dict[str, tuple[float, str | None]] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)

    def grants(self, key: Key, age: float) -> tuple[Grant, ...] | None:
        at, grants = self._grants.get(key, (0.0, None))
        return grants if grants is not None and self.clock.monotonic() - at < age else None

    def keep_grants(self, key: Key, grants: tuple[Grant, ...]) -> None:
        if len(self._grants) >= LIMIT:
            self._grants.clear()
        self._grants[key] = (self.clock.monotonic(), grants)

    def tenant(self, subscription: str, age: float) -> str | None:
        """The tenant of a subscription; None when it is not remembered."""
        at, tenant = self._tenants.get(subscription, (0.0, None))
        return tenant if tenant is not None and self.clock.monotonic() - at < age else None

    def keep_tenant(self, subscription: str, tenant: str) -> None:
        if len(self._tenants) >= LIMIT:
            self._tenants.clear()
        self._tenants[subscription] = (self.clock.monotonic(), tenant)

    def forget(self) -> None:
        """After a change made by this process its own next request sees it."""
        self._grants.clear()
        self._tenants.clear()
