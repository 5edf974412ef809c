"""The node agent's HTTP side: the caller is checked before anything is read, and errors have one form."""

import asyncio
from typing import Any
from uuid import UUID

import msgspec
from litestar import Litestar, Response, get, post
from litestar import Request as HttpRequest
from litestar.exceptions import HTTPException
from litestar.params import FromPath

from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import (
    Fault,
    Internal,
    InvalidRequest,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from muster.core.worker_thread import CALLER, compute
from nodeagent.command_table import COMMANDS, Spec
from nodeagent.commands import HANDLERS
from nodeagent.invocation import Services, begun
from nodeagent.tokens import Tokens, body_digest, demand
from nodeagent.wire import CommandError, Request

log = telemetry.get(__name__)

LARGEST = 32 * 1024 * 1024  # bytes: a directory of ten thousand servers with their certificates
JSON = "application/json"
BEARER = "Bearer "


def build(services: Services, clock: Clock) -> Litestar:
    tokens = Tokens(services.keyring, clock)

    @post("/v1/accounts/{account_uid:uuid}/commands/{command_id:uuid}", status_code=200)
    async def command(
        request: HttpRequest[Any, Any, Any],
        account_uid: FromPath[UUID],
        command_id: FromPath[UUID],
    ) -> Response[bytes]:
        token = request.headers.get("authorization", "")
        if not token.startswith(BEARER):
            raise Unauthenticated("A token is needed.")
        claims = tokens.read(token.removeprefix(BEARER))
        demand(claims, account=account_uid, command=command_id)
        body = await request.body()
        demand(claims, body=body_digest(body))
        command_request = _decoded(body)
        spec = COMMANDS.get(command_request.command)
        if spec is None:
            raise InvalidRequest("This agent knows no such command.", code="CommandNotKnown")
        demand(claims, kind=spec.cls)
        began = clock.monotonic()
        result = await _run(services, account_uid, command_id, spec, command_request)
        took = round(clock.monotonic() - began, 3)
        log.info("command done", command=spec.name, account=account_uid, id=command_id, took=took)
        return Response(result, media_type=JSON)

    @get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    return Litestar(
        [command, healthz],
        exception_handlers={Exception: _answer},
        request_max_body_size=LARGEST,
        openapi_config=None,
        logging_config=None,
    )


async def _run(
    services: Services, account_uid: UUID, command_id: UUID, spec: Spec, request: Request
) -> bytes:
    CALLER.set(str(account_uid))
    invocation = await compute(
        begun, services, account_uid, command_id, spec, request, size=len(request.args)
    )
    try:
        async with asyncio.timeout(spec.timeout.total_seconds()):
            answer = await HANDLERS[spec.name](invocation)
            if spec.function is None:  # that of a function was checked before its commit
                invocation.check(answer)
            return answer.encode()  # as it was said: what is read and written again loses digits
    except TimeoutError:
        raise Unavailable(
            f"The command {spec.name} took longer than it may take.", code="CommandTimedOut"
        ) from None


def _decoded(body: bytes) -> Request:
    try:
        return msgspec.json.decode(body, type=Request)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"The body is not a command: {error}.") from None


def _answer(request: HttpRequest[Any, Any, Any], error: Exception) -> Response[bytes]:
    match error:
        case Fault():
            fault: Fault = error
        case HTTPException(status_code=404 | 405):
            fault = NotFound("There is nothing here.")
        case HTTPException() if error.status_code < 500:
            fault = InvalidRequest("The request was refused.")
        case _:
            log.error("command failed", path=request.url.path, exc_info=error)
            fault = Internal("An internal error occurred in the node agent.")
    document = CommandError.of(fault)
    address = request.client.host if request.client else ""
    telemetry.note_refusal("nodeagent", document.status, fault.code, fault.message, address)
    if isinstance(error, Fault):
        log.warning("command refused", path=request.url.path, code=fault.code, why=fault.context)
    headers = {"retry-after": str(fault.retry_after)} if fault.retry_after else {}
    return Response(
        msgspec.json.encode(document), status_code=document.status, media_type=JSON, headers=headers
    )
