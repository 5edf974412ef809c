"""The Workload API: an application of its own, on its own listener; it decides nothing.

410 means: you are no longer wanted, stop.
"""

from typing import Any
from uuid import UUID

import msgspec
from litestar import Litestar, Request, Response, get
from litestar.enums import HttpMethod, MediaType
from litestar.exceptions import ClientException, HTTPException, InternalServerException
from litestar.handlers import HTTPRouteHandler

from api.errors import status_of
from api.workloads import ROUTES, Route, Services
from fsm.launch import protocol
from fsm.launch.protocol import BASE
from fsm.launch.workload import Over, shown
from muster.core import telemetry
from muster.core.errors import Fault, InvalidRequest

log = telemetry.get(__name__)

LARGEST = 1024 * 1024  # bytes of a body
AnyRequest = Request[Any, Any, Any]


def build(services: Services) -> Litestar:
    return Litestar(
        [*(_handler(services, route) for route in ROUTES), _one(services)],
        path=BASE,
        exception_handlers={Exception: _answer_to},
        openapi_config=None,
        logging_config=None,
        request_max_body_size=LARGEST,
    )


def _handler(services: Services, route: Route) -> HTTPRouteHandler:
    async def serve(request: AnyRequest) -> Response[bytes]:
        caller = await services.caller(request.headers.get("authorization", ""))
        body = None if route.body is None else _decode(await _body(request), route.body)
        if route.body is not protocol.Create and (id := getattr(body, "workload_id", None)):
            await services.subject(caller, id)
        reply = await route.act(services, caller, body)
        return _response(reply.status, reply.body)

    methods = [HttpMethod(route.method)]
    return HTTPRouteHandler(route.path, http_method=methods, status_code=200)(serve)


def _one(services: Services) -> HTTPRouteHandler:
    @get("/{workload_id:uuid}")
    async def one(request: AnyRequest) -> Response[bytes]:
        caller = await services.caller(request.headers.get("authorization", ""))
        id: UUID = request.path_params["workload_id"]
        return _response(200, shown(await services.subject(caller, id)))

    return one


async def _body(request: AnyRequest) -> bytes:
    try:
        return await request.body()
    except InternalServerException as error:  # what Litestar raises when the client is gone
        raise ClientException("The connection was closed before the end of the body.") from error


def _decode(body: bytes, kind: type[msgspec.Struct]) -> msgspec.Struct:
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"The body is not what is expected: {error}.") from None


def _response(status: int, body: object) -> Response[bytes]:
    content = b"" if body is None else msgspec.json.encode(body)
    return Response(content, status_code=status, media_type=MediaType.JSON)


def _answer_to(request: AnyRequest, error: Exception) -> Response[bytes]:
    """Every refusal is `{message, code}`."""
    match error:
        case Over():
            return _response(410, protocol.Error(error.message, error.code))
        case Fault():
            status = status_of(error)
            address = request.client.host if request.client else ""
            telemetry.note_refusal("workload", status, error.code, error.message, address)
            if status >= 500:
                log.error("workload request failed", path=request.url.path, why=error.context)
            return _response(status, protocol.Error(error.message, error.code))
        case HTTPException() if error.status_code < 500:
            return _response(error.status_code, protocol.Error(error.detail))
        case _:
            log.error("workload request failed", path=request.url.path, exc_info=error)
            return _response(500, protocol.Error("An internal error occurred."))
