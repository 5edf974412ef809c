"""Elastic pools: databases of one server that share a budget."""

from api.resource import Parts, ResourceType, Sync
from api.resources.servers import SERVERS
from api.versions import SQL
from workflows import pools
from workflows.model.pool import PoolProperties

POOLS = ResourceType(
    name="elasticPools",
    namespace="Microsoft.Sql",
    title="ElasticPools",
    singular="elastic pool",
    parameter="elasticPoolName",
    versions=SQL,
    parent=SERVERS,
    properties=PoolProperties,
    observed={
        "state": {"type": "string"},
        "provisioningState": {"type": "string"},
        "creationDate": {"type": "string"},
    },
    parts=Parts(location=True, tags=True, sku=True),
    pattern=r"^[A-Za-z0-9_()-][A-Za-z0-9_() .-]{0,126}[A-Za-z0-9_()-]$",
    name_example="gold",
    example={
        "location": "westeurope",
        "sku": {"name": "StandardPool", "tier": "Standard", "capacity": 50},
        "properties": {"databasePattern": "tenant_*", "maxConnections": 5},
    },
    put=Sync(pools.put),
    patch=Sync(pools.patch),
    get=Sync(pools.get),
    delete=Sync(pools.delete),
    list=Sync(pools.list_page),
)
