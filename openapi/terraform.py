"""What the Terraform provider has for an operation: a resource, a data source, or a reason in parentheses."""

RESOURCES = {  # by the group of operations, which is what comes before `_`
    "ResourceGroups": "resource_group",
    "Servers": "server",
    "Databases": "database",
    "ElasticPools": "elastic_pool",
    "JobAgents": "job_account",
    "JobCredentials": "credential",
    "JobTargetGroups": "target_group",
    "Jobs": "job",
    "JobWebhooks": "webhook",
    "RoleAssignments": "role_assignment",
}
WRITES = frozenset({"CreateOrUpdate", "Update", "Delete"})
PARTS = {  # operations that a block of another resource stands for
    **dict.fromkeys(
        ("JobSteps_CreateOrUpdate", "JobSteps_Update", "JobSteps_Delete"), "`step` of `muster_job`"
    ),
    **dict.fromkeys(("JobSteps_ListByJob", "JobSteps_Get"), "`step` of data source `muster_job`"),
    "Jobs_ReplaceSchedule": "`schedule` of `muster_job`",
    "Jobs_GetSchedule": "`schedule` of data source `muster_job`",
}
LISTED = "(a data source reads one, by its name)"
DONE = "(something that is done or looked at: there is nothing to declare)"
WAITED = "(the provider waits for its operations)"
REASONS = {  # by group
    "Subscriptions": "(a subscription must exist: `subscription_id` names it)",
    "Providers": DONE,
    "Operations": DONE,
    "ResourceGroupOperations": WAITED,
    "ServerOperations": WAITED,
    "DatabaseOperations": WAITED,
    "JobAgentOperations": WAITED,
    "JobSteps": DONE,
    "JobVersions": DONE,
    "JobPlans": DONE,
    "JobExecutions": DONE,
    "JobStepExecutions": DONE,
    "JobTargetExecutions": DONE,
    "JobTargetAttempts": DONE,
    "JobPrivateEndpoints": "(the provider has none: `muster private-endpoint`)",
    "RoleDefinitions": "(`role` of `muster_role_assignment` is the name of one)",
    "Locks": "(the provider has none: `muster lock`)",
    "ServiceTokens": "(a token that Terraform made would be in its state)",
    "ActivityLogs": DONE,
}


def terraform(operation: str) -> str:
    group, _, verb = operation.partition("_")
    if operation in PARTS:
        return PARTS[operation]
    if group not in RESOURCES:
        return REASONS[group]
    name = f"`muster_{RESOURCES[group]}`"
    if verb in WRITES:
        return name
    if verb == "Get":
        return f"data source {name}"
    return LISTED if verb == "List" or verb.startswith("ListBy") else DONE
