"""Resource groups, servers, their databases and elastic pools."""

from muster_terraform.api import Api
from muster_terraform.attributes import (
    BOOL,
    NUMBER,
    STRING,
    STRINGS,
    TEXTS,
    Document,
    Nested,
    field,
    prop,
    secret,
    shown,
    version_of,
)
from muster_terraform.types import TAGS, ResourceType, location

ENDPOINT = Nested(
    (
        field("host", about="A name or an address."),
        field("hosts", STRINGS, about="Several hosts in the place of `host`."),
        field("port", NUMBER),
        field("ssl_mode", choices=("disable", "require", "verify-full")),
        field("ca_certificate", about="PEM; the CA that signed the server's certificate."),
        field("client_certificate", about="PEM; shown to the server."),
        secret(
            "client_key_wo",
            "client_key_wo_version",
            make=field,
            at="clientKey",
            about="PEM; the private key of `client_certificate`.",
        ),
        version_of("client_key_wo_version", "client_key_wo"),
        field("maintenance_database"),
        field("pooling", choices=("none", "session", "transaction")),
        field("direct_host", about="Beside a pooler: the host of the server itself."),
        field(
            "target_session_attrs",
            choices=("any", "prefer-standby", "primary", "read-only", "read-write", "standby"),
        ),
        field(
            "authentication",
            choices=("md5", "password", "scram-sha-256"),
            about="The weakest way to log in that is accepted.",
        ),
    )
)
LABELS = prop("labels", TEXTS, blank={}, about="For label selectors of target groups.")
DELETION_POLICY = prop(
    "deletion_policy",
    choices=("Drop", "Retain"),
    about="What destroy does with the database itself: keep it, or drop it.",
)

RESOURCE_GROUP = ResourceType(
    name="resource_group",
    collection="resourceGroups",
    parent="subscription_id",
    attributes=(location("local"), TAGS),
    about="A resource group: what servers are created in. Destroying it destroys what is in it.",
)


class ServerType(ResourceType):
    def fetch(self, api: Api, id: str) -> Document | None:
        """The endpoint of an embedded server is Muster's choice: nobody configures it."""
        server = api.find(id)
        if server:
            properties = server["properties"]
            properties["port"] = (properties.get("endpoint") or {}).get("port")
            if properties.get("embedded"):
                properties.pop("endpoint", None)
        return server


SERVER = ServerType(
    name="server",
    collection="providers/Microsoft.Sql/servers",
    parent="resource_group_id",
    attributes=(
        location("local"),
        TAGS,
        prop(
            "endpoint",
            ENDPOINT,
            about="Where the server is. Without it Muster creates an embedded one.",
        ),
        prop("administrator_login"),
        secret(
            "administrator_login_password_wo",
            "administrator_login_password_wo_version",
            at="administratorLoginPassword",
            about="Its password.",
        ),
        version_of("administrator_login_password_wo_version", "administrator_login_password_wo"),
        prop(
            "max_connections",
            NUMBER,
            computed=True,
            about="Sessions of Muster on it at once; default: a share of its max_connections.",
        ),
        prop("connections_per_second", NUMBER, about="New sessions per second."),
        prop("slots_per_database", NUMBER, about="Tasks at once in one of its databases."),
        LABELS,
        prop(
            "deletion_policy",
            choices=("Drop", "Retain"),
            about="Of an embedded server: what destroy does with its data.",
        ),
        prop(
            "job_credential", about="Name of the credential for jobs where nothing else names one."
        ),
        prop("disabled", BOOL, about="true: no job connects to it."),
        shown("fully_qualified_domain_name"),
        shown("port", NUMBER),
        shown("server_version"),
        shown("embedded", BOOL, settled=True),
    ),
    about="A PostgreSQL server: one of yours by its endpoint, or an embedded one.",
)
DATABASE = ResourceType(
    name="database",
    collection="databases",
    parent="server_id",
    attributes=(
        location(None),
        TAGS,
        prop("elastic_pool_id", about="Id of the elastic pool that it is a member of."),
        LABELS,
        DELETION_POLICY,
        shown("database_id", settled=True),
        shown("adopted", BOOL, settled=True, about="true: it was there before."),
    ),
    about="A database on a server. One that is there already is adopted.",
)
ELASTIC_POOL = ResourceType(
    name="elastic_pool",
    collection="elasticPools",
    parent="server_id",
    attributes=(
        location(None),
        TAGS,
        prop("databases", STRINGS, about="Names of its databases."),
        prop("database_pattern", STRING, about="Its databases by a pattern."),
        prop("max_connections", NUMBER, about="Sessions in its databases at once, together."),
        prop("slots_per_database", NUMBER, about="Tasks at once in one of its databases."),
        LABELS,
    ),
    about="Databases of one server that share a budget of connections.",
)
TYPES = (RESOURCE_GROUP, SERVER, DATABASE, ELASTIC_POOL)
