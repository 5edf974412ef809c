"""Targets that were chosen at the start: the group that they become, and the limit."""

from uuid import UUID

import pytest

from engine.model.group_document import Directory, Document, Group, Member
from engine.model.server import Server
from engine.targets.chosen_targets import ChosenTargets, limited
from engine.targets.resolution import Resolution, Target

ID = UUID(int=9)
SERVER = Server(server_id="/EU1", name="eu1", hosts=("h",), port=5432, ssl_mode="disable")


def row(database=None, schema=None, type="SqlDatabase"):
    return {
        "server_id": "/eu1", "server_name": "eu1", "database_name": database, "schema_name": schema,
        "target_type": type, "rule": ID,
    }  # fmt: skip


def document(*members: Member) -> Document:
    return Document(
        target_group_id=ID, hash="", identity=ID, groups={ID: Group("all", members)}, credentials={},
        directory=Directory(1, (SERVER,)),
    )  # fmt: skip


def member(credential: int, server: str = "/eu1") -> Member:
    return Member(
        target_id=ID, membership_type="Include", type="SqlServer", server_name="eu1", server_id=server,
        credential_id=UUID(int=credential),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("members", "credential"),
    [
        ([], None),
        ([member(1)], UUID(int=1)),
        ([member(1), member(2, "/other")], UUID(int=1)),
        ([member(1), member(2)], None),
    ],
)
def test_a_named_target_has_the_credential_of_the_group_for_its_server(members, credential):
    chosen = ChosenTargets.of_caller([row("a")])

    (group,) = chosen.document(document(*members)).groups.values()

    assert [each.credential_id for each in group.members] == [credential]


def test_a_named_schema_is_no_pattern():
    chosen = ChosenTargets.of_caller([row("a", "x_1%", "SqlSchema")])

    (group,) = chosen.document(document()).groups.values()

    assert group.members[0].schema_pattern == r"x\_1\%"


@pytest.mark.parametrize(
    ("earlier", "kept"), [([], ["a", "b"]), (["b"], ["b"]), (["x"], ["a", "b"]), (["c", "b"], ["b", "c"])]
)  # fmt: skip
def test_a_limit_keeps_what_an_earlier_step_had(earlier, kept):
    targets = [Target(server=SERVER, database=name, rule=ID) for name in "abcd"]

    resolution = limited(Resolution(targets, []), 2, [row(name) for name in earlier])

    assert [target.database for target in resolution.targets] == kept
