"""Request admission, always in this order: authentication, api-version, query, throttling, authorization."""

import hashlib

from api import query
from api.request_context import Exchange
from api.services import Services
from muster.core.errors import InvalidRequest
from muster.core.ids import TENANT
from workflows.model.resource import Call, Principal

LONGEST_KEY = 255


async def authenticate(services: Services, exchange: Exchange) -> Principal:
    """Before anything of the request is judged, so that a stranger learns nothing."""
    services.links.check_host(exchange)
    principal = await services.authenticator.principal(exchange)
    exchange.principal = principal
    return principal


async def admit(services: Services, exchange: Exchange) -> Call:
    """Authorization is asked with the parsed id, before the body is read and existence shows."""
    endpoint = exchange.endpoint
    assert endpoint is not None
    principal = await authenticate(services, exchange)
    endpoint.versions.check(exchange.query.get("api-version"), endpoint.type.arm_type)
    query.check(exchange.query, endpoint.accepted)
    query.check_values(exchange.query, endpoint.choices)
    if services.throttle.on and not (endpoint.act and endpoint.act.urgent):
        exchange.spent = await services.throttle.spend(
            exchange.method, f"{principal.tenant_id}/{principal.id}", exchange.id.subscription
        )
    call = call_of(exchange, principal)
    if endpoint.action:
        await services.authorize(services.plane, call, endpoint.action, exchange.id)
    return call


async def admit_to_metrics(services: Services, exchange: Exchange) -> None:
    """Numbers of all subscriptions are for those who may read the tenant."""
    principal = await authenticate(services, exchange)
    call = call_of(exchange, principal)
    await services.authorize(services.plane, call, "Microsoft.Resources/tenants/read", TENANT)


def call_of(exchange: Exchange, principal: Principal) -> Call:
    headers = exchange.headers
    endpoint = exchange.endpoint
    asked: dict[str, str] = {}
    if endpoint is not None:
        for each in endpoint.query:
            value = exchange.query.get(each.name.lower())
            if value is not None:
                asked[each.name] = value
    return Call(
        principal=principal,
        correlation_id=exchange.correlation_id,
        request_id=exchange.request_id,
        method=exchange.method,
        address=exchange.address,
        if_match=exchange.header(b"if-match") if b"if-match" in headers else None,
        if_none_match=exchange.header(b"if-none-match") if b"if-none-match" in headers else None,
        query=asked,
    )


def idempotency(exchange: Exchange, body: bytes, *, action: bool) -> tuple[str | None, bytes]:
    """The client's key for this request and the digest of what came with it."""
    key = exchange.header(b"idempotency-key")
    if key is not None and not (1 <= len(key) <= LONGEST_KEY and key.isprintable()):
        raise InvalidRequest(
            f"An Idempotency-Key has 1 to {LONGEST_KEY} printable characters.",
            code="InvalidIdempotencyKey",
            target="Idempotency-Key",
        )
    if key is None and action and exchange.client_request_id is not None:
        key = f"x-ms-client-request-id:{exchange.client_request_id.decode()}"
    return key, hashlib.sha256(body).digest() if key is not None else b""
