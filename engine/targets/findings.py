"""What is wrong at a target or with a login: which check failed, why, what to do, and the missing GRANTs."""

import msgspec

from muster.core.connect_errors import identifier
from muster.core.errors import Fault

WRONG_PASSWORD = "28P01"  # noqa: S105 - an SQLSTATE
MAX_MESSAGE_LENGTH = 1000  # characters of a server's message
UP = "Is the server up, and are host and port of its endpoint right? POST …/check on the server asks it."
CREDENTIAL = "PUT the credential with the right user name and password, or reference."
# By code of a failure to connect: the check that failed, and what to do.
FAILURES = {
    "ServerDisabled": ("directory", "Enable the server, or exclude it from the group."),
    "TargetNotAllowed": ("egress", "The operator opens an address with MUSTER_TARGET_ALLOW."),
    "TargetUnreachable": ("connect", UP),
    "TargetTimeout": ("connect", UP),
    "TargetTlsError": (
        "tls",
        "Set endpoint.caCertificate of the server to the CA of its certificate; a server without TLS needs"
        " endpoint.sslMode disable.",
    ),
    "ClientKeyUnreadable": ("tls", "PUT the server with its endpoint.clientKey again."),
    "CertificateIsNoLogin": (
        "login",
        "Let the server's pg_hba.conf ask for the password as well: scram-sha-256 clientcert=verify-ca.",
    ),
    "CredentialMissing": (
        "credential",
        "Name a credential in the step or in the member of the group, a jobCredential on the server, or a"
        " defaultCredential on the account.",
    ),
    "CredentialNotForServer": ("credential", "Add the server to the servers of the credential."),
    "CredentialUnreadable": ("credential", CREDENTIAL),
    "TargetDatabaseNotFound": (
        "database",
        "Was the database dropped or renamed? Change the member of the group.",
    ),
    "ConnectNotGranted": (
        "database",
        "Run the statement as the owner of the database or as a superuser; a group that lists databases leaves this"
        " one out until then. If it should be no target, exclude it.",
    ),
    "NotChecked": ("time", "Ask again; name fewer targets, or ask when its server is less busy."),
}
WEAK_METHOD = (
    "The server asks for a weaker login than SCRAM: set password_encryption = 'scram-sha-256' there and give the"
    " role its password again, or let an Owner set authentication of the server."
)
NO_ENTRY = (
    "At the server: does an entry of pg_hba.conf accept the login from where Muster runs, and may the role log in?"
    " select * from pg_hba_file_rules shows the entries."
)
WRONG_LOGIN = f"{CREDENTIAL} If the role does not exist, create it at the server."
OF_A_SERVER = frozenset(  # the same for all of its databases
    {
        "ServerDisabled", "TargetNotAllowed", "TargetUnreachable", "TargetTimeout", "TargetTlsError",
        "ClientKeyUnreadable",
    }
)  # fmt: skip
OF_A_LOGIN = frozenset({"CredentialNotForServer", "CredentialUnreadable", "CertificateIsNoLogin"})


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    check: str
    code: str
    message: str
    advice: str
    grants: tuple[str, ...] = ()  # statements, one for each missing right


def failure(fault: Fault, database: str | None = None, username: str | None = None) -> Finding:
    """A target that could not be connected to."""
    check, advice = FAILURES.get(fault.code, ("connect", "Read the message."))
    grants: tuple[str, ...] = ()
    if fault.code == "TargetAuthenticationFailed":
        check, advice = "login", _login_advice(fault)
    if fault.code == "ConnectNotGranted" and database and username:
        grants = (grant("CONNECT ON DATABASE", database, username),)
    return Finding(
        check=check,
        code=fault.code,
        message=fault.message[:MAX_MESSAGE_LENGTH],
        advice=advice,
        grants=grants,
    )


def of_whole_server(fault: Fault) -> bool:
    return fault.code in OF_A_SERVER


def of_whole_login(fault: Fault) -> bool:
    """A login that the server refused is not tried at its other databases: servers lock accounts after some tries."""
    return fault.code in OF_A_LOGIN or (
        fault.code == "TargetAuthenticationFailed" and fault.sqlstate in {WRONG_PASSWORD, None}
    )


def grant(right: str, name: str, role: str) -> str:
    return f"GRANT {right} {identifier(name)} TO {identifier(role)};"


def _login_advice(fault: Fault) -> str:
    if fault.sqlstate is None:
        return WEAK_METHOD
    return WRONG_LOGIN if fault.sqlstate == WRONG_PASSWORD else NO_ENTRY
