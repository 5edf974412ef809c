"""How the SDKs call what the document names: by rules, and by a short list where a rule reads badly."""

import re

GROUPS = {  # the first half of an operation id → the attribute that has its operations
    "JobAgents": "accounts",
    "JobCredentials": "credentials",
    "JobTargetGroups": "target_groups",
    "JobVersions": "versions",
    "JobPlans": "plans",
    "JobSteps": "steps",
    "JobExecutions": "executions",
    "JobStepExecutions": "step_executions",
    "JobTargetExecutions": "target_executions",
    "JobTargetAttempts": "attempts",
    "JobPrivateEndpoints": "private_endpoints",
    "JobWebhooks": "webhooks",
}
METHODS = {  # operation id → (attribute, method)
    "JobExecutions_Create": ("jobs", "start"),
    "JobSteps_GetByVersion": ("steps", "get_by_version"),
    "ResourceGroups_CheckExistence": ("resource_groups", "exists"),
}
SERVER = (
    "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"
    "/providers/Microsoft.Sql/servers/{serverName}"
)
SCOPES = {  # path → the class that has what lies below it, the longest first
    f"{SERVER}/jobAgents/{{jobAgentName}}": "Account",
    f"{SERVER}/elasticPools/{{elasticPoolName}}": "ElasticPool",
    f"{SERVER}/databases/{{databaseName}}": "Database",
    SERVER: "Server",
    "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}": "ResourceGroup",
    "/subscriptions/{subscriptionId}": "Subscription",
    "": "Client",
}
ABOUT = {
    "Account": "A job account: its jobs and all that belongs to them.",
    "ElasticPool": "An elastic pool: databases that share a limit of connections.",
    "Database": "A database of a server.",
    "Server": "A PostgreSQL server: a registered one, or a cluster of Muster's own.",
    "ResourceGroup": "A resource group.",
    "Subscription": "A subscription.",
    "Client": "The whole API; narrower clients are reached from here: `client.account(id).jobs`.",
}
PARAMETERS = {
    "jobAgentName": "account",
    "jobExecutionId": "execution",
    "jobVersion": "version",
    "resourceProviderNamespace": "namespace",
    "targetServerName": "server",
    "targetDatabaseName": "database",
    "If-Match": "if_match",
    "If-None-Match": "if_none_match",
    "Idempotency-Key": "idempotency_key",
    "$skip": "skip",
}
HIDDEN = {"api-version", "$skipToken", "Last-Event-ID", "format"}  # the runtime's business
WITHOUT_EFFECT = "Azure's; without effect"  # parameters that exist for Azure's clients alone
RESULTS = {"JobAgent": "JobAccount"}  # what is called so in names of models
WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+")


def snake(name: str) -> str:
    """`isIPv6Enabled` → `is_ipv6_enabled`."""
    return "_".join(WORDS.findall(name.replace("IPv6", "Ipv6"))).lower()


def pascal(name: str) -> str:
    """`step_executions`, `waitReason` → `StepExecutions`, `WaitReason`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def camel(name: str) -> str:
    """`step_executions` → `stepExecutions`."""
    whole = pascal(name)
    return whole[:1].lower() + whole[1:]


def singular(name: str) -> str:
    if name.endswith("ies"):
        return name[:-3] + "y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def parameter(name: str) -> str:
    """`credentialName` → `credential`."""
    given = PARAMETERS.get(name)
    return given or snake(re.sub(r"(Name|Id)$", "", name).lstrip("$"))


def group(operation_id: str) -> str:
    if operation_id in METHODS:
        return METHODS[operation_id][0]
    first = operation_id.partition("_")[0]
    return GROUPS.get(first, snake(first))


def method(operation_id: str) -> str:
    """Without what it is listed by and where: the scope says that."""
    if operation_id in METHODS:
        return METHODS[operation_id][1]
    verb = operation_id.partition("_")[2]
    return snake(re.sub(r"At[A-Z]\w+$", "", verb))


def model(component: str) -> str:
    """`ActionProperties` → `Action`, `JobExecutionListErrorsItem` → `JobExecutionError`."""
    listed = re.fullmatch(r"(\w+?)List(\w+)Item", component)
    if listed:
        return listed[1] + entry(listed[2])
    return re.sub(r"Properties$", "", component)


def entry(listed: str) -> str:
    """One element of what is listed: `Errors` → `Error`, `History` → `HistoryEntry`."""
    return singular(listed) if listed.endswith("s") else f"{listed}Entry"
