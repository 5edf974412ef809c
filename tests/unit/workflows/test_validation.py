import sys
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import pytest
import trustme

from muster.core.errors import InvalidRequest
from muster.core.ids import ResourceId
from muster.core.settings import Secret, Settings
from tests.support.plane import a_call
from workflows.audit import parse_filter
from workflows.authorization import covered
from workflows.resource_kind import Draft
from workflows.store.resources import Content
from workflows.validation import common
from workflows.validation.database import database, pool
from workflows.validation.server import moved, server, unusable

REMOTE = Settings(database_url=Secret("postgres://x/y"))
EMBEDDED = Settings(database_url=Secret("postgres://x/y"), data_dir=Path("/nowhere"))
SERVER = ResourceId.parse("/subscriptions/s/resourceGroups/g/providers/Microsoft.Sql/servers/a")
DATABASE = SERVER.child(("databases", "d"))


def draft(id=SERVER, secrets=None, kept=(), **properties):
    return Draft(
        id, Content(location="local", properties=properties), secrets or {}, frozenset(kept)
    )


def targets(errors):
    return {error.target for error in errors}


def test_limits_of_a_number_are_written_without_an_exponent():
    (error,) = common.within("properties.timeoutSeconds", 0, 1, 2**31 - 1)
    assert error.message == "Must be between 1 and 2147483647; it is 0."


def test_which_characters_are_invisible():
    categories = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    characters = [chr(code) for code in range(sys.maxunicode + 1)]
    invisible = {each for each in characters if unicodedata.category(each) in categories}

    assert {each for each in characters if common.invisible(f"a{each}b")} == invisible


@pytest.mark.parametrize(
    ("query", "value"),
    [({}, False), ({"dropSchema": "True"}, True), ({"dropSchema": "false"}, False), ({"force": "true"}, False)],
)  # fmt: skip
def test_a_query_parameter_is_true_or_false(query, value):
    assert a_call(query=query).flag("dropSchema") is value


@pytest.mark.parametrize(
    ("scopes", "is_covered"),
    [
        ({"/"}, True),
        ({"/subscriptions/s"}, True),
        ({"/subscriptions/s/resourcegroups/g"}, True),
        ({"/subscriptions/s/resourcegroups/g/x", "/subscriptions/t"}, False),
        ({"/subscriptions/s/resourcegroup"}, False),
        (set(), False),
    ],
)
def test_a_scope_covers_what_is_below_it(scopes, is_covered):
    assert covered("/subscriptions/s/resourcegroups/g", scopes) is is_covered


@pytest.mark.parametrize(
    ("type", "good", "bad"),
    [
        (
            "Microsoft.Sql/servers",
            ["a", "a-b", "0" * 63],
            ["", "-a", "a-", "A", "a_b", "0" * 64, "con", "sеrver", "a\u200bb", "🐘"],
        ),
        (
            "Microsoft.Resources/resourceGroups",
            ["rg", "R_(1).x", "a" * 90],
            ["", ".", "x.", "a" * 91, "a/b", "é", "con", "a\u202eb"],
        ),
        (
            "Microsoft.Sql/servers/databases",
            ["d", 'we"ird; drop table x;--', "$$ %I", "Ünïcode", "🐘", "a" * 63],
            ["", "a" * 64, "é" * 32, "a\x00b", "a\u202eb", "a\u200bb", " a", "a "],
        ),
        (
            "Microsoft.Sql/servers/elasticPools",
            ["pool 1", "a" * 128],
            ["", "a" * 129, "a%b", "x.", "x ", "nul", "é"],
        ),
    ],
)
def test_names_follow_the_rule_of_their_type(type, good, bad):
    assert [text for text in good if common.name(type, text)] == []
    assert [text for text in bad if not common.name(type, text)] == []


def test_every_wrong_field_is_reported_at_once():
    wrong = draft(
        administratorLogin="pg_x",
        secrets={"administratorLoginPassword": "short"},
        maxConnections=0,
        labels={"": "x"},
    )

    errors = server(wrong, None, EMBEDDED)

    assert targets(errors) == {
        "properties.administratorLogin",
        "properties.administratorLoginPassword",
        "properties.maxConnections",
        "properties.labels.",
    }


