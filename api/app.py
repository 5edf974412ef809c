"""The public application: uvicorn → Middleware → PathMiddleware → Litestar → one handler per endpoint."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from litestar import Litestar, Request, asgi
from litestar.enums import HttpMethod
from litestar.handlers import ASGIRouteHandler, HTTPRouteHandler
from litestar.types import ASGIApp, Receive, Scope, Send

from api import auth_pipeline, docs
from api.authentication import Authenticator
from api.endpoint import Endpoint, table
from api.errors import ProtocolFault, answer_to
from api.handlers import HANDLERS
from api.jwks import KeySet
from api.links import Links
from api.middleware import Middleware
from api.paging import Paging
from api.path import REFUSED, PathMiddleware, Table
from api.probes import PROBES, probes
from api.request_context import of
from api.resource import ResourceType
from api.resources import RESOURCES
from api.response import Answer
from api.services import Authorize, FindOperation, Services
from api.throttle import Throttle
from muster.core.errors import Fault
from workflows import authorization, operations
from workflows.model.resource import Principal
from workflows.readiness import Readiness
from workflows.services import Services as WorkflowServices


def build(
    workflows: WorkflowServices,
    *,
    resources: Iterable[ResourceType] = RESOURCES,
    authorize: Authorize = authorization.authorize,
    find_operation: FindOperation = operations.get,
    http: httpx.AsyncClient | None = None,
) -> ASGIApp:
    """The parameters after `workflows` have the values that production uses; tests may give others."""
    resources = tuple(resources)
    settings, clock = workflows.settings, workflows.clock
    client = http or httpx.AsyncClient(trust_env=False)

    async def find_token(digest: str) -> Principal | None:
        return await authorization.principal_of_token(workflows, digest)

    keys = KeySet(settings, clock, client) if settings.oidc_issuer else None
    services = Services(
        workflows=workflows,
        authenticator=Authenticator(settings, clock, keys, find_token),
        authorize=authorize,
        find_operation=find_operation,
        throttle=Throttle(settings, clock),
        links=Links(settings),
        paging=Paging(settings),
        types={kind.arm_type.lower(): kind for kind in resources},
        readiness=Readiness(workflows),
    )

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await services.throttle.close()
            await client.aclose()

    endpoints = table(resources)
    app = Litestar(
        [
            _served(services, endpoints),
            _refused(services),
            *probes(services),
            docs.pages(services),
        ],
        exception_handlers={Exception: answer_to},  # type: ignore[dict-item]  # an Answer is enough
        lifespan=[lifespan],
        openapi_config=None,
        logging_config=None,
    )
    return Middleware(PathMiddleware(app, Table(endpoints), PROBES | docs.PAGES), clock)


def _served(services: Services, endpoints: Iterable[Endpoint]) -> HTTPRouteHandler:
    """One handler for the paths of all endpoints: the path middleware has found the endpoint."""
    request_limit = services.workflows.settings.request_limit.total_seconds()

    async def serve(request: Request[Any, Any, Any]) -> Answer:
        """Within the limit: what is cancelled rolls its transaction back before this answers."""
        context = of(request.scope)
        endpoint = context.endpoint
        assert endpoint is not None
        limit = request_limit + endpoint.waits
        try:
            async with asyncio.timeout(limit) as deadline:
                return await HANDLERS[endpoint.kind](services, endpoint, context, request.receive)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise _took_too_long(limit) from None

    paths = [f"/{endpoint.operation_id}" for endpoint in endpoints]
    return HTTPRouteHandler(paths, http_method=list(HttpMethod), status_code=200)(serve)


def _took_too_long(limit: float) -> ProtocolFault:
    return ProtocolFault(
        504,
        "RequestTimedOut",
        f"The request took longer than {limit:g} seconds and was stopped. Whether it took effect is "
        "shown by a GET; with the same Idempotency-Key it can be sent again.",
        [(b"retry-after", b"5")],
    )


def _refused(services: Services) -> ASGIRouteHandler:
    @asgi(REFUSED, copy_scope=False)
    async def refused(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
        """Says what the path middleware found, but only to those we know."""
        await auth_pipeline.authenticate(services, of(scope))
        refusal: Fault = scope["state"]["refusal"]
        raise refusal

    return refused
