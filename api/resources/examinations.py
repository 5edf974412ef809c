"""Whether the targets of a group can be used, and where a credential can log in."""

from typing import Any

from api.resource import Action
from workflows import engine_requests, examinations
from workflows.model.examination import Doctor, LoginTest

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
OUTCOME: dict[str, Any] = {
    "username": TEXT,
    "serverVersion": {"type": "integer"},
    "tls": {"type": "object", "properties": {"mode": TEXT, "version": TEXT}},
    "ok": {"type": "boolean"},
    "check": TEXT,
    "code": TEXT,
    "message": TEXT,
    "advice": TEXT,
    "grants": TEXTS,
}


def _answer(names: dict[str, Any]) -> dict[str, Any]:
    row = {
        "type": "object",
        "required": ["serverName", "ok"],
        "properties": {**names, **OUTCOME},
    }
    return {
        "type": "object",
        "required": ["value"],
        "properties": {
            "value": {"type": "array", "items": row},
            "count": {"type": "integer"},
            "next": TEXT,
        },
    }


DOCTOR = Action(
    run=examinations.doctor,
    title="Doctor",
    takes=Doctor,
    waits=engine_requests.PATIENCE,
    gives=_answer(
        {
            "serverName": TEXT,
            "databaseName": TEXT,
            "schemaName": TEXT,
            "credential": TEXT,
            "steps": TEXTS,
        }
    ),
    example={},
    answer={
        "count": 2,
        "value": [
            {
                "serverName": "eu1",
                "databaseName": "tenant_1",
                "credential": "fleet-login",
                "username": "job_runner",
                "steps": ["nightly/analyze"],
                "serverVersion": 170000,
                "tls": {"mode": "verify-full", "version": "TLSv1.3"},
                "ok": True,
            },
            {
                "serverName": "eu1",
                "databaseName": "tenant_2",
                "credential": "fleet-login",
                "username": "job_runner",
                "steps": ["nightly/analyze"],
                "ok": False,
                "check": "database",
                "code": "ConnectNotGranted",
                "message": "The login 'job_runner' may not connect to 'tenant_2' on db.example.org. "
                'Run: GRANT CONNECT ON DATABASE "tenant_2" TO "job_runner";',
                "advice": "Run the statement as the owner of the database or as a superuser; a group that lists"
                " databases leaves this one out until then. If it should be no target, exclude it.",
                "grants": ['GRANT CONNECT ON DATABASE "tenant_2" TO "job_runner";'],
            },
        ],
    },
)
TEST = Action(
    run=examinations.test,
    title="Test",
    takes=LoginTest,
    waits=engine_requests.PATIENCE,
    gives=_answer({"serverName": TEXT, "databaseName": TEXT}),
    example={"servers": ["eu1"], "databaseName": "tenant_1"},
    answer={
        "value": [
            {
                "serverName": "eu1",
                "databaseName": "tenant_1",
                "username": "job_runner",
                "ok": False,
                "check": "login",
                "code": "TargetAuthenticationFailed",
                "message": "The server db.example.org did not accept the login 'job_runner': the password is wrong,"
                " or there is no such role.",
                "advice": "PUT the credential with the right user name and password, or reference. If the role does"
                " not exist, create it at the server.",
                "grants": [],
            }
        ]
    },
)
