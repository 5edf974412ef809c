"""Every lifecycle there is, by the name that machines are stored with."""

from fsm.account import ACCOUNT
from fsm.database import DATABASE
from fsm.lifecycle_table import Lifecycle
from fsm.resource_group import RESOURCE_GROUP
from fsm.server import SERVER

LIFECYCLES: dict[str, Lifecycle] = {
    lifecycle.name: lifecycle for lifecycle in (SERVER, DATABASE, RESOURCE_GROUP, ACCOUNT)
}
