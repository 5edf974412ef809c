"""Every operation of the document × who asks; an operation without its cells fails.

Cells, beside `none` and `expired` (always 401) and `owner` (always allowed):
reader at the tenant · Contributor of another group in the same subscription · Owner of another tenant
  allow  the request is judged on its merits
  deny   403 AuthorizationFailed, whether or not the thing exists, and an audit row says so
  part   a list above his group: allowed, and it shows nothing of the group that is not his
  own    a request at the tenant's root: he acts in his own tenant, and ours is neither shown nor changed
"""

import json
from typing import Any

from api import examples, openapi
from api.endpoint import Endpoint, table
from api.resources import RESOURCES
from muster.core.settings import Settings
from tests.support import principals
from tests.support import arm
from tests.support.principals import PrincipalsApi, uuid_of
from tests.support.oidc import TENANT

DOCUMENT: dict[str, Any] = json.loads(openapi.rendered())
ENDPOINTS = {each.operation_id: each for each in table(RESOURCES)}

CELLS = {
    "Subscriptions_List": "allow part own",
    "Subscriptions_CreateOrUpdate": "deny deny deny",
    "Subscriptions_Get": "allow deny deny",
    "ResourceGroups_List": "allow part deny",
    "ResourceGroups_CreateOrUpdate": "deny deny deny",
    "ResourceGroups_Update": "deny deny deny",
    "ResourceGroups_Get": "allow deny deny",
    "ResourceGroups_CheckExistence": "allow deny deny",
    "ResourceGroups_Delete": "deny deny deny",
    "ResourceGroupOperations_GetStatus": "allow deny deny",
    "ResourceGroupOperations_GetResult": "allow deny deny",
    "Providers_List": "allow part deny",
    "Providers_Get": "allow deny deny",
    "Providers_Register": "deny deny deny",
    "Providers_Unregister": "deny deny deny",
    "Operations_List": "allow allow allow",
    "Servers_ListByResourceGroup": "allow deny deny",
    "Servers_CreateOrUpdate": "deny deny deny",
    "Servers_Update": "deny deny deny",
    "Servers_Get": "allow deny deny",
    "Servers_Delete": "deny deny deny",
    "Servers_Check": "deny deny deny",
    "Servers_Discover": "deny deny deny",
    "Servers_ListHistory": "allow deny deny",
    "Servers_CheckNameAvailability": "deny deny deny",
    "Servers_List": "allow part deny",
    "ServerOperations_GetStatus": "allow deny deny",
    "ServerOperations_GetResult": "allow deny deny",
    "Databases_ListByServer": "allow deny deny",
    "Databases_CreateOrUpdate": "deny deny deny",
    "Databases_Update": "deny deny deny",
    "Databases_Get": "allow deny deny",
    "Databases_Delete": "deny deny deny",
    "Databases_ListHistory": "allow deny deny",
    "DatabaseOperations_GetStatus": "allow deny deny",
    "DatabaseOperations_GetResult": "allow deny deny",
    "ElasticPools_ListByServer": "allow deny deny",
    "ElasticPools_CreateOrUpdate": "deny deny deny",
    "ElasticPools_Update": "deny deny deny",
    "ElasticPools_Get": "allow deny deny",
    "ElasticPools_Delete": "deny deny deny",
    "RoleDefinitions_ListAtTenant": "allow part own",
    "RoleDefinitions_GetAtTenant": "allow deny own",
    "RoleDefinitions_ListAtSubscription": "allow part deny",
    "RoleDefinitions_GetAtSubscription": "allow deny deny",
    "RoleDefinitions_ListAtResourceGroup": "allow deny deny",
    "RoleDefinitions_GetAtResourceGroup": "allow deny deny",
    "RoleDefinitions_ListAtServer": "allow deny deny",
    "RoleDefinitions_GetAtServer": "allow deny deny",
    "RoleDefinitions_ListAtDatabase": "allow deny deny",
    "RoleDefinitions_GetAtDatabase": "allow deny deny",
    "RoleDefinitions_ListAtElasticPool": "allow deny deny",
    "RoleDefinitions_GetAtElasticPool": "allow deny deny",
    "RoleAssignments_ListAtTenant": "allow part own",
    "RoleAssignments_CreateOrUpdateAtTenant": "deny deny own",
    "RoleAssignments_GetAtTenant": "allow deny own",
    "RoleAssignments_DeleteAtTenant": "deny deny own",
    "RoleAssignments_ListAtSubscription": "allow part deny",
    "RoleAssignments_CreateOrUpdateAtSubscription": "deny deny deny",
    "RoleAssignments_GetAtSubscription": "allow deny deny",
    "RoleAssignments_DeleteAtSubscription": "deny deny deny",
    "RoleAssignments_ListAtResourceGroup": "allow deny deny",
    "RoleAssignments_CreateOrUpdateAtResourceGroup": "deny deny deny",
    "RoleAssignments_GetAtResourceGroup": "allow deny deny",
    "RoleAssignments_DeleteAtResourceGroup": "deny deny deny",
    "RoleAssignments_ListAtServer": "allow deny deny",
    "RoleAssignments_CreateOrUpdateAtServer": "deny deny deny",
    "RoleAssignments_GetAtServer": "allow deny deny",
    "RoleAssignments_DeleteAtServer": "deny deny deny",
    "RoleAssignments_ListAtDatabase": "allow deny deny",
    "RoleAssignments_CreateOrUpdateAtDatabase": "deny deny deny",
    "RoleAssignments_GetAtDatabase": "allow deny deny",
    "RoleAssignments_DeleteAtDatabase": "deny deny deny",
    "RoleAssignments_ListAtElasticPool": "allow deny deny",
    "RoleAssignments_CreateOrUpdateAtElasticPool": "deny deny deny",
    "RoleAssignments_GetAtElasticPool": "allow deny deny",
    "RoleAssignments_DeleteAtElasticPool": "deny deny deny",
    "Locks_ListAtTenant": "allow part own",
    "Locks_CreateOrUpdateAtTenant": "deny deny own",
    "Locks_GetAtTenant": "allow deny own",
    "Locks_DeleteAtTenant": "deny deny own",
    "Locks_ListAtSubscription": "allow part deny",
    "Locks_CreateOrUpdateAtSubscription": "deny deny deny",
    "Locks_GetAtSubscription": "allow deny deny",
    "Locks_DeleteAtSubscription": "deny deny deny",
    "Locks_ListAtResourceGroup": "allow deny deny",
    "Locks_CreateOrUpdateAtResourceGroup": "deny deny deny",
    "Locks_GetAtResourceGroup": "allow deny deny",
    "Locks_DeleteAtResourceGroup": "deny deny deny",
    "Locks_ListAtServer": "allow deny deny",
    "Locks_CreateOrUpdateAtServer": "deny deny deny",
    "Locks_GetAtServer": "allow deny deny",
    "Locks_DeleteAtServer": "deny deny deny",
    "Locks_ListAtDatabase": "allow deny deny",
    "Locks_CreateOrUpdateAtDatabase": "deny deny deny",
    "Locks_GetAtDatabase": "allow deny deny",
    "Locks_DeleteAtDatabase": "deny deny deny",
    "Locks_ListAtElasticPool": "allow deny deny",
    "Locks_CreateOrUpdateAtElasticPool": "deny deny deny",
    "Locks_GetAtElasticPool": "allow deny deny",
    "Locks_DeleteAtElasticPool": "deny deny deny",
    "JobAgents_ListByServer": "allow deny deny",
    "JobAgents_CreateOrUpdate": "deny deny deny",
    "JobAgents_Update": "deny deny deny",
    "JobAgents_Get": "allow deny deny",
    "JobAgents_Delete": "deny deny deny",
    "JobAgents_AllowServer": "deny deny deny",
    "JobAgents_DisallowServer": "deny deny deny",
    "JobAgents_ListAllowedServers": "allow deny deny",
    "JobAgents_Acknowledge": "deny deny deny",
    "JobAgents_Pause": "deny deny deny",
    "JobAgents_Resume": "deny deny deny",
    "JobAgents_Doctor": "deny deny deny",
    "JobAgents_SealingKey": "deny deny deny",
    "JobAgents_ListHistory": "allow deny deny",
    "JobAgents_ListActivityLog": "allow deny deny",
    "JobAgentOperations_GetStatus": "allow deny deny",
    "JobAgentOperations_GetResult": "allow deny deny",
    "JobCredentials_ListByAgent": "allow deny deny",
    "JobCredentials_CreateOrUpdate": "deny deny deny",
    "JobCredentials_Get": "allow deny deny",
    "JobCredentials_Delete": "deny deny deny",
    "JobCredentials_Test": "deny deny deny",
    "JobTargetGroups_ListByAgent": "allow deny deny",
    "JobTargetGroups_CreateOrUpdate": "deny deny deny",
    "JobTargetGroups_Get": "allow deny deny",
    "JobTargetGroups_Delete": "deny deny deny",
    "Jobs_ListByAgent": "allow deny deny",
    "Jobs_CreateOrUpdate": "deny deny deny",
    "Jobs_Update": "deny deny deny",
    "Jobs_Get": "allow deny deny",
    "Jobs_Delete": "deny deny deny",
    "JobSteps_ListByJob": "allow deny deny",
    "JobSteps_CreateOrUpdate": "deny deny deny",
    "JobSteps_Update": "deny deny deny",
    "JobSteps_Get": "allow deny deny",
    "JobSteps_Delete": "deny deny deny",
    "JobWebhooks_ListByAgent": "allow deny deny",
    "JobWebhooks_CreateOrUpdate": "deny deny deny",
    "JobWebhooks_Get": "allow deny deny",
    "JobWebhooks_Delete": "deny deny deny",
    "JobWebhooks_Test": "deny deny deny",
    "JobWebhooks_Replay": "deny deny deny",
    "JobWebhooks_ListDeliveries": "allow deny deny",
    "JobExecutions_StreamEvents": "allow deny deny",
    "JobAgents_StreamEvents": "allow deny deny",
    "JobPrivateEndpoints_ListByAgent": "allow deny deny",
    "JobPrivateEndpoints_CreateOrUpdate": "deny deny deny",
    "JobPrivateEndpoints_Get": "allow deny deny",
    "JobPrivateEndpoints_Delete": "deny deny deny",
    "JobTargetGroups_Resolve": "deny deny deny",
    "JobTargetGroups_Doctor": "deny deny deny",
    "Jobs_GetSchedule": "allow deny deny",
    "Jobs_ReplaceSchedule": "deny deny deny",
    "JobExecutions_Create": "deny deny deny",
    "Jobs_Plan": "deny deny deny",
    "JobPlans_Get": "allow deny deny",
    "JobPlans_ListByJob": "allow deny deny",
    "Jobs_ListNextRuns": "allow deny deny",
    "JobVersions_ListByJob": "allow deny deny",
    "JobVersions_Get": "allow deny deny",
    "JobSteps_ListByVersion": "allow deny deny",
    "JobSteps_GetByVersion": "allow deny deny",
    "JobExecutions_ListByAgent": "allow deny deny",
    "JobAgents_ListTargetHistory": "allow deny deny",
    "JobExecutions_ListByJob": "allow deny deny",
    "JobExecutions_CreateOrUpdate": "deny deny deny",
    "JobExecutions_Get": "allow deny deny",
    "JobExecutions_Cancel": "deny deny deny",
    "JobExecutions_Rerun": "deny deny deny",
    "JobExecutions_Resume": "deny deny deny",
    "JobExecutions_Abort": "deny deny deny",
    "JobTargetExecutions_ListByJobExecution": "allow deny deny",
    "JobStepExecutions_ListByJobExecution": "allow deny deny",
    "JobStepExecutions_Get": "allow deny deny",
    "JobTargetExecutions_ListByStep": "allow deny deny",
    "JobTargetExecutions_Get": "allow deny deny",
    "JobAgents_Query": "deny deny deny",
    "JobExecutions_GetSummary": "allow deny deny",
    "JobExecutions_ListErrors": "allow deny deny",
    "JobExecutions_ListMessages": "allow deny deny",
    "JobExecutions_GetResults": "allow deny deny",
    "JobExecutions_ListCommandTags": "allow deny deny",
    "JobTargetAttempts_GetResults": "allow deny deny",
    "JobTargetAttempts_ListMessages": "allow deny deny",
    "JobStepExecutions_Cancel": "deny deny deny",
    "JobTargetExecutions_Cancel": "deny deny deny",
    "JobTargetExecutions_Retry": "deny deny deny",
    "JobTargetExecutions_GetWhy": "allow deny deny",
    "JobTargetAttempts_ListByTarget": "allow deny deny",
    "JobTargetAttempts_Get": "allow deny deny",
    "JobPrivateEndpoints_Approve": "deny deny deny",
    "JobPrivateEndpoints_Reject": "deny deny deny",
    "RoleDefinitions_ListAtJobAccount": "allow deny deny",
    "RoleDefinitions_GetAtJobAccount": "allow deny deny",
    "RoleAssignments_ListAtJobAccount": "allow deny deny",
    "RoleAssignments_CreateOrUpdateAtJobAccount": "deny deny deny",
    "RoleAssignments_GetAtJobAccount": "allow deny deny",
    "RoleAssignments_DeleteAtJobAccount": "deny deny deny",
    "Locks_ListAtJobAccount": "allow deny deny",
    "Locks_CreateOrUpdateAtJobAccount": "deny deny deny",
    "Locks_GetAtJobAccount": "allow deny deny",
    "Locks_DeleteAtJobAccount": "deny deny deny",
    "ServiceTokens_List": "allow part own",
    "ServiceTokens_CreateOrUpdate": "deny deny own",
    "ServiceTokens_Get": "allow deny own",
    "ServiceTokens_Delete": "deny deny own",
    "ActivityLogs_ListAtTenant": "allow part own",
    "ActivityLogs_ListAtSubscription": "allow part deny",
}
PUT_ASSIGNMENT = "RoleAssignments_CreateOrUpdateAtTenant"
NAMES = {
    "subscriptionId": "s1",
    "resourceGroupName": "g1",
    "serverName": "eu1",
    "databaseName": "d1",
    "elasticPoolName": "p1",
    "jobAgentName": "a1",
    "credentialName": "c1",
    "targetGroupName": "t1",
    "targetServerName": "eu1",
    "targetDatabaseName": "d1",
    "jobName": "j1",
    "jobVersion": "1",
    "planId": "7c1e0f5a-93c4-4f0e-8a2b-5d6b7c8d9e10",
    "stepName": "step1",
    "jobExecutionId": "5555e4b4-2d4c-4d6e-9a57-0d8e6f3b7a11",
    "targetId": "0b5c3c58-7a0e-4a3f-8f53-4f4c4f0f9a11",
    "attempt": "1",
    "privateEndpointName": "e1",
    "webhookName": "w1",
    "tokenName": "t1",
    "lockName": "l1",
    "locationName": "local",
    "resourceProviderNamespace": "Microsoft.Sql",
    "roleDefinitionId": "acdd72a7-3385-48ef-bd42-f606fba81ae7",
}


