"""Endpoints beside ARM: liveness, readiness, metrics, and the OpenAPI document."""

from typing import Any

from litestar import Request, get
from litestar.handlers import HTTPRouteHandler

from api import auth_pipeline, metrics, openapi
from api.request_context import of
from api.response import JSON, Answer, json_answer
from api.services import Services
from muster.core.errors import Unavailable

PROBES = frozenset({b"/livez", b"/readyz", b"/metrics", b"/openapi.json"})
TEXT = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")

AnyRequest = Request[Any, Any, Any]


def probes(services: Services) -> list[HTTPRouteHandler]:
    @get("/livez")
    async def livez(request: AnyRequest) -> Answer:
        return json_answer(of(request.scope), 200, {"status": "ok"})

    @get("/readyz")
    async def readyz(request: AnyRequest) -> Answer:
        context = of(request.scope)
        try:
            await services.readiness.check()
        except Unavailable:
            return json_answer(context, 503, {"status": "unavailable"})
        return json_answer(context, 200, {"status": "ok"})

    @get("/metrics")
    async def numbers(request: AnyRequest) -> Answer:
        context = of(request.scope)
        await auth_pipeline.admit_to_metrics(services, context)
        return Answer(context, 200, await metrics.rendered(services.workflows.db), [TEXT])

    @get("/openapi.json")
    async def description(request: AnyRequest) -> Answer:
        context = of(request.scope)
        await auth_pipeline.authenticate(services, context)
        return Answer(context, 200, openapi.rendered(), [JSON])

    return [livez, readyz, numbers, description]
