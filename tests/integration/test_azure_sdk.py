"""The real Azure SDK, unchanged, through servers and databases: sync, aio, and once over TLS."""

from dataclasses import replace

import pytest
import trustme
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.mgmt.sql import SqlManagementClient
from azure.mgmt.sql.aio import SqlManagementClient as AsyncSqlManagementClient

from tests.support.running_api import TOKEN, serve_in_thread

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
GROUP = "prod"


class Credential:
    def get_token(self, *scopes, **kwargs):
        return AccessToken(TOKEN, 2**40)


class PlainBearer(SansIOHTTPPolicy):
    """Over plain http the SDK refuses to send a token; over TLS this is not needed."""

    def on_request(self, request):
        request.http_request.headers["Authorization"] = f"Bearer {TOKEN}"


def server_body(targets, **more):
    role = targets.administrator
    return {
        "location": "West Europe",
        "tags": {"stage": "test"},
        "properties": {
            "administratorLogin": role.name,
            "administratorLoginPassword": role.password,
            "version": "12.0",
            "minimalTlsVersion": "None",
            "endpoint": {"host": "127.0.0.1", "port": targets.port, "sslMode": "disable"},
            "deletionPolicy": "Drop",
            **more,
        },
    }


def prepare(plane):
    with plane.client() as client:
        client.put(f"/subscriptions/{SUBSCRIPTION}", json={}).raise_for_status()
        group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}"
        client.put(group, json={"location": "westeurope"}).raise_for_status()


@pytest.fixture
def plane(settings):
    with serve_in_thread(settings) as running:
        prepare(running)
        yield running


def test_the_sync_client_goes_through_servers_and_databases(plane, targets):
    client = SqlManagementClient(
        Credential(),
        SUBSCRIPTION,
        plane.url,
        authentication_policy=PlainBearer(),
        polling_interval=0.1,
    )
    with client:
        server = client.servers.begin_create_or_update(GROUP, "eu1", server_body(targets)).result()
        assert (server.name, server.location, server.state, server.version) == (
            "eu1",
            "westeurope",
            "Ready",
            "12.0",
        )
        assert server.type == "Microsoft.Sql/servers"
        assert server.administrator_login_password is None
        name = "tenant one"
        database = client.databases.begin_create_or_update(
            GROUP, "eu1", name, {"location": "westeurope", "sku": {"name": "S0"}}
        ).result()
        assert (database.name, database.status, database.sku.name) == (name, "Online", "S0")
        assert [d.name for d in client.databases.list_by_server(GROUP, "eu1")] == [name]
        assert [s.name for s in client.servers.list()] == ["eu1"]
        assert [s.name for s in client.servers.list_by_resource_group(GROUP)] == ["eu1"]

        updated = client.servers.begin_update(GROUP, "eu1", {"tags": {"a": "b"}}).result()
        assert updated.tags == {"a": "b"}
        changed = client.databases.begin_update(GROUP, "eu1", name, {"tags": {"c": "d"}}).result()
        assert changed.tags == {"c": "d"}
        pool = client.elastic_pools.begin_create_or_update(
            GROUP, "eu1", "gold", {"location": "westeurope", "properties": {"maxSizeBytes": 1024}}
        ).result()
        assert pool.max_size_bytes == 1024
        available = client.servers.check_name_availability(
            {"name": "eu1", "type": "Microsoft.Sql/servers"}
        )
        assert (available.available, available.reason) == (False, "AlreadyExists")
        assert any(op.name == "Microsoft.Sql/servers/read" for op in client.operations.list())

        client.databases.begin_delete(GROUP, "eu1", name).result()
        with pytest.raises(ResourceNotFoundError) as missing:
            client.databases.get(GROUP, "eu1", name)
        assert missing.value.error.code == "ResourceNotFound"
        client.servers.begin_delete(GROUP, "eu1").result()
        client.servers.begin_delete(GROUP, "eu1").result()
        assert list(client.servers.list()) == []


