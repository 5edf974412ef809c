"""The calls of Terraform's plugin protocol, answered from the tables of the resource types."""

import functools
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tf.gen import tfplugin_pb2 as pb
from tf.gen import tfplugin_pb2_grpc as rpc

from muster_terraform import diagnostics, provider, wire
from muster_terraform.api import ETAG, Api, ApiError
from muster_terraform.attributes import UNKNOWN, Attribute, Document, Nested, State
from muster_terraform.resources import ALL, BY_NAME
from muster_terraform.types import ResourceType
from muster_terraform.values import document_of, merged, planned, refreshed, replaced, state_of

Call = Callable[["Servicer", Any], Any]


def answering(response: Any) -> Callable[[Call], Callable[["Servicer", Any, Any], Any]]:
    """What fails is told as a diagnostic."""

    def decorate(call: Call) -> Callable[["Servicer", Any, Any], Any]:
        @functools.wraps(call)
        def wrapper(self: "Servicer", request: Any, context: Any) -> Any:
            del context
            try:
                return call(self, request)
            except ApiError as refused:
                type = BY_NAME.get(getattr(request, "type_name", ""))
                found = diagnostics.of_api(refused, type.complete if type else ())
                return response(diagnostics=found)
            except Exception as failure:  # noqa: BLE001 - Terraform would show a broken connection
                detail = f"{call.__name__}: {failure.__class__.__name__}: {failure}"
                return response(diagnostics=[diagnostics.error("The provider failed", detail)])

        return wrapper

    return decorate


@dataclass(frozen=True)
class Private:
    """What Terraform keeps beside the state."""

    seen: State | None  # what the API showed after the last apply; None after an import
    etag: str | None  # of the last read: an update is refused when it is another one

    @classmethod
    def of(cls, stored: bytes) -> "Private":
        found = json.loads(stored) if stored else {}
        return cls(seen=found.get("seen"), etag=found.get("etag"))

    def encoded(self) -> bytes:
        return json.dumps({"seen": self.seen, "etag": self.etag}).encode()


