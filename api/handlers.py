"""One handler per kind of endpoint; what is special about a type stands in its declaration."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import UUID

import msgspec
from litestar.types import Receive

from api import auth_pipeline, body, envelope, operations, paging, row_formats
from api.endpoint import Endpoint, Kind
from api.event_stream import events
from api.request_context import RequestContext
from api.resource import Action, ResourceType, UseCase
from api.response import Answer, Headers, json_answer
from api.services import Services
from api.shape import Findings, shape_of
from api.stream import Stream
from fsm.operations import Operation
from muster.core.errors import refuse
from muster.core.ids import ResourceId
from muster.core.worker_thread import compute
from workflows.model.item import Item, Report, WrittenItem
from workflows.model.resource import Ancestor, Body, Call, Deleted, Page, Resource, Written
from workflows.model.wire import Properties
from workflows.result_rows import Rows

Handler = Callable[[Services, Endpoint, RequestContext, Receive], Awaitable[Answer]]


async def get(
    services: Services, endpoint: Endpoint, context: RequestContext, _: Receive
) -> Answer:
    call = await auth_pipeline.admit(services, context)
    assert endpoint.verb
    resource = await endpoint.verb.run(services.workflows, call, context.id)
    if not isinstance(resource, Resource | Item):
        return json_answer(context, 200, resource)
    if _unchanged(call, resource):
        return Answer(context, 304, headers=_etag(resource))
    return json_answer(context, 200, _shown(endpoint.type, resource), _etag(resource))


async def head(
    services: Services, endpoint: Endpoint, context: RequestContext, _: Receive
) -> Answer:
    call = await auth_pipeline.admit(services, context)
    assert endpoint.verb
    await endpoint.verb.run(services.workflows, call, context.id)
    return Answer(context, 204)


async def put(
    services: Services, endpoint: Endpoint, context: RequestContext, receive: Receive
) -> Answer:
    written = await _write(services, endpoint, context, receive)
    status = 201 if written.created else 200
    if isinstance(written, WrittenItem):
        shown = envelope.show_item(written.item)
        return json_answer(context, status, shown, _etag(written.item))
    return _written(services, endpoint, context, written, status)


async def patch(
    services: Services, endpoint: Endpoint, context: RequestContext, receive: Receive
) -> Answer:
    written = await _write(services, endpoint, context, receive)
    if isinstance(written, WrittenItem):
        return json_answer(context, 200, envelope.show_item(written.item), _etag(written.item))
    assert isinstance(written, Written)
    if written.operation is not None:
        headers = _polling(services, endpoint.type, context, written.operation)
        return Answer(context, 202, headers=headers)
    return _written(services, endpoint, context, written, 200)


async def delete(
    services: Services, endpoint: Endpoint, context: RequestContext, receive: Receive
) -> Answer:
    call = await auth_pipeline.admit(services, context)
    call = await _with_key(context, receive, call)
    assert endpoint.verb
    deleted: Deleted = await endpoint.verb.run(services.workflows, call, context.id)
    if not deleted.existed:
        return Answer(context, 204)
    if deleted.operation is None:
        return Answer(context, 200)
    headers = _polling(services, endpoint.type, context, deleted.operation)
    return Answer(context, 202, headers=headers)


async def list_(
    services: Services, endpoint: Endpoint, context: RequestContext, _: Receive
) -> Answer:
    call = await auth_pipeline.admit(services, context)
    assert endpoint.verb
    after, top = services.paging.after(context), paging.top(context)
    page: Page = await endpoint.verb.run(services.workflows, call, context.id, after, top)
    content: dict[str, Any] = {"value": [_shown(endpoint.type, item) for item in page.items]}
    if page.next is not None:
        base = services.links.base(context)
        content["nextLink"] = services.paging.next_link(context, base, page.next)
    return json_answer(context, 200, content)


async def act(
    services: Services, endpoint: Endpoint, context: RequestContext, receive: Receive
) -> Answer:
    call = await auth_pipeline.admit(services, context)
    action = endpoint.act
    assert action
    raw = await body.read(context, receive)
    arguments = await compute(_arguments, action, context, raw, size=len(raw))
    key, digest = auth_pipeline.idempotency(context, raw, action=action.method == "POST")
    call = msgspec.structs.replace(call, idempotency_key=key, body_digest=digest)
    answer = await action.run(services.workflows, call, context.id, *arguments)
    if action.gives is None:
        return Answer(context, 200)
    if isinstance(answer, Report):
        return json_answer(context, 200, answer.content, _etag(answer))
    return json_answer(context, 200, _shown(endpoint.type, answer))


async def report(
    services: Services, endpoint: Endpoint, context: RequestContext, _: Receive
) -> Answer:
    call = await auth_pipeline.admit(services, context)
    wanted = endpoint.report
    assert wanted
    if wanted.rows is not None and (form := row_formats.wanted(context)) != "json":
        return await _stream(services, context, call, wanted.rows, form)
    page = (services.paging.after(context), paging.top(context)) if wanted.paged else ()
    reply: Report = await wanted.run(services.workflows, call, context.id, *page)
    if _unchanged(call, reply):
        return Answer(context, 304, headers=_etag(reply))
    content = reply.content
    if reply.next is not None:
        base = services.links.base(context)
        content = {**content, "nextLink": services.paging.next_link(context, base, reply.next)}
    return json_answer(context, 200, content, _etag(reply))


async def _stream(
    services: Services, context: RequestContext, call: Call, run: UseCase, form: row_formats.Form
) -> Answer:
    row_formats.refuse_paging(context, form)
    rows: Rows = await run(services.workflows, call, context.id)
    headers = [
        (b"content-type", row_formats.CONTENT_TYPES[form]),
        (b"muster-targets", str(rows.targets).encode()),
        (b"muster-truncated-targets", str(rows.truncated).encode()),
    ]
    return Stream(context, headers, _chunks(form, rows), services.streams)


async def _chunks(form: row_formats.Form, rows: Rows) -> AsyncIterator[bytes]:
    yield row_formats.header(form, rows.columns)
    async for parts in rows.pages:
        for chunk in row_formats.chunks(form, rows.columns, parts):
            yield chunk


async def status(services: Services, _: Endpoint, context: RequestContext, __: Receive) -> Answer:
    operation, _call = await _operation(services, context)
    headers = _wait(services, operation)
    return json_answer(context, 200, operations.status(operation, context.id.text), headers)


async def result(services: Services, _: Endpoint, context: RequestContext, __: Receive) -> Answer:
    """202 while it runs; then what the call itself would have answered had it not been long."""
    operation, call = await _operation(services, context)
    if operation.running:
        again = services.links.base(context) + context.raw_path.decode("latin-1")
        query = context.scope["query_string"].decode("latin-1")
        headers: Headers = [(b"location", f"{again}?{query}".encode("latin-1"))]
        return Answer(context, 202, headers=headers + _wait(services, operation))
    if operation.status != "Succeeded":
        raise operations.OperationFailed(operation)
    if operation.verb == "delete":
        return Answer(context, 204)
    id = ResourceId.parse(operation.resource_id)
    kind = services.type_of(id)
    assert kind.get
    resource = await kind.get.run(services.workflows, call, id)
    etag = (b"etag", resource.etag.encode())
    return json_answer(context, 200, envelope.show(kind, resource), [etag])


HANDLERS: dict[Kind, Handler] = {
    Kind.GET: get,
    Kind.HEAD: head,
    Kind.PUT: put,
    Kind.PATCH: patch,
    Kind.DELETE: delete,
    Kind.LIST: list_,
    Kind.ACTION: act,
    Kind.REPORT: report,
    Kind.FEED: events,
    Kind.STATUS: status,
    Kind.RESULT: result,
}


async def _write(
    services: Services,
    endpoint: Endpoint,
    context: RequestContext,
    receive: Receive,
) -> Written | WrittenItem:
    call = await auth_pipeline.admit(services, context)
    raw = await body.read(context, receive)
    checked = await compute(_body, endpoint, context, raw, size=len(raw))
    key, digest = auth_pipeline.idempotency(context, raw, action=False)
    if key is not None:
        call = msgspec.structs.replace(call, idempotency_key=key, body_digest=digest)
    assert endpoint.verb
    written: Written | WrittenItem = await endpoint.verb.run(
        services.workflows, call, context.id, checked
    )
    return written


def _body(endpoint: Endpoint, context: RequestContext, raw: bytes) -> Body:
    given = body.decode(context, raw, required=not endpoint.type.bodiless)
    merge = endpoint.kind is Kind.PATCH
    return envelope.read(endpoint.type, context.id, given, merge=merge, size=len(raw))


def _arguments(action: Action, context: RequestContext, raw: bytes) -> list[Any]:
    given = body.decode(context, raw, required=action.requires_body)
    findings = Findings(merge=False, nulls=False)
    arguments = shape_of(action.takes or Properties)(given, "", findings)
    refuse(findings.errors)
    return [arguments] if action.takes else []


def _shown(kind: ResourceType, resource: Any) -> Any:
    match resource:
        case Resource():
            return envelope.show(kind, resource)
        case Item():
            return envelope.show_item(resource)
        case Ancestor():
            return {"id": resource.id, "name": resource.name, "type": resource.type}
        case _:
            return resource


def _unchanged(call: Call, resource: Resource | Item | Report) -> bool:
    wanted = call.if_none_match
    return wanted is not None and resource.etag is not None and _holds(wanted, resource.etag)


def _etag(resource: Resource | Item | Report) -> Headers:
    return [] if resource.etag is None else [(b"etag", resource.etag.encode())]


def _written(
    services: Services, endpoint: Endpoint, context: RequestContext, written: Written, status: int
) -> Answer:
    headers: Headers = [(b"etag", written.resource.etag.encode())]
    if written.operation is not None:
        headers += _polling(services, endpoint.type, context, written.operation)
    shown = envelope.show(endpoint.type, written.resource, written.extra)
    return json_answer(context, status, shown, headers)


def _polling(
    services: Services, kind: ResourceType, context: RequestContext, operation: Operation
) -> Headers:
    assert kind.polling, f"{kind.arm_type} began an operation without saying where it is polled"
    base = services.links.base(context)
    version = context.query["api-version"]
    return operations.headers(operation, kind.polling, kind.namespace, base, version)


async def _with_key(context: RequestContext, receive: Receive, call: Call) -> Call:
    """A DELETE has no body to speak of; a key makes its repetition the same request."""
    key, digest = auth_pipeline.idempotency(context, b"", action=False)
    if int(context.headers.get(b"content-length", b"0")) > body.MOST_BYTES:
        await body.read(context, receive)
    if key is None:
        return call
    return msgspec.structs.replace(call, idempotency_key=key, body_digest=digest)


async def _operation(services: Services, context: RequestContext) -> tuple[Operation, Call]:
    call = await auth_pipeline.admit(services, context)
    subscription = context.id.subscription or ""
    try:
        operation_id = UUID(context.id.name)
    except ValueError:
        operation_id = UUID(int=0)
    operation = await services.find_operation(services.workflows, call, subscription, operation_id)
    return operation, call


def _wait(services: Services, operation: Operation) -> Headers:
    if not operation.running:
        return []
    return [operations.retry_after(operation, services.workflows.clock.now())]


def _holds(header: str, etag: str) -> bool:
    tags = {each.strip().removeprefix("W/") for each in header.split(",")}
    return "*" in tags or etag in tags
