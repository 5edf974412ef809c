"""What the handlers need; made once per app."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from api.authentication import Authenticator
from api.links import Links
from api.paging import Paging
from api.resource import ResourceType
from api.stream import Streams
from api.throttle import Throttle
from fsm.operations import Operation
from muster.core.ids import ResourceId
from workflows.model.resource import Call
from workflows.readiness import Readiness
from workflows.services import Services as WorkflowServices

Authorize = Callable[[WorkflowServices, Call, str, ResourceId], Awaitable[None]]
FindOperation = Callable[..., Awaitable[Operation]]


@dataclass(frozen=True)
class Services:
    workflows: WorkflowServices
    authenticator: Authenticator
    authorize: Authorize
    find_operation: FindOperation
    throttle: Throttle
    links: Links
    paging: Paging
    types: dict[str, ResourceType]  # by ARM type in lower case
    readiness: Readiness
    streams: Streams = field(default_factory=Streams)

    def type_of(self, id: ResourceId) -> ResourceType:
        return self.types[id.type.lower()]