class Servicer(rpc.ProviderServicer):  # type: ignore[misc]
    def __init__(self) -> None:
        self.provider = provider.Provider()

    @property
    def api(self) -> Api:
        if self.provider.api is None:
            raise ApiError("NotConfigured", "The provider has not been configured.")
        return self.provider.api

    @answering(pb.GetMetadata.Response)
    def GetMetadata(self, request: Any) -> Any:
        del request
        named = [each.full_name for each in ALL]
        return pb.GetMetadata.Response(
            resources=[pb.GetMetadata.ResourceMetadata(type_name=name) for name in named],
            data_sources=[pb.GetMetadata.DataSourceMetadata(type_name=name) for name in named],
        )

    @answering(pb.GetProviderSchema.Response)
    def GetProviderSchema(self, request: Any) -> Any:
        del request
        return pb.GetProviderSchema.Response(
            provider=wire.provider_schema(provider.ATTRIBUTES, provider.ABOUT),
            resource_schemas={each.full_name: wire.resource_schema(each) for each in ALL},
            data_source_schemas={each.full_name: wire.data_schema(each) for each in ALL},
        )

    @answering(pb.ValidateProviderConfig.Response)
    def ValidateProviderConfig(self, request: Any) -> Any:
        del request
        return pb.ValidateProviderConfig.Response()

    @answering(pb.ConfigureProvider.Response)
    def ConfigureProvider(self, request: Any) -> Any:
        found = self.provider.configure(wire.decode(request.config))
        return pb.ConfigureProvider.Response(diagnostics=found)

    @answering(pb.ValidateResourceConfig.Response)
    def ValidateResourceConfig(self, request: Any) -> Any:
        type, config = BY_NAME[request.type_name], wire.decode(request.config)
        findings = [*_unfit(type.complete, config, []), *type.findings(config)]
        found = [diagnostics.error("InvalidValue", message, path) for message, path in findings]
        return pb.ValidateResourceConfig.Response(diagnostics=found)

    @answering(pb.ValidateDataResourceConfig.Response)
    def ValidateDataResourceConfig(self, request: Any) -> Any:
        del request
        return pb.ValidateDataResourceConfig.Response()

    @answering(pb.UpgradeResourceState.Response)
    def UpgradeResourceState(self, request: Any) -> Any:
        stored = json.loads(request.raw_state.json)
        state = _complete(BY_NAME[request.type_name].complete, stored)
        return pb.UpgradeResourceState.Response(upgraded_state=wire.encode(state))

    @answering(pb.ReadResource.Response)
    def ReadResource(self, request: Any) -> Any:
        type, prior = BY_NAME[request.type_name], wire.decode(request.current_state)
        document = type.fetch(self.api, prior["id"])
        if document is None:
            return pb.ReadResource.Response(new_state=wire.encode(None))
        now = state_of(type.complete, document)
        private = Private.of(request.private)
        state = refreshed(type.complete, prior, private.seen, now)
        private = Private(seen=private.seen, etag=document[ETAG])
        return pb.ReadResource.Response(new_state=wire.encode(state), private=private.encoded())

    @answering(pb.PlanResourceChange.Response)
    def PlanResourceChange(self, request: Any) -> Any:
        type = BY_NAME[request.type_name]
        config, prior = wire.decode(request.config), wire.decode(request.prior_state)
        if wire.decode(request.proposed_new_state) is None:
            return pb.PlanResourceChange.Response(planned_private=request.prior_private)
        if type.in_account and config[type.parent] is None:
            if self.provider.account is None:
                detail = "Give it here, or `account` of the provider, or MUSTER_ACCOUNT in the environment."
                found = diagnostics.error("AccountMissing", detail, [type.parent])
                return pb.PlanResourceChange.Response(diagnostics=[found])
            config[type.parent] = self.provider.account
        plan = planned(type.complete, config, prior)
        response = pb.PlanResourceChange.Response(
            planned_state=wire.encode(plan), planned_private=request.prior_private
        )
        for name in replaced(type.complete, prior, plan) if prior else ():
            response.requires_replace.add().steps.add(attribute_name=name)
        return response

    @answering(pb.ApplyResourceChange.Response)
    def ApplyResourceChange(self, request: Any) -> Any:
        type = BY_NAME[request.type_name]
        prior, plan = wire.decode(request.prior_state), wire.decode(request.planned_state)
        if plan is None:
            return self._delete(type, prior)
        if plan["name"] is UNKNOWN:
            plan["name"] = str(uuid.uuid4())
        id = type.id_of(plan) if prior is None else prior["id"]
        document = document_of(type.complete, plan, wire.decode(request.config), prior)
        try:
            self._save(type, id, document, prior, Private.of(request.planned_private))
        except ApiError as refused:
            return self._half_done(type, id, prior, request, refused)
        written = type.fetch(self.api, id)
        if written is None:
            raise ApiError("ResourceNotFound", f"{id} was removed while it was being written.")
        now = state_of(type.complete, written)
        return pb.ApplyResourceChange.Response(
            new_state=wire.encode(merged(plan, now)),
            private=Private(seen=now, etag=written[ETAG]).encoded(),
        )

    def _save(
        self, type: ResourceType, id: str, document: Document, prior: State | None, private: Private
    ) -> None:
        """An ETag is also another one when only what the API alone decides has changed: that is no reason to refuse."""
        try:
            type.save(self.api, id, document, new=prior is None, etag=private.etag)
        except ApiError as refused:
            found = type.fetch(self.api, id) if refused.status == 412 and prior else None
            if prior is None or found is None:
                raise
            now = refreshed(type.complete, prior, private.seen, state_of(type.complete, found))
            said = [each.name for each in type.complete if not each.only_computed]
            if any(now[name] != prior[name] for name in said):
                raise
            type.save(self.api, id, document, new=False, etag=found[ETAG])

    def _delete(self, type: ResourceType, prior: State) -> Any:
        try:
            type.remove(self.api, prior["id"])
        except ApiError as refused:
            found = diagnostics.of_api(refused, type.complete)
            return pb.ApplyResourceChange.Response(new_state=wire.encode(prior), diagnostics=found)
        return pb.ApplyResourceChange.Response(new_state=wire.encode(None))

    def _half_done(
        self, type: ResourceType, id: str, prior: State | None, request: Any, refused: ApiError
    ) -> Any:
        """The state is what is there. Of a new resource that failed half-way Terraform makes another."""
        found = diagnostics.of_api(refused, type.complete)
        if refused.status == 412 and prior is None:
            detail = f"It is there already. Take it over with: terraform import {type.full_name}.NAME '{id}'"
            found = [diagnostics.error("AlreadyExists", detail)]
            return pb.ApplyResourceChange.Response(new_state=wire.encode(None), diagnostics=found)
        if refused.status == 412:
            detail = f"{id} has changed since the plan, or was removed; nothing was written to it. Plan again."
            found = [diagnostics.error("ChangedSincePlan", detail)]
        try:
            document = type.fetch(self.api, id)
        except ApiError:
            return pb.ApplyResourceChange.Response(new_state=wire.encode(prior), diagnostics=found)
        if document is None:
            return pb.ApplyResourceChange.Response(new_state=wire.encode(None), diagnostics=found)
        now = state_of(type.complete, document)
        if prior is None:
            plan = wire.decode(request.planned_state)
            state = {
                each.name: now[each.name] if each.path else plan[each.name]
                for each in type.complete
            }
        else:
            seen = Private.of(request.planned_private).seen
            state = refreshed(type.complete, prior, seen, now)
        return pb.ApplyResourceChange.Response(
            new_state=wire.encode(state), private=request.planned_private, diagnostics=found
        )

    @answering(pb.ImportResourceState.Response)
    def ImportResourceState(self, request: Any) -> Any:
        type = BY_NAME[request.type_name]
        parts = type.parts(request.id)
        if parts is None:
            detail = f"'{request.id}' is not the id of a {type.full_name}: {type.example_id()}"
            return pb.ImportResourceState.Response(
                diagnostics=[diagnostics.error("InvalidId", detail)]
            )
        state = _complete(type.complete, {"id": request.id} | parts)
        found = pb.ImportResourceState.ImportedResource(
            type_name=request.type_name, state=wire.encode(state)
        )
        return pb.ImportResourceState.Response(imported_resources=[found])

    @answering(pb.ReadDataSource.Response)
    def ReadDataSource(self, request: Any) -> Any:
        type, config = BY_NAME[request.type_name], wire.decode(request.config)
        if type.in_account and config[type.parent] is None:
            config[type.parent] = self.provider.account
        if config["name"] is None or config[type.parent] is None:
            raise ApiError(
                "NameMissing", f"`name` and `{type.parent}` say which one is meant.", "name"
            )
        id = type.id_of(config)
        document = type.fetch(self.api, id)
        if document is None:
            raise ApiError("ResourceNotFound", f"There is no {type.full_name} {id}.", "name")
        attributes = wire.readable(type.complete)
        state = _complete(attributes, state_of(attributes, document))
        state |= {"name": config["name"], type.parent: config[type.parent]}
        return pb.ReadDataSource.Response(state=wire.encode(state))

    @answering(pb.GetFunctions.Response)
    def GetFunctions(self, request: Any) -> Any:
        del request
        return pb.GetFunctions.Response()

    @answering(lambda **_: pb.StopProvider.Response())
    def StopProvider(self, request: Any) -> Any:
        del request
        self.provider.stop()
        return pb.StopProvider.Response()