def test_a_server_without_endpoint_needs_embedded_mode():
    plain = draft(administratorLogin="ada", secrets={"administratorLoginPassword": "long enough"})

    assert server(plain, None, EMBEDDED) == []
    assert targets(server(plain, None, REMOTE)) == {"properties.endpoint"}


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "::1",
        "0.0.0.0",
        "2130706433",
        "0x7f.1",
        "127.1",
        "::ffff:127.0.0.1",
        "169.254.169.254",
        "fd00:ec2::254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
        "/var/run/postgresql",
        "@abstract",
        "h1,h2",
        "h sslmode=disable",
        "h?options=-cx",
        "",
    ],
)
def test_a_host_that_is_no_place_for_a_target_is_refused(host):
    errors = server(draft(endpoint={"host": host}), None, REMOTE)

    assert errors
    assert targets(errors) <= {"properties.endpoint.host", "properties.endpoint"}
    assert host == "" or {error.code for error in errors} == {"InvalidTargetServer"}


@pytest.mark.parametrize("port", [22, 6379 - 6379, 65536, -1])
def test_a_port_outside_the_allowed_ones_is_refused(port):
    assert server(draft(endpoint={"host": "db.example.org", "port": port}), None, REMOTE)


def test_a_registered_server_needs_no_administrator():
    assert server(draft(endpoint={"host": "db.example.org"}), None, REMOTE) == []


def test_an_elastic_pool_of_another_server_is_refused():
    other = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Sql/servers/b/elasticPools/p"
    mine = f"{SERVER.text.upper()}/ELASTICPOOLS/p"

    assert targets(database(draft(DATABASE, elasticPoolId=other), None, REMOTE)) == {
        "properties.elasticPoolId"
    }
    assert database(draft(DATABASE, elasticPoolId=mine), None, REMOTE) == []


def test_the_servers_own_databases_can_not_be_resources():
    reserved = SERVER.child(("databases", "Postgres"))

    assert {e.code for e in database(draft(reserved), None, REMOTE)} == {
        "CannotUseReservedDatabaseName"
    }


def test_a_pool_lists_only_names_that_can_exist():
    errors = pool(draft(databases=["ok", "x" * 64], databasePattern=""), None, REMOTE)

    assert targets(errors) == {"properties.databases[1]", "properties.databasePattern"}


def test_tags_that_differ_in_case_only_are_one_tag():
    assert targets(common.tags({"Env": "a", "env": "b"})) == {"tags.env"}


def test_a_location_is_normalised_and_never_changes():
    assert common.normal_location("West Europe") == "westeurope"
    assert [e.code for e in common.location("local", "westeurope", REMOTE)] == [
        "InvalidResourceLocation"
    ]


def test_an_audit_filter_is_read_clause_by_clause():
    wanted = parse_filter(
        "eventTimestamp ge '2026-01-01T00:00:00Z' and caller eq 'ada' AND status eq 'Denied'"
    )

    assert wanted["caller"] == "ada"
    assert wanted["status"] == "Denied"
    assert wanted["from"].year == 2026


@pytest.mark.parametrize(
    "text",
    [
        "caller",
        "caller ne 'x'",
        "eventTimestamp ge 'soon'",
        "eventTimestamp ge '2026-01-01'",
        "x eq '1'",
        "(a+)+$ eq 'x'",
    ],
)
def test_a_filter_that_is_not_understood_is_refused_with_the_known_fields(text):
    with pytest.raises(InvalidRequest):
        parse_filter(text)


def test_the_existing_password_of_a_registered_server_may_be_simple():
    given = {"administratorLogin": "ada", "secrets": {"administratorLoginPassword": "short"}}

    registered = server(draft(endpoint={"host": "db.example.org"}, **given), None, REMOTE)
    made = server(draft(**given), None, EMBEDDED)

    assert registered == []
    assert [(e.target, e.code) for e in made] == [
        ("properties.administratorLoginPassword", "PasswordNotComplex")
    ]


@pytest.mark.parametrize("password", ["x" * 10_001, "a\0b"])
def test_what_can_not_be_a_password_is_refused_for_a_registered_server(password):
    given = draft(
        endpoint={"host": "db.example.org"},
        administratorLogin="ada",
        secrets={"administratorLoginPassword": password},
    )

    assert targets(server(given, None, REMOTE)) == {"properties.administratorLoginPassword"}


