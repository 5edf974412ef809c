"""What every use case needs: settings, database, keys, clients and caches; made once per process."""

from dataclasses import dataclass, field

from muster.core.clock import Clock
from muster.core.connect import Connector
from muster.core.db import Database
from muster.core.secrets import Keyring
from muster.core.settings import Settings
from muster.core.wake import Wake
from nodeagent.client import AgentClient
from workflows.accesscache import AccessCache
from workflows.rolecache import RoleCache


@dataclass(frozen=True)
class Services:
    settings: Settings
    db: Database
    keyring: Keyring
    wake: Wake
    connector: Connector
    agent: AgentClient  # one per process: its connections stay open
    clock: Clock = field(default_factory=Clock)
    roles: RoleCache = field(default_factory=RoleCache)
    accounts: AccessCache = field(default_factory=AccessCache)