def test_every_operation_has_its_cells() -> None:
    described = {
        operation["operationId"]
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
    }

    assert described == set(CELLS)


async def test_each_cell(settings: Settings) -> None:
    async with principals.start_api(settings) as api:
        wrong: list[str] = []
        count = 0
        operation = await _an_operation(api)
        control = {"properties": {"databaseId": f"{arm.SERVER}/databases/d1"}}
        await arm.put(api.owner, f"{arm.SERVER}/jobAgents/a1", control)
        await api.settle()
        victim = f"{principals.AUTHORIZATION}/roleAssignments/{uuid_of(' victim')}"
        await arm.put(api.owner, victim, examples.request(ENDPOINTS[PUT_ASSIGNMENT]))
        for name, line in sorted(CELLS.items(), key=_deletes_last):
            endpoint = ENDPOINTS[name]
            path = _path(endpoint, operation)
            reader, elsewhere, other = line.split()
            row = {
                "none": "401",
                "expired": "401",
                "elsewhere": elsewhere,
                "other": other,
                "reader": reader,
                "owner": "allow",
            }
            for who, expected in row.items():
                count += 1
                wrong += await _judge(api, endpoint, path, who, expected)
            await api.settle()

        assert not wrong, "\n".join(wrong)
        assert count == 6 * len(CELLS)


