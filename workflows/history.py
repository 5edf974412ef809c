"""Every transition of a resource's machine, with its reason."""

from fsm import machines
from muster.core.ids import ResourceId
from workflows import resources
from workflows.model.resource import Call, Page
from workflows.services import Services


async def list_page(
    services: Services, call: Call, id: ResourceId, after: str | None, top: int
) -> Page:
    resource = await resources.get(services, call, id)
    moves = await machines.history(services.db, resource.uid)
    start = int(after) if after else 0
    page = [move for move in moves if move.seq > start][: top + 1]
    items = [
        {
            "sequence": move.seq,
            "from": move.from_state,
            "to": move.to_state,
            "reason": move.reason,
            "operationId": str(move.operation_id) if move.operation_id else None,
            "time": move.at.isoformat().replace("+00:00", "Z"),
        }
        for move in page[:top]
    ]
    return Page(items=items, next=str(page[top - 1].seq) if len(page) > top else None)
