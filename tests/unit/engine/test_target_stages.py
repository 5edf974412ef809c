"""The stages of target resolution, each by itself: include, exclude, filter, order."""

import asyncio
from uuid import UUID, uuid5

import msgspec
import pytest

from engine.core.runs.late_listing import listed_targets
from engine.model.group_document import Credential, Directory, Document, Group, Member, Server
from engine.targets.member_listing import ListedDatabase
from engine.targets.resolution import Resolution, Target
from engine.targets.resolver import Resolver, apply_filters, exclude, include, order
from muster.core.connect_errors import NoRoom
from muster.core.errors import InvalidRequest, Unavailable

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


def document(*members: Member, servers: tuple[Server, ...] = SERVERS) -> Document:
    return Document(
        target_group_id=SPACE,
        hash="",
        identity=SPACE,
        groups={SPACE: Group(name="g", members=members)},
        credentials={REFRESH: Credential(name="refresh", username="u", secret="env:X")},
        directory=Directory(revision=1, servers=servers),
    )


class Listing:
    """A server with these databases."""

    def __init__(self, *names: str) -> None:
        self._databases = [ListedDatabase(name) for name in names]

    def admin_lock(self, _: str) -> asyncio.Lock:
        return asyncio.Lock()

    async def databases(self, *_: object) -> list[ListedDatabase]:
        return self._databases


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


async def test_labels_select_the_databases_that_a_member_includes() -> None:
    gold = {"a1": {"tier": "gold"}, "a3": {"tier": "gold", "legacy": "yes"}}
    labelled = msgspec.structs.replace(EU1, labels={"tier": "silver"}, database_labels=gold)
    lister = Listing("a1", "a2", "a3")
    here = document(member(labels="tier=gold,!legacy"), servers=(labelled, EU2))

    resolution = await Resolver(here, lister).resolve(check_named=True)

    assert databases(resolution.targets) == ["a1"]
    assert [(each.database, each.reason) for each in resolution.unselected] == [
        ("a2", "LabelsNotMatched"),
        ("a3", "LabelsNotMatched"),
    ]


async def test_a_named_database_with_other_labels_is_no_target() -> None:
    named = [
        member("SqlDatabase", database_name=name, labels="tier=gold") for name in ("a1", "gone")
    ]

    resolution = await Resolver(document(*named), Listing("a1")).resolve(check_named=True)

    assert (resolution.targets, resolution.missing) == ([], [])
    assert [(each.database, each.reason, each.exists) for each in resolution.unselected] == [
        ("a1", "LabelsNotMatched", True),
        ("gone", "LabelsNotMatched", False),
    ]


def test_labels_select_what_an_exclude_member_removes() -> None:
    every = member()
    trial = member(exclude=True, labels="tier in (trial)")
    named = member("SqlDatabase", exclude=True, database_name="b*", labels="!tier")
    away = target(None, every, error=AWAY)
    targets = [
        target("a1", every, labels={"tier": "trial"}),
        target("a2", every, labels={"tier": "gold"}),
        target("b1", every),
        target("b2", every, labels={"tier": "gold"}),
        target("b1", every, EU2),
        away,
    ]

    kept, excluded = exclude(
        document(every, trial, named), [(trial, []), (named, []), (every, [])], targets
    )

    assert databases(kept) == ["a2", "b2", "b1", None]
    assert [(each.target.database, each.text) for each in excluded] == [
        ("a1", "SqlServer eu1 tier in (trial)"),
        ("b1", "SqlDatabase eu1/b* !tier"),
    ]


async def test_every_database_of_the_servers_is_listed_with_the_rule_or_the_reason() -> None:
    named = member("SqlDatabase", database_name="a1")
    gone = member("SqlDatabase", database_name="gone")
    pattern = member("SqlDatabase", database_name="b*")
    spared = member("SqlDatabase", database_name="b2", exclude=True)
    here = document(named, gone, pattern, spared)

    resolution = await Resolver(here, Listing("a1", "a2", "b1", "b2")).resolve(check_named=True)

    rules = resolution.rules
    assert [
        (each.database, rules[each.rule].position, rules[each.rule].text)
        for each in resolution.targets
    ] == [("a1", 1, "SqlDatabase eu1/a1"), ("b1", 3, "SqlDatabase eu1/b*")]
    assert [rules[each.rule].position for each in resolution.excluded] == [4]
    assert [rules[each.rule].position for each in resolution.missing] == [2]
    assert [(each.database, each.reason, each.rule) for each in resolution.unselected] == [
        ("a2", "NotIncluded", None)
    ]


async def test_only_the_members_of_some_servers_can_be_listed_again() -> None:
    lister = Listing("a1", "a2")
    spared = member("SqlDatabase", database_name="a2", exclude=True)
    other = member(server_name="eu2", server_id=EU2.server_id)
    resolver = Resolver(document(other, member(), spared), lister, servers={EU1.server_id})

    resolution = await resolver.resolve()

    assert [target.server.name for target in resolution.targets] == ["eu1"]
    assert databases(resolution.targets) == ["a1"]


@pytest.mark.parametrize(
    ("error", "listed"),
    [
        (AWAY, None),
        (InvalidRequest("No.", code="TargetAuthenticationFailed"), [None]),
        (None, ["a1"]),
    ],
)
def test_a_server_is_listed_again_unless_it_is_still_unavailable(error, listed) -> None:
    every, other = member(), member(server_name="eu2", server_id=EU2.server_id)
    found = target("a1" if error is None else None, every, error=error)
    resolution = Resolution([found, target("b1", other, EU2)], [])

    targets = listed_targets(document(every, other), resolution, (EU1.server_id, ""))

    assert (None if targets is None else databases(targets)) == listed


def test_the_labels_of_a_transient_fault_say_that_a_later_list_may_succeed() -> None:
    full = target(None, member(), error=NoRoom("Too many.", code="TargetRefused"))

    assert full.snapshot_labels["muster.unlisted"] == "TargetUnreachable: Too many."
