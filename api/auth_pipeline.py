"""Request admission, always in this order: authentication, api-version, query, throttling, authorization."""

import hashlib

from api import query
from api.request_context import RequestContext
from api.services import Services
from muster.core.errors import InvalidRequest
from muster.core.ids import TENANT
from muster.core.worker_thread import CALLER
from workflows.model.resource import Call, Principal

LONGEST_KEY = 255


async def authenticate(services: Services, context: RequestContext) -> Principal:
    """Before anything of the request is judged, so that a stranger learns nothing."""
    services.links.check_host(context)
    principal = await services.authenticator.principal(context)
    context.principal = principal
    CALLER.set(f"{principal.tenant_id}/{principal.id}")
    return principal


async def admit(services: Services, context: RequestContext) -> Call:
    """Authorization is asked with the parsed id, before the body is read and existence shows."""
    endpoint = context.endpoint
    assert endpoint is not None
    principal = await authenticate(services, context)
    endpoint.versions.check(context.query.get("api-version"), endpoint.type.arm_type)
    query.check(context.query, endpoint.accepted)
    query.check_values(context.query, endpoint.choices)
    if services.throttle.on and not (endpoint.act and endpoint.act.urgent):
        context.spent = await services.throttle.spend(
            context.method, f"{principal.tenant_id}/{principal.id}", context.id.subscription
        )
    call = call_of(context, principal)
    if endpoint.action:
        await services.authorize(services.workflows, call, endpoint.action, context.id)
    return call


async def admit_to_metrics(services: Services, context: RequestContext) -> None:
    """Numbers of all subscriptions are for those who may read the tenant."""
    principal = await authenticate(services, context)
    call = call_of(context, principal)
    await services.authorize(services.workflows, call, "Microsoft.Resources/tenants/read", TENANT)


def call_of(context: RequestContext, principal: Principal) -> Call:
    headers = context.headers
    endpoint = context.endpoint
    parameters = dict(context.names)
    if endpoint is not None:
        for each in endpoint.query:
            value = context.query.get(each.name.lower())
            if value is not None:
                parameters[each.name] = value
    return Call(
        principal=principal,
        correlation_id=context.correlation_id,
        request_id=context.request_id,
        method=context.method,
        address=context.address,
        if_match=context.header(b"if-match") if b"if-match" in headers else None,
        if_none_match=context.header(b"if-none-match") if b"if-none-match" in headers else None,
        query=parameters,
    )


def idempotency(context: RequestContext, body: bytes, *, action: bool) -> tuple[str | None, bytes]:
    """The client's key for this request and the digest of what came with it."""
    key = context.header(b"idempotency-key")
    if key is not None and not (1 <= len(key) <= LONGEST_KEY and key.isprintable()):
        raise InvalidRequest(
            f"An Idempotency-Key has 1 to {LONGEST_KEY} printable characters.",
            code="InvalidIdempotencyKey",
            target="Idempotency-Key",
        )
    if key is None and action and context.client_request_id is not None:
        key = f"x-ms-client-request-id:{context.client_request_id.decode()}"
    return key, hashlib.sha256(body).digest() if key is not None else b""
