"""Every resource type that exists; a type is added by one line here."""

from api.resources.accounts import ACCOUNTS
from api.resources.audit import AUDIT
from api.resources.authorization import LOCKS, ROLE_ASSIGNMENTS, ROLE_DEFINITIONS, SERVICE_TOKENS
from api.resources.credentials import CREDENTIALS
from api.resources.databases import DATABASES
from api.resources.executions import (
    ATTEMPTS,
    EXECUTIONS,
    STEP_EXECUTIONS,
    TARGET_EXECUTIONS,
)
from api.resources.groups import GROUPS
from api.resources.jobs import JOB_PLANS, JOB_VERSIONS, JOBS
from api.resources.pools import POOLS
from api.resources.private_endpoints import PRIVATE_ENDPOINTS
from api.resources.providers import OPERATIONS, PROVIDERS
from api.resources.servers import SERVERS
from api.resources.steps import JOB_STEPS, VERSION_STEPS
from api.resources.subscriptions import SUBSCRIPTIONS
from api.resources.target_groups import TARGET_GROUPS
from api.resources.webhooks import WEBHOOKS

RESOURCES = (
    SUBSCRIPTIONS,
    GROUPS,
    PROVIDERS,
    OPERATIONS,
    SERVERS,
    DATABASES,
    POOLS,
    ACCOUNTS,
    CREDENTIALS,
    TARGET_GROUPS,
    JOBS,
    JOB_VERSIONS,
    JOB_PLANS,
    JOB_STEPS,
    VERSION_STEPS,
    EXECUTIONS,
    STEP_EXECUTIONS,
    TARGET_EXECUTIONS,
    ATTEMPTS,
    PRIVATE_ENDPOINTS,
    WEBHOOKS,
    ROLE_DEFINITIONS,
    ROLE_ASSIGNMENTS,
    LOCKS,
    SERVICE_TOKENS,
    AUDIT,
)
