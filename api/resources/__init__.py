"""Every resource type that exists; a type is added by one line here."""

from api.resources.accounts import ACCOUNTS
from api.resources.audit import AUDIT
from api.resources.authorization import LOCKS, ROLE_ASSIGNMENTS, ROLE_DEFINITIONS, SERVICE_TOKENS
from api.resources.databases import DATABASES
from api.resources.groups import GROUPS
from api.resources.pools import POOLS
from api.resources.providers import OPERATIONS, PROVIDERS
from api.resources.servers import SERVERS
from api.resources.subscriptions import SUBSCRIPTIONS

RESOURCES = (
    SUBSCRIPTIONS,
    GROUPS,
    PROVIDERS,
    OPERATIONS,
    SERVERS,
    DATABASES,
    POOLS,
    ACCOUNTS,
    ROLE_DEFINITIONS,
    ROLE_ASSIGNMENTS,
    LOCKS,
    SERVICE_TOKENS,
    AUDIT,
)