def _complete(attributes: tuple[Attribute, ...], state: State) -> State:
    """Exactly the attributes of the schema, whatever a version before stored."""
    return {each.name: _part(each, state.get(each.name)) for each in attributes}


def _part(attribute: Attribute, value: Any) -> Any:
    match attribute.kind:
        case Nested(inner, many=True) if isinstance(value, list):
            return [_complete(inner, each) for each in value]
        case Nested(inner) if isinstance(value, dict):
            return _complete(inner, value)
        case Nested(many=True):
            return []
    return value


def _unfit(attributes: tuple[Attribute, ...], config: State, at: list[str | int]) -> list[Any]:
    """Values that are none of the choices."""
    findings: list[Any] = []
    for each in attributes:
        value, path = config.get(each.name), [*at, each.name]
        if value is None or value is UNKNOWN:
            continue
        if isinstance(each.kind, Nested):
            items = value if each.kind.many else [value]
            for place, item in enumerate(items):
                if isinstance(item, dict):
                    step = [place] if each.kind.many else []
                    findings += _unfit(each.kind.attributes, item, [*path, *step])
        elif each.choices:
            for item in value if isinstance(value, list) else [value]:
                if item is not UNKNOWN and item not in each.choices:
                    choices = ", ".join(each.choices)
                    findings.append((f"'{item}' is not one of {choices}.", path))
    return findings