@pytest.mark.parametrize("version", ["2023-08-01-preview", "2020-11-01-preview"])
def test_older_api_versions_work_as_well(plane, targets, version):
    client = SqlManagementClient(
        Credential(),
        SUBSCRIPTION,
        plane.url,
        authentication_policy=PlainBearer(),
        polling_interval=0.1,
        api_version=version,
    )
    with client:
        server = client.servers.begin_create_or_update(GROUP, "eu1", server_body(targets)).result()
        assert server.state == "Ready"
        assert [s.name for s in client.servers.list()] == ["eu1"]
        assert list(client.databases.list_by_server(GROUP, "eu1")) == []


def test_errors_reach_the_client_parsed_with_every_field(plane, targets):
    client = SqlManagementClient(
        Credential(),
        SUBSCRIPTION,
        plane.url,
        authentication_policy=PlainBearer(),
        polling_interval=0.1,
    )
    with client:
        body = server_body(targets, maxConnections=0)
        body["properties"]["endpoint"]["host"] = "169.254.169.254"
        with pytest.raises(HttpResponseError) as refused:
            client.servers.begin_create_or_update(GROUP, "eu1", body)
        assert refused.value.status_code == 400
        details = {detail.target for detail in refused.value.error.details}
        assert details == {"properties.endpoint.host", "properties.maxConnections"}

        wrong = server_body(targets, administratorLoginPassword="wrong password")
        with pytest.raises(HttpResponseError) as failed:
            client.servers.begin_create_or_update(GROUP, "eu1", wrong).result()
        assert failed.value.error.code == "TargetAuthenticationFailed"


async def test_the_aio_client_goes_through_servers_and_databases(plane, targets):
    client = AsyncSqlManagementClient(
        Credential(),
        SUBSCRIPTION,
        plane.url,
        authentication_policy=PlainBearer(),
        polling_interval=0.1,
    )
    async with client:
        poller = await client.servers.begin_create_or_update(GROUP, "eu2", server_body(targets))
        assert (await poller.result()).state == "Ready"
        poller = await client.databases.begin_create_or_update(
            GROUP, "eu2", "d1", {"location": "westeurope"}
        )
        assert (await poller.result()).status == "Online"
        assert [d.name async for d in client.databases.list_by_server(GROUP, "eu2")] == ["d1"]
        poller = await client.databases.begin_update(GROUP, "eu2", "d1", {"tags": {"x": "y"}})
        assert (await poller.result()).tags == {"x": "y"}
        got = await client.databases.get(GROUP, "eu2", "D1")
        assert got.id.endswith("/servers/eu2/databases/d1")
        for poller in (
            await client.databases.begin_delete(GROUP, "eu2", "d1"),
            await client.servers.begin_delete(GROUP, "eu2"),
        ):
            await poller.result()
        with pytest.raises(ResourceNotFoundError):
            await client.servers.get(GROUP, "eu2")


def test_over_tls_the_sdk_needs_no_work_around(settings, targets, tmp_path):
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    secure = replace(settings, tls_cert=tmp_path / "cert.pem", tls_key=tmp_path / "key.pem")

    with serve_in_thread(secure) as running:
        import ssl

        context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        with running.client(verify=context) as client:
            client.put(f"/subscriptions/{SUBSCRIPTION}", json={}).raise_for_status()
            group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}"
            client.put(group, json={"location": "westeurope"}).raise_for_status()
        sdk = SqlManagementClient(
            Credential(),
            SUBSCRIPTION,
            running.url,
            connection_verify=str(tmp_path / "ca.pem"),
            polling_interval=0.1,
        )
        with sdk:
            assert (
                sdk.servers.begin_create_or_update(GROUP, "eu3", server_body(targets))
                .result()
                .state
                == "Ready"
            )
            sdk.servers.begin_delete(GROUP, "eu3").result()
