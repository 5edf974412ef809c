"""The status of a long-running operation, for those who may read what it works on."""

from uuid import UUID

from fsm import operations
from fsm.operations import Operation
from muster.core.errors import Forbidden, NotFound
from muster.core.ids import ResourceId
from workflows import authorization
from workflows.model.resource import Call
from workflows.services import Services


async def get(services: Services, call: Call, subscription: str, operation_id: UUID) -> Operation:
    operation = await operations.get(services.db, operation_id)
    inside = operation is not None and operation.subscription_key == subscription.lower()
    if operation is None or not inside:
        scope = ResourceId((("subscriptions", subscription),))
        await authorization.authorize(services, call, "Microsoft.Resources/operations/read", scope)
        raise NotFound(f"There is no operation '{operation_id}'.", code="OperationIdNotFound")
    id = ResourceId.parse(operation.resource_id)
    try:
        await authorization.authorize(services, call, f"{id.type}/read", id)
    except Forbidden as denied:
        raise Forbidden(
            "The client does not have authorization to read this operation or it does not exist."
        ) from denied
    return operation
