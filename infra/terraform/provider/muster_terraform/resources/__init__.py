"""Every resource type of the provider; each is a data source too."""

from muster_terraform.resources import accounts, servers
from muster_terraform.resources.jobs import JOB
from muster_terraform.types import ResourceType

ALL: tuple[ResourceType, ...] = (*servers.TYPES, *accounts.TYPES, JOB)
BY_NAME = {each.full_name: each for each in ALL}
