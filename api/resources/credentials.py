"""Credentials of a job account: the logins that jobs use at targets."""

from api.resource import ResourceType, Sync
from api.resources.accounts import ACCOUNTS
from api.resources.examinations import TEST
from api.resources.execution_parts import NAME
from api.versions import SQL
from workflows import credentials
from workflows.model.credential import CredentialProperties

CREDENTIALS = ResourceType(
    name="credentials",
    namespace="Microsoft.Sql",
    title="JobCredentials",
    singular="job credential",
    parameter="credentialName",
    versions=SQL,
    parent=ACCOUNTS,
    properties=CredentialProperties,
    observed={"lapsedServers": {"type": "array", "items": {"type": "string"}}},
    pattern=NAME,
    name_example="fleet-login",
    example={"properties": {"username": "job_runner", "password": "correct horse battery"}},
    put=Sync(credentials.put),
    get=Sync(credentials.FAMILY.get),
    delete=Sync(credentials.FAMILY.delete),
    list=Sync(credentials.FAMILY.list_page),
    actions={"test": TEST},
)
