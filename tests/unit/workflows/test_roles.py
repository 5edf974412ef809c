import pytest

from muster.core.errors import InvalidRequest
from workflows.roles import CONTRIBUTOR, JOB_OPERATOR, OWNER, PREFIX, READER, by_definition_id


@pytest.mark.parametrize(
    ("role", "action", "allowed"),
    [
        (OWNER, "Microsoft.Authorization/roleAssignments/write", True),
        (CONTRIBUTOR, "Microsoft.Sql/servers/delete", True),
        (CONTRIBUTOR, "microsoft.authorization/roleassignments/WRITE", False),
        (CONTRIBUTOR, "Microsoft.Authorization/serviceTokens/delete", False),
        (CONTRIBUTOR, "Microsoft.Authorization/roleAssignments/read", True),
        (READER, "Microsoft.Sql/servers/read", True),
        (READER, "Microsoft.Sql/servers/write", False),
        (READER, "Microsoft.Sql/servers/discover/action", False),
        (JOB_OPERATOR, "Microsoft.Sql/servers/jobAgents/jobs/start/action", True),
        (JOB_OPERATOR, "Microsoft.Sql/servers/jobAgents/jobs/write", False),
        (JOB_OPERATOR, "Microsoft.Sql/servers/jobAgents/pause/action", True),
        (JOB_OPERATOR, "Microsoft.Sql/servers/discover/action", False),
    ],
)
def test_a_role_allows_what_it_lists(role, action, allowed):
    assert role.allows(action) is allowed


def test_a_role_is_found_by_its_definition_at_any_scope():
    assert by_definition_id(f"/subscriptions/x{PREFIX}{READER.id.upper()}") is READER


@pytest.mark.parametrize("text", ["", READER.id, PREFIX + "0", "/x/" + READER.id])
def test_an_unknown_role_is_refused_with_the_known_ones(text):
    with pytest.raises(InvalidRequest, match="Job Operator"):
        by_definition_id(text)
