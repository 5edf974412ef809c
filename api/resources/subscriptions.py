"""Subscriptions: the billing and access boundary above resource groups."""

from api.resource import At, Parts, ResourceType, Sync
from api.versions import SUBSCRIPTIONS as VERSIONS
from workflows import subscriptions
from workflows.model.tenancy import SubscriptionProperties

SUBSCRIPTIONS = ResourceType(
    name="subscriptions",
    namespace="Microsoft.Resources",
    title="Subscriptions",
    singular="subscription",
    parameter="subscriptionId",
    versions=VERSIONS,
    core=True,
    flat=True,
    at=(At.TENANT,),
    properties=SubscriptionProperties,
    observed={
        "subscriptionId": {"type": "string"},
        "tenantId": {"type": "string"},
        "registrationDate": {"type": "string", "format": "date-time"},
    },
    parts=Parts(tags=True),
    pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$",
    name_example="6f1c9a52-3f0e-4f4e-9a57-0d8e6f3b7a11",
    example={"displayName": "Production", "state": "Registered", "tags": {"team": "data"}},
    put=Sync(subscriptions.put),
    get=Sync(subscriptions.get),
    list=Sync(subscriptions.list_page),
)
