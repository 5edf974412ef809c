"""A private endpoint: a connection from an account to a server that needs an approval there."""

from typing import ClassVar

from msgspec import UNSET

from workflows.model.wire import Maybe, Properties


class PrivateEndpointProperties(Properties, frozen=True):
    READ_ONLY: ClassVar = frozenset({"privateEndpointId", "status"})
    REQUIRED: ClassVar = frozenset({"targetServerAzureResourceId"})

    target_server_azure_resource_id: Maybe[str] = UNSET
