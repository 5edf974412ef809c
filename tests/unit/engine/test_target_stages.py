"""The stages of target resolution, each by itself: include, exclude, filter, order."""

import asyncio
from uuid import UUID, uuid5

from engine.model.group_document import Credential, Directory, Document, Group, Member, Server
from engine.targets.member_listing import ListedDatabase
from engine.targets.resolution import Target
from engine.targets.resolver import Resolver, apply_filters, exclude, include, order
from muster.core.errors import Unavailable

SPACE = UUID(int=7)
REFRESH = UUID(int=1)
SERVERS = tuple(
    Server(server_id=f"/servers/{name}", name=name, hosts=(name,), port=5432, ssl_mode="disable")
    for name in ("eu1", "eu2")
)
EU1, EU2 = SERVERS
AWAY = Unavailable("It is away.", code="TargetUnreachable")


def member(type: str = "SqlServer", *, exclude: bool = False, **more) -> Member:
    text = f"{type} {exclude} {more}"
    return Member(
        target_id=uuid5(SPACE, text),
        membership_type="Exclude" if exclude else "Include",
        type=type,
        **(
            {"server_name": "eu1", "server_id": EU1.server_id, "refresh_credential_id": REFRESH}
            | more
        ),
    )


def target(database: str | None, rule: Member, server: Server = EU1, **more) -> Target:
    return Target(server=server, database=database, rule=rule.target_id, **more)


def document(*members: Member) -> Document:
    return Document(
        target_group_id=SPACE,
        hash="",
        identity=SPACE,
        groups={SPACE: Group(name="g", members=members)},
        credentials={REFRESH: Credential(name="refresh", username="u", secret="env:X")},
        directory=Directory(revision=1, servers=SERVERS),
    )


def databases(targets) -> list[str | None]:
    return [each.database for each in targets]


def test_include_collapses_doubles_and_keeps_the_first_rule():
    first, second = member(), member("SqlDatabase", database_name="a")
    targets = include([(first, [target("a", first)]), (second, [target("a", second)])])
    assert [each.rule for each in targets] == [first.target_id]


def test_include_keeps_a_failed_listing_over_a_target_of_the_same_name():
    first, second = member(), member("SqlSchema", database_name="a")
    failed = target("a", second, error=AWAY)
    assert include([(first, [target("a", first)]), (second, [failed])])[0].error is AWAY


def test_include_passes_over_exclude_members():
    rule = member("SqlShardMap", exclude=True, shard_map_name="m")
    assert include([(rule, [target("a", rule)])]) == []


def test_exclude_splits_the_targets_and_names_the_rule():
    one, rule = member(), member("SqlDatabase", database_name="b", exclude=True)
    targets = [target(name, one) for name in "abc"]
    kept, excluded = exclude(document(one, rule), [(rule, []), (one, targets)], targets)
    assert databases(kept) == ["a", "c"]
    assert [(each.target.database, each.text) for each in excluded] == [("b", "SqlDatabase eu1/b")]


def test_exclude_removes_what_a_member_of_the_group_lists():
    one, rule = member(), member("SqlShardMap", shard_map_name="m", exclude=True)
    targets = [target(name, one) for name in "ab"]
    kept, _ = exclude(document(one, rule), [(rule, [target("a", rule)])], targets)
    assert databases(kept) == ["b"]


def test_without_filters_every_target_stays():
    targets = [target(name, member()) for name in "ba"]
    assert apply_filters(targets, ()) == targets


def test_a_target_must_pass_every_filter():
    targets = [target(name, member()) for name in ("a1", "a2", "b1")]
    filters = (lambda each: each.database[0] == "a", lambda each: each.database[1] == "1")
    assert databases(apply_filters(targets, filters)) == ["a1"]


def test_order_is_by_server_database_and_schema():
    rule = member()
    targets = [target("a", rule, EU2), target("b", rule), target("a", rule, schema="s")]
    targets.append(target("a", rule))
    assert [each.key for each in order(targets)] == [
        ("/servers/eu1", "a", ""),
        ("/servers/eu1", "a", "s"),
        ("/servers/eu1", "b", ""),
        ("/servers/eu2", "a", ""),
    ]


class Lister:
    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    def admin_lock(self, server_id):
        return self._lock

    async def databases(self, server, credential):
        return [ListedDatabase(name) for name in ("b", "a", "c")]


async def test_the_stages_follow_each_other():
    group = document(member(), member("SqlDatabase", database_name="c", exclude=True))
    seen = []

    def passes(each: Target) -> bool:
        seen.append(each.database)
        return each.database != "b"

    resolution = await Resolver(group, Lister(), filters=[passes]).resolve()

    assert seen == ["b", "a"], "filters see what exclusions kept, as it was listed"
    assert databases(resolution.targets) == ["a"]
    assert databases(each.target for each in resolution.excluded) == ["c"]
