"""What a step gets: its resource as it was at the claim, its scratch, and the services of the runner."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from fsm.launch.queue import Queue
from fsm.lifecycle_table import Lifecycle
from fsm.store import Machine, Resource
from fsm.transitions import SIGNAL
from muster.core.clock import Clock
from muster.core.connect import Connector
from muster.core.db import Database
from muster.core.secrets import Keyring
from muster.core.settings import Secret, Settings
from nodeagent.client import AgentClient


class Clusters(Protocol):
    """The embedded PostgreSQL clusters, by the uid of their server; all of it may be repeated."""

    async def create(self, uid: UUID) -> None: ...
    async def start(self, uid: UUID) -> int: ...
    async def set_administrator(self, uid: UUID, login: str, password: Secret) -> None: ...
    async def running(self, uid: UUID) -> bool: ...
    async def stop(self, uid: UUID) -> None: ...
    async def destroy(self, uid: UUID) -> None: ...
    def known(self) -> list[UUID]: ...


@dataclass(frozen=True, kw_only=True)
class Services:
    settings: Settings
    db: Database
    keyring: Keyring
    connector: Connector
    lifecycles: Mapping[str, Lifecycle]
    clusters: Clusters | None = None  # only in embedded mode
    agent: AgentClient | None = None  # unset: no job accounts are served
    queue: Queue | None = None
    clock: Clock = field(default_factory=Clock)


@dataclass(frozen=True, kw_only=True)
class Context:
    services: Services
    machine: Machine
    resource: Resource

    @property
    def command_id(self) -> UUID:
        return self.machine.command

    @property
    def scratch(self) -> dict[str, Any]:
        return self.machine.scratch

    @property
    def payload(self) -> dict[str, Any]:
        """Of the signal that is being answered."""
        payload: dict[str, Any] = self.machine.scratch.get(SIGNAL, {})
        return payload