def _deletes_last(item: tuple[str, str]) -> bool:
    return ENDPOINTS[item[0]].method == "DELETE"


async def _judge(
    api: PrincipalsApi, endpoint: Endpoint, path: str, who: str, expected: str
) -> list[str]:
    before = await _ours(api) if expected == "own" else ""
    denials = await _denials(api) if expected == "deny" else 0
    async with api.actor(who) as client:
        answer = await client.request(
            endpoint.method,
            path,
            params={"api-version": arm.SQL},
            json=_body(endpoint) if endpoint.method in {"PUT", "PATCH", "POST"} else None,
        )
    status, text = answer.status_code, answer.text.lower()
    match expected:
        case "401":
            code = "ExpiredAuthenticationToken" if who == "expired" else "AuthenticationFailed"
            good = status == 401 and (endpoint.method == "HEAD" or arm.error(answer) == code)
            good = good and "www-authenticate" in answer.headers
        case "deny":
            good = status == 403
            if endpoint.method != "HEAD":
                good = good and arm.error(answer) == "AuthorizationFailed"
            good = good and await _denials(api) == denials + 1
        case "part":
            good = status == 200 and "resourcegroups/g1" not in text
        case "own":
            good = status not in {401, 403} and status < 500 and TENANT not in text
            if endpoint.type.name != "eventtypes/management/values":  # tells of his own attempts
                good = good and "/subscriptions/s1" not in text
            good = good and await _ours(api) == before
        case _:
            away = status == 503 and arm.error(answer) == "NodeAgentUnavailable"
            good = status not in {401, 403} and (status < 500 or away)
            unmade = status == 409 and arm.error(answer) == "JobAgentNotReady"
            if endpoint.method == "GET" and not unmade:
                good = good and status in {200, 204, 404 if "Get" in endpoint.operation_id else 200}
    if good and str(status) not in _described(endpoint):
        good = False
    return [] if good else [f"{endpoint.operation_id} {who}: not {expected}: {status} {text[:300]}"]