HARMLESS = {
    "createMode": "default", "collation": "SQL_Latin1_General_CP1_CI_AS", "isLedgerOn": False,
    "catalogCollation": "DATABASE_DEFAULT", "zoneRedundant": True, "licenseType": "BasePrice",
    "sourceDatabaseId": "", "maxSizeBytes": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("createMode", mode) for mode in ("Copy", "Restore", "Secondary", "PointInTimeRestore")),
        ("sourceDatabaseId", f"{DATABASE}x"),
        ("restorePointInTime", "2026-01-01T00:00:00Z"),
        ("collation", "Latin1_General_BIN2"),
        ("sampleName", "AdventureWorksLT"),
        ("isLedgerOn", True),
        ("encryptionProtector", "https://vault.example.org/keys/k"),
    ],
)
def test_what_muster_can_not_do_for_a_database_is_refused_by_name(name, value):
    errors = database(draft(DATABASE, **(HARMLESS | {name: value})), None, REMOTE)

    assert [(e.target, e.code) for e in errors] == [(f"properties.{name}", "PropertyNotSupported")]


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"publicNetworkAccess": "Enabled", "minimalTlsVersion": "1.2", "version": "12.0"}, None),
        ({"restrictOutboundNetworkAccess": "Disabled", "minimalTlsVersion": "None"}, None),
        ({"publicNetworkAccess": "Disabled"}, "publicNetworkAccess"),
        ({"publicNetworkAccess": "SecuredByPerimeter"}, "publicNetworkAccess"),
        ({"restrictOutboundNetworkAccess": "Enabled"}, "restrictOutboundNetworkAccess"),
        ({"minimalTlsVersion": "1.3"}, "minimalTlsVersion"),
        ({"createMode": "Restore"}, "createMode"),
        ({"retentionDays": 7}, "retentionDays"),
        ({"keyId": "https://vault.example.org/keys/k"}, "keyId"),
    ],
)
def test_what_muster_can_not_do_for_a_server_is_refused_by_name(given, refused):
    errors = server(draft(endpoint={"host": "db.example.org"}, **given), None, REMOTE)

    expected = [(f"properties.{refused}", "PropertyNotSupported")] if refused else []
    assert [(e.target, e.code) for e in errors] == expected


def test_a_server_without_tls_promises_no_version_of_it():
    plain = {"host": "db.example.org", "sslMode": "disable"}

    assert targets(server(draft(endpoint=plain, minimalTlsVersion="1.2"), None, REMOTE)) == {
        "properties.minimalTlsVersion"
    }
    assert server(draft(endpoint=plain, minimalTlsVersion="None"), None, REMOTE) == []


def an_old(**properties):
    return SimpleNamespace(properties=properties)


CERTIFIED = {"host": "db.example.org", "clientCertificate": "PEM"}


@pytest.mark.parametrize(
    ("was", "now", "fields"),
    [
        ({"host": "a.b"}, {"host": "a.b", "port": 5432, "sslMode": "verify-full"}, []),
        ({"host": "a.b"}, {"hosts": ["a.b"]}, []),
        ({"host": "a.b"}, {"host": "a.b", "maintenanceDatabase": "m", "pooling": "session"}, []),
        ({"host": "a.b"}, {"host": "a.c"}, ["host"]),
        ({"hosts": ["a.b", "a.c"]}, {"hosts": ["a.c", "a.b"]}, ["host"]),
        ({"host": "a.b"}, {"host": "a.b", "caCertificate": "x"}, ["caCertificate"]),
        ({"host": "a.b"}, {"host": "a.b", "port": 5433, "sslMode": "require"}, ["port", "sslMode"]),
        ({"host": "a.b"}, {"host": "a.b", "directHost": "a.c"}, ["directHost"]),
    ],
)
def test_an_endpoint_is_another_when_another_server_may_answer(was, now, fields):
    assert moved(draft(endpoint=now), an_old(endpoint=was)) == fields


def test_a_client_key_was_given_for_the_old_endpoint():
    old = an_old(endpoint=CERTIFIED)
    now = draft(endpoint=CERTIFIED | {"host": "other.example.org"})

    (error,) = server(now, old, REMOTE)

    assert (error.target, "give it again" in error.message) == (
        "properties.endpoint.clientKey",
        True,
    )
    assert unusable(now, old) == {"administratorLoginPassword", "endpoint.clientKey"}


def test_a_weaker_login_and_a_ca_of_the_same_resource_are_refused_naming_both():
    endpoint = {"host": "a.b", "authentication": "password", "caCertificate": a_certificate()}

    (error,) = server(draft(endpoint=endpoint), None, REMOTE)

    assert error.target == "properties.endpoint.authentication"
    assert "authentication password and caCertificate" in error.message
    assert (
        server(draft(endpoint=endpoint | {"authentication": "scram-sha-256"}), None, REMOTE) == []
    )


def a_certificate():
    return trustme.CA().cert_pem.bytes().decode()
