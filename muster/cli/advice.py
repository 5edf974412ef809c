"""What to do about a cause: a command or statement to type, and a sentence where that is not enough."""

import re
import shlex
from dataclasses import dataclass
from typing import Any

from muster.cli import runs
from muster.cli.known import Lookup, Names
from muster.cli.runs import Run

LOGIN = "muster credential set {credential} --username {user}"
SERVER = "muster server add {server} --replace --host HOST --port PORT"
GROUP = "muster group resolve {group}"
PLACEHOLDER = re.compile(r"\{(group|server|credential|user|role)\}")
NAMED_CREDENTIAL = re.compile(r"\bcredential '([^']+)'")
REFUSED = re.compile(r"did not accept the login '([^']+)'")
CONNECT = re.compile(r'GRANT CONNECT ON DATABASE "(?:[^"]|"")+" TO "(?:[^"]|"")+";')
NOT_GRANTED = "ConnectNotGranted"
# A server's own words: only what is safe to paste is taken from them.
DENIED = re.compile(
    r"permission denied for (?P<kind>table|view|materialized view|foreign table|sequence|schema|"
    r"function|procedure|database|type|language) (?P<name>[\w.]+)",
    re.ASCII,
)
RELATIONS = {"view", "materialized view", "foreign table"}  # to GRANT they are tables too
WRITES = "25006"
UNKNOWN = "OutcomeUnknown"
AFTER_COMMIT = ("VerifyFailed", "VerifyNotAnswered", "OutputFailed")


@dataclass(frozen=True)
class Fix:
    command: str
    hint: str = ""


CREDENTIAL_MISSING = Fix(LOGIN)
UNNAMED_CREDENTIAL = Fix(  # of a query without a group
    "muster exec --credential NAME …",
    "Or set one for every target that no group, step or server names one for: muster account update ACCOUNT "
    "--default-credential NAME. muster credential list shows those that exist.",
)
UNREACHABLE = Fix(SERVER, "Is the server up, and are its host and port right? muster server list")
UNRESOLVED = Fix(GROUP)
FIXES = {  # SQLSTATE, code of a failure to connect, or reason; everything else is looked at first
    "28P01": Fix(LOGIN),
    "28000": Fix(
        "select * from pg_hba_file_rules",
        "At the server: does an entry accept the login from where Muster runs, does it want a client "
        "certificate, and may the role log in? "
        "The server's message is in the attempt.",
    ),
    "TargetAuthenticationFailed": Fix(
        LOGIN, "Is the password right, and may the role log in and connect to the database there?"
    ),
    "ClientKeyUnreadable": Fix(
        SERVER + " --client-certificate-file FILE --client-key-file FILE",
        "The key is sealed again for the account when it is given again.",
    ),
    "CredentialMissing": CREDENTIAL_MISSING,
    "CredentialNotForServer": Fix(
        LOGIN + " --server NAME",
        "The credential lists the servers that it is for: name all of them, this one as well.",
    ),
    "CredentialUnreadable": Fix(LOGIN),
    "TargetTlsError": Fix(
        SERVER + " --ssl-mode MODE",
        "A server without TLS needs --ssl-mode disable, one with a certificate of its own --ca-file "
        "FILE or --ssl-mode require.",
    ),
    "TargetUnreachable": UNREACHABLE,
    "TargetTimeout": UNREACHABLE,
    "ServerUnreachable": UNREACHABLE,
    "TargetDatabaseNotFound": Fix(
        GROUP, "Was the database dropped or renamed? What its server has is resolved at each run."
    ),
    "NoTargets": UNRESOLVED,
    "TargetsUnresolved": UNRESOLVED,
    "HostLost": Fix(
        "",
        "Its host was lost and nothing was committed: start it again. --retry-attempts makes Muster try "
        "again.",
    ),
    UNKNOWN: Fix(
        "",
        "It may have committed or not: look in the target for what the script does, and start it again "
        "only if that is missing. --guard run lets the same run try it again safely (--guard job: any run), "
        "--idempotent lets it be repeated, --verify SQL asks whether its effect is there.",
    ),
    "VerifyFailed": Fix(
        "",
        "The script committed and its effect is not there: ask the verify query in the target. Correct the "
        "script, or the query, and start the job again.",
    ),
    "VerifyNotAnswered": Fix(
        "",
        "The script committed and is not repeated: ask the verify query in the target. A larger "
        "verify.timeoutSeconds or --retry-attempts gives it more time.",
    ),
    "OutputFailed": Fix(
        "",
        "The message says why the rows were not written, and whether the script committed. Correct the table, its "
        "rights or its server, and run the job again for these targets.",
    ),
}


def of(run: Run, each: dict[str, Any], lookup: Lookup | None = None) -> Fix | None:
    """What is known to fix it; without a command where it has to be looked at first."""
    fix = _known(run, each)
    if fix is None or not PLACEHOLDER.search(fix.command):
        return fix
    if lookup and not lookup.has_group:  # the targets were named without a group
        if fix is CREDENTIAL_MISSING:
            return UNNAMED_CREDENTIAL
        if fix.command == GROUP:
            return Fix("", fix.hint)
    names = lookup.of(each) if lookup else Names()
    user = NAMED_CREDENTIAL.search(each.get("message") or "")
    login = REFUSED.search(each.get("message") or "")
    match = {
        "group": names.group,
        "server": _server(each) or "NAME",
        "credential": user[1] if user else names.credential,
        "user": login[1] if login else names.user,
    }
    command = PLACEHOLDER.sub(
        lambda place: names.role if place[1] == "role" else shlex.quote(match[place[1]]),
        fix.command,
    )
    return Fix(command, fix.hint)


def _known(run: Run, each: dict[str, Any]) -> Fix | None:
    if (reason := each.get("reason")) in {UNKNOWN, *AFTER_COMMIT}:
        return FIXES[str(reason)]  # however it came to that
    state = each.get("sqlstate") or ""
    if NOT_GRANTED in (each.get("fingerprint"), each.get("reason")):
        return _connecting(each.get("message") or "")
    if state == "42501":
        return _granted(each.get("message") or "")
    if state == WRITES and run.job == "adhoc":
        return Fix("muster exec --write …", "exec reads only; with --write it commits.")
    codes = (state, each.get("fingerprint") or "", each.get("reason") or "")
    return next((FIXES[code] for code in codes if code in FIXES), None)


def _connecting(message: str) -> Fix:
    match = CONNECT.search(message)
    return Fix(
        match[0] if match else "grant connect on database DATABASE to {role}",
        "As the owner of the database; the message of each target has its own statement.",
    )


def _granted(message: str) -> Fix:
    """A right that is missing is granted in the target, by the owner of what it is about."""
    hint = "Grant it in the targets, as the owner, to the role that logs in; or use another one."
    if match := DENIED.match(message):
        kind = "table" if match["kind"] in RELATIONS else match["kind"]
        return Fix(f"grant … on {kind} {match['name']} to {{role}}", hint)
    owned = message.startswith("must be owner of ")
    return Fix("grant OWNER to {role}" if owned else "grant … to {role}", hint)


def _server(each: dict[str, Any]) -> str:
    targets = each.get("targets") or [{}]
    return runs.name(targets[0]).partition("/")[0]