def _described(endpoint: Endpoint) -> set[str]:
    return set(DOCUMENT["paths"][endpoint.template][endpoint.method.lower()]["responses"])


def _path(endpoint: Endpoint, operation: str) -> str:
    scope = endpoint.template.partition(principals.AUTHORIZATION)[0]
    names = NAMES | {"operationId": operation, "roleAssignmentName": uuid_of(f"{scope} victim")}
    return "".join(f"/{names[s.text] if s.is_name else s.text}" for s in endpoint.path)


def _body(endpoint: Endpoint) -> Any:
    if endpoint.act:
        return dict(endpoint.act.example)
    body = examples.request(endpoint)
    body.pop("location", None)
    if endpoint.type.name == "resourceGroups":
        body["location"] = "local"
    return body


async def _an_operation(api: PrincipalsApi) -> str:
    answer = await api.owner.patch(
        arm.SERVER, params={"api-version": arm.SQL}, json={"tags": {"a": "b"}}
    )
    assert answer.status_code == 202, answer.text
    await api.settle()
    operation: str = answer.headers["location"].partition("?")[0].rpartition("/")[2]
    return operation


async def _ours(api: PrincipalsApi) -> str:
    """All that stands at the root of our tenant."""
    seen = []
    for kind in ("serviceTokens", "roleAssignments"):
        answer = await api.owner.get(
            f"{principals.AUTHORIZATION}/{kind}", params={"api-version": arm.SQL, "$top": "1000"}
        )
        seen.append(answer.text)
    return "\n".join(seen)


async def _denials(api: PrincipalsApi) -> int:
    query = "select count(*) from audit_event where status = 'Denied'"
    found: int = await api.plane.db.fetchval(query)
    return found
