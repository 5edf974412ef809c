"""Resource groups: what is deployed, granted and deleted together."""

from api.resource import Async, At, Parts, Polling, Query, ResourceType, Sync
from api.resources.shared import ASKING, FILTER
from api.versions import RESOURCES
from workflows import groups
from workflows.model.resource import FORCED_TYPES
from workflows.model.tenancy import GroupProperties

FORCED = Query(
    name=FORCED_TYPES,
    description="Azure's; without effect: no database of a registered server is dropped.",
)

GROUPS = ResourceType(
    name="resourceGroups",
    namespace="Microsoft.Resources",
    title="ResourceGroups",
    singular="resource group",
    parameter="resourceGroupName",
    versions=RESOURCES,
    core=True,
    at=(At.SUBSCRIPTION,),
    properties=GroupProperties,
    parts=Parts(location=True, tags=True),
    pattern=r"^[A-Za-z0-9_().-]{0,89}[A-Za-z0-9_()-]$",
    name_example="fleet",
    example={"location": "westeurope", "tags": {"team": "data"}},
    put=Sync(groups.put),
    patch=Sync(groups.patch),
    get=Sync(groups.get),
    head=Sync(groups.get),
    delete=Async(groups.delete, query=(FORCED,), waits=ASKING),
    list=Sync(groups.list_page, query=(FILTER,)),
    polling=Polling(
        status="operationStatuses", result="operationResults", title="ResourceGroupOperations"
    ),
)
