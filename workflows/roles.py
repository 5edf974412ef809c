"""The roles and what they allow."""

import re
from functools import cache

import msgspec

from muster.core.errors import InvalidRequest

PREFIX = "/providers/Microsoft.Authorization/roleDefinitions/"
WEAKEN_AUTHENTICATION = "Microsoft.Sql/servers/weakenAuthentication/action"


class Role(msgspec.Struct, frozen=True):
    id: str
    name: str
    description: str
    actions: tuple[str, ...]
    not_actions: tuple[str, ...] = ()

    def allows(self, action: str) -> bool:
        return _matches(self.actions, action) and not _matches(self.not_actions, action)


OWNER = Role(
    "8e3af657-a8ff-443c-a75c-2fe8c4bcb635",
    "Owner",
    "Everything, including access of others.",
    ("*",),
)
CONTRIBUTOR = Role(
    "b24988ac-6180-42a0-ab88-20f7382dd24c",
    "Contributor",
    "Everything but granting access and allowing weaker logins.",
    ("*",),
    (
        "Microsoft.Authorization/*/write",
        "Microsoft.Authorization/*/delete",
        WEAKEN_AUTHENTICATION,
    ),
)
READER = Role(
    "acdd72a7-3385-48ef-bd42-f606fba81ae7",
    "Reader",
    "Reads everything, changes nothing.",
    ("*/read",),
)
JOB_OPERATOR = Role(
    "5f0a4c2e-6b1d-4c39-9a57-0d8e6f3b7a11",
    "Job Operator",
    "Reads everything, starts, stops, pauses and resumes jobs and runs queries that only read, on servers in "
    "the scope of the assignment.",
    (
        "*/read",
        "Microsoft.Sql/servers/useAsTarget/action",
        "Microsoft.Sql/servers/jobAgents/*/plan/action",
        "Microsoft.Sql/servers/jobAgents/*/start/action",
        "Microsoft.Sql/servers/jobAgents/*/cancel/action",
        "Microsoft.Sql/servers/jobAgents/pause/action",
        "Microsoft.Sql/servers/jobAgents/resume/action",
        "Microsoft.Sql/servers/jobAgents/doctor/action",
        "Microsoft.Sql/servers/jobAgents/queries/action",
        "Microsoft.Sql/servers/jobAgents/*/resolve/action",
        "Microsoft.Sql/servers/jobAgents/*/doctor/action",
        "Microsoft.Sql/servers/jobAgents/*/rerun/action",
        "Microsoft.Sql/servers/jobAgents/*/resume/action",
        "Microsoft.Sql/servers/jobAgents/*/abort/action",
        "Microsoft.Sql/servers/jobAgents/*/retry/action",
    ),
)
ROLES = {role.id: role for role in (OWNER, CONTRIBUTOR, READER, JOB_OPERATOR)}


def by_definition_id(text: str) -> Role:
    """A role by the id of its definition, given at any scope; refuses unknown ones by name."""
    wanted = text.rsplit("/", 1)[-1].lower()
    if wanted in ROLES and text.lower().endswith((PREFIX + wanted).lower()):
        return ROLES[wanted]
    definitions = ", ".join(f"{role.name} = {PREFIX}{role.id}" for role in ROLES.values())
    raise InvalidRequest(
        f"There is no role definition '{text[:200]}'. Known: {definitions}.",
        code="InvalidRoleDefinitionId",
        target="properties.roleDefinitionId",
    )


def _matches(patterns: tuple[str, ...], action: str) -> bool:
    return bool(patterns) and _compiled(patterns).fullmatch(action) is not None


@cache
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(p).replace(r"\*", ".*") for p in patterns), re.IGNORECASE)
