"""What groups yield, with servers that are dictionaries."""

import asyncio
import re
from collections import Counter
from uuid import UUID, uuid5

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.credential import Credential
from engine.model.group_document import Directory, Document, Group, Member
from engine.model.server import Pool, Server
from engine.targets.sql_like import LikePattern, database_pattern
from engine.targets.member_listing import ListedDatabase
from engine.targets.server_retry import ServerRetry
from engine.targets.resolver import Resolver, needs_listing
from muster.core.connect_errors import NoRoom
from muster.core.errors import Fault, InvalidRequest, NotFound, Unavailable
from tests.support.fake_clock import FakeClock

SPACE = UUID(int=7)
REFRESH = UUID(int=1)


class Fleet:
    """Servers by name: databases with their schemas, and rows for queries."""

    def __init__(self, **servers: dict[str, list[str]]) -> None:
        self.servers = servers
        self.answers: dict[str, list[dict[str, str]]] = {}
        self.away: set[str] = set()
        self.words = "It is away."
        self.faults: dict[str, list[Fault]] = {}  # of a server or database, before it answers
        self.asked: list[str] = []
        self.by: list[str] = []  # who listed databases
        self.open: Counter[str] = Counter()
        self.most: Counter[str] = Counter()  # sessions at once
        self.admin_locks: dict[str, asyncio.Lock] = {}

    def admin_lock(self, server_id):
        return self.admin_locks.setdefault(server_id, asyncio.Lock())

    async def databases(self, server, who):
        self._ask(server)
        self.by.append(who.name)
        own = [ListedDatabase("postgres", "ServersOwn")]
        return own + [ListedDatabase(name) for name in self.servers[server.name]]

    async def schemas(self, server, database, pattern, who):
        self._ask(server)
        if faults := self.faults.get(database):
            raise faults.pop(0)
        self.open[server.name] += 1
        self.most |= self.open
        await asyncio.sleep(0)
        self.open[server.name] -= 1
        found = self.servers[server.name].get(database, [])
        return [name for name in found if LikePattern(pattern).matches(name)]

    async def rows(self, server, database, member, who):
        self._ask(server)
        return self.answers[member.query or member.shard_map_name]

    def _ask(self, server) -> None:
        self.asked.append(server.name)
        if server.name in self.away:
            raise Unavailable(self.words, code="TargetUnreachable")
        if faults := self.faults.get(server.name):
            raise faults.pop(0)


def fleet() -> Fleet:
    return Fleet(
        eu1={"a1": ["t_1", "t_2", "other"], "a2": ["t_3"], "gold1": []}, eu2={"b1": [], "b2": []}
    )


def servers(job: str | None = None) -> tuple[Server, ...]:
    pool = Pool(name="Gold", pattern="gold*", labels={"tier": "gold"})
    return tuple(
        Server(
            server_id=f"/servers/{name}",
            name=name,
            hosts=(f"{name}.internal",),
            port=5432,
            ssl_mode="disable",
            pools=(pool,) if name == "eu1" else (),
            labels={"region": name[:2]},
            job_credential=job,
        )
        for name in ("eu1", "eu2")
    )


def member(type: str, server: str | None = "eu1", *, exclude: bool = False, **more) -> Member:
    text = f"{type} {server} {exclude} {more}"
    return Member(
        target_id=uuid5(SPACE, text),
        membership_type="Exclude" if exclude else "Include",
        type=type,
        server_name=server,
        server_id=server and f"/servers/{server.partition('.')[0].lower()}",
        **({"refresh_credential_id": REFRESH} | more),
    )


async def resolve(
    here: Fleet,
    *members: Member,
    otherwise: Credential | None = None,
    job: str | None = None,
    patience: ServerRetry | None = None,
    look: bool = False,
    **groups: tuple[Member, ...],
):
    nested = {
        uuid5(SPACE, name): Group(name=name, members=inside) for name, inside in groups.items()
    }
    document = Document(
        target_group_id=SPACE,
        hash="",
        identity=SPACE,
        groups={SPACE: Group(name="g", members=members)} | nested,
        credentials={REFRESH: Credential(name="refresh", username="u", secret="env:X")},
        directory=Directory(revision=1, servers=servers(job)),
    )
    found = await Resolver(document, here, otherwise, patience).resolve(check_named=look)
    assert look or needs_listing(document) or not here.asked, "who asks nobody says so"
    return found


def names(found) -> list[str]:
    return [
        ".".join(filter(None, (target.server.name, target.database, target.schema)))
        for target in found.targets
    ]


async def test_a_server_is_enumerated_and_what_is_left_out_is_told() -> None:
    found = await resolve(fleet(), member("SqlServer"))

    assert names(found) == ["eu1.a1", "eu1.a2", "eu1.gold1"]
    assert [(each.database, each.reason) for each in found.skipped] == [("postgres", "ServersOwn")]
    assert found.targets[0].labels == {"region": "eu"}


@pytest.mark.parametrize("name", ["EU1", "eu1.internal", "Eu1.database.windows.net"])
async def test_a_server_answers_to_all_its_names(name: str) -> None:
    assert len((await resolve(fleet(), member("SqlServer", name))).targets) == 3


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (member("SqlDatabase", database_name="a"), False),
        (member("SqlDatabase", database_name="a*"), True),
        (member("SqlDatabase", exclude=True, database_name="a*"), False),
        (member("SqlServer"), True),
        (member("SqlServer", exclude=True), False),
        (member("SqlQuery", exclude=True, query="q"), True),
        (member("TargetGroup", None, target_group_id=UUID(int=3)), False),
    ],
)
def test_whether_a_server_must_be_asked(one: Member, expected: bool) -> None:
    document = Document(
        target_group_id=SPACE,
        hash="",
        identity=SPACE,
        groups={SPACE: Group(name="g", members=(one,))},
        credentials={},
        directory=Directory(revision=1, servers=servers()),
    )

    assert needs_listing(document) is expected


async def test_a_named_database_is_not_asked_for_even_if_it_is_postgres() -> None:
    here = fleet()

    found = await resolve(
        here,
        member("SqlDatabase", database_name="postgres"),
        member("SqlDatabase", database_name="later"),
    )

    assert names(found) == ["eu1.later", "eu1.postgres"]
    assert here.asked == []


async def test_pools_hold_what_their_pattern_says() -> None:
    found = await resolve(fleet(), member("SqlElasticPool", elastic_pool_name="gold"))

    assert names(found) == ["eu1.gold1"]
    assert found.targets[0].pool == "Gold"
    assert found.targets[0].labels == {"region": "eu", "tier": "gold"}


@pytest.mark.parametrize(
    ("exclusion", "left"),
    [
        (member("SqlDatabase", exclude=True, database_name="a1"), ["eu1.a2", "eu1.gold1"]),
        (member("SqlDatabase", exclude=True, database_name="a?"), ["eu1.gold1"]),
        (member("SqlDatabase", exclude=True, database_name="*"), []),
        (
            member("SqlDatabase", exclude=True, database_name="A*"),
            ["eu1.a1", "eu1.a2", "eu1.gold1"],
        ),
        (
            member("SqlDatabase", "eu2", exclude=True, database_name="*"),
            ["eu1.a1", "eu1.a2", "eu1.gold1"],
        ),
        (member("SqlElasticPool", exclude=True, elastic_pool_name="GOLD"), ["eu1.a1", "eu1.a2"]),
        (member("SqlServer", exclude=True), []),
        (member("SqlServer", "eu2", exclude=True), ["eu1.a1", "eu1.a2", "eu1.gold1"]),
        (
            member("SqlSchema", exclude=True, schema_pattern="%"),
            ["eu1.a1", "eu1.a2", "eu1.gold1"],
        ),
    ],
    ids=lambda value: getattr(value, "type", ""),
)
async def test_an_exclusion_wins_whatever_the_order(exclusion: Member, left: list[str]) -> None:
    assert names(await resolve(fleet(), exclusion, member("SqlServer"))) == left
    assert names(await resolve(fleet(), member("SqlServer"), exclusion)) == left


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a*", ["a1", "a2"]),
        ("?old?", ["gold1"]),
        ("*", ["a1", "a2", "gold1"]),
        ("a_*", []),  # an underscore is a letter
        ("A*", []),
        ("p*", []),  # postgres is never listed
    ],
)
async def test_a_pattern_names_the_databases_that_fit(pattern: str, expected: list[str]) -> None:
    found = await resolve(fleet(), member("SqlDatabase", database_name=pattern))

    assert [target.database for target in found.targets] == expected
    assert [each.database for each in found.skipped] == (["postgres"] if pattern in "*p*" else [])


async def test_schemas_can_be_of_the_databases_that_fit_a_pattern() -> None:
    every = member("SqlSchema", database_name="a*", schema_pattern="t%")
    spared = member("SqlSchema", exclude=True, database_name="?1", schema_pattern="t_1")

    found = await resolve(fleet(), every, spared)

    assert names(found) == ["eu1.a1.t_2", "eu1.a2.t_3"]


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("tenant_0*", "tenant_01", True), ("tenant_0*", "tenantx01", False), ("a%*", "axx", False),
        (r"a\*", "a*", True), (r"a\*", "ab", False), ("?", "", False), ("*", "", True), ("a?\\", "ab\\", True),
    ],
)  # fmt: skip
def test_database_patterns(pattern: str, name: str, fits: bool) -> None:
    made = database_pattern(pattern)

    assert made is not None
    assert made.matches(name) is fits


def test_a_name_without_a_wildcard_is_no_pattern() -> None:
    assert [database_pattern(name) for name in ("tenant_%", "a\\b", "", None)] == [None] * 4


async def test_what_an_exclusion_removed_is_told_with_its_rule() -> None:
    spared = member("SqlDatabase", exclude=True, database_name="a?")
    nested = member("TargetGroup", None, exclude=True, target_group_id=uuid5(SPACE, "gold"))
    gold = (member("SqlElasticPool", elastic_pool_name="gold"),)

    found = await resolve(fleet(), member("SqlServer"), spared, nested, gold=gold)

    assert names(found) == []
    assert [(each.target.database, each.rule, each.text) for each in found.excluded] == [
        ("a1", spared.target_id, "SqlDatabase eu1/a?"),
        ("a2", spared.target_id, "SqlDatabase eu1/a?"),
        ("gold1", nested.target_id, "TargetGroup gold"),
    ]


async def test_what_another_group_takes_in_again_was_not_removed() -> None:
    inner = (member("SqlServer"), member("SqlDatabase", exclude=True, database_name="a1"))
    nested = member("TargetGroup", None, target_group_id=uuid5(SPACE, "inner"))

    found = await resolve(fleet(), nested, member("SqlDatabase", database_name="a1"), inner=inner)

    assert names(found) == ["eu1.a1", "eu1.a2", "eu1.gold1"]
    assert found.excluded == []


async def test_who_looks_is_told_which_named_databases_are_missing() -> None:
    here = fleet()
    here.answers = {"q": [{"server_name": "eu2", "database_name": "gone"}]}

    found = await resolve(
        here,
        member("SqlDatabase", database_name="a1"),
        member("SqlDatabase", database_name="postgres"),
        member("SqlDatabase", database_name="later"),
        member("SqlQuery", database_name="a1", query="q"),
        look=True,
    )

    assert names(found) == ["eu1.a1", "eu1.postgres"]
    assert sorted((each.server.name, each.database) for each in found.missing) == [
        ("eu1", "later"), ("eu2", "gone"),
    ]  # fmt: skip
    assert Counter(here.asked) == {"eu1": 2, "eu2": 1}


async def test_a_named_database_of_a_server_that_is_away_is_not_called_missing() -> None:
    here = fleet()
    here.away.add("eu1")

    found = await resolve(here, member("SqlDatabase", database_name="a1"), look=True)

    (target,) = found.targets
    assert (target.database, target.error and target.error.code) == ("a1", "TargetUnreachable")
    assert found.missing == []


async def test_a_named_database_that_nobody_may_look_for_stays_a_target() -> None:
    one = member("SqlDatabase", database_name="a1", refresh_credential_id=None)

    found = await resolve(fleet(), one, look=True)

    (target,) = found.targets
    assert (target.error, found.unchecked[target.key].code) == (None, "CredentialMissing")


async def test_doubles_collapse_and_a_server_is_asked_once() -> None:
    here = fleet()

    found = await resolve(
        here,
        member("SqlServer"),
        member("SqlElasticPool", elastic_pool_name="gold"),
        member("SqlDatabase", database_name="a1"),
    )

    assert names(found) == ["eu1.a1", "eu1.a2", "eu1.gold1"]
    assert here.asked == ["eu1"]


async def test_schemas_are_targets() -> None:
    every = await resolve(fleet(), member("SqlSchema", schema_pattern="t\\_%"))
    some = await resolve(
        fleet(),
        member("SqlSchema", database_name="a1", schema_pattern="%"),
        member("SqlSchema", exclude=True, schema_pattern="t_1"),
    )
    none = await resolve(
        fleet(),
        member("SqlSchema", database_name="a1", schema_pattern="%"),
        member("SqlDatabase", exclude=True, database_name="a1"),
    )

    assert names(every) == ["eu1.a1.t_1", "eu1.a1.t_2", "eu1.a2.t_3"]
    assert names(some) == ["eu1.a1.other", "eu1.a1.t_2"]
    assert names(none) == []


async def test_a_server_is_looked_at_by_one_session_at_a_time() -> None:
    here = fleet()

    await resolve(
        here,
        *(
            member("SqlSchema", server, database_name=name, schema_pattern="%")
            for server, name in (("eu1", "a1"), ("eu1", "a2"), ("eu1", "gold1"), ("eu2", "b1"))
        ),
    )

    assert here.most == {"eu1": 1, "eu2": 1}


async def test_rows_name_targets_and_their_other_columns_are_labels() -> None:
    here = fleet()
    here.answers["q"] = [
        {"server_name": "eu2", "database_name": "b1", "tier": "gold"},
        {"server_name": "eu1", "database_name": "a1", "schema_name": "t_1", "tier": None},
    ]
    here.answers["map"] = [{"server_name": "eu2", "database_name": "b2"}]

    found = await resolve(
        here,
        member("SqlQuery", database_name="a1", query="q"),
        member("SqlShardMap", database_name="a1", shard_map_name="map"),
    )

    assert names(found) == ["eu1.a1.t_1", "eu2.b1", "eu2.b2"]
    assert found.targets[1].labels == {"region": "eu", "tier": "gold"}
    assert found.targets[0].labels == {"region": "eu"}


async def test_groups_nest_and_keep_their_own_exclusions() -> None:
    inner = (member("SqlServer"), member("SqlDatabase", exclude=True, database_name="a1"))
    nested = member("TargetGroup", None, target_group_id=uuid5(SPACE, "inner"))
    less = member("TargetGroup", None, exclude=True, target_group_id=uuid5(SPACE, "inner"))

    with_it = await resolve(fleet(), nested, member("SqlServer", "eu2"), inner=inner)
    without = await resolve(fleet(), member("SqlServer"), less, inner=inner)

    assert names(with_it) == ["eu1.a2", "eu1.gold1", "eu2.b1", "eu2.b2"]
    assert names(without) == ["eu1.a1"]


async def test_a_server_that_is_away_is_one_target_and_the_others_stay() -> None:
    here = fleet()
    here.away = {"eu1"}

    found = await resolve(here, member("SqlServer"), member("SqlServer", "eu2"))

    assert names(found) == ["eu1", "eu2.b1", "eu2.b2"]
    assert found.targets[0].type == "SqlServer"
    assert found.targets[0].error.code == "TargetUnreachable"


class Onlooker(FakeClock):
    """Sees at each pause which admin locks are held."""

    def __init__(self, here: Fleet) -> None:
        super().__init__()
        self.here, self.shut = here, 0

    async def sleep(self, delay):
        self.shut += sum(lock.locked() for lock in self.here.admin_locks.values())
        await super().sleep(delay)


@pytest.mark.parametrize("kind", [Unavailable, NoRoom])
@pytest.mark.parametrize(
    "asking",
    [
        member("SqlServer"),
        member("SqlSchema", database_name="a1", schema_pattern="%"),
        member("SqlQuery", database_name="a1", query="q"),
    ],
    ids=lambda one: one.type,
)
async def test_a_server_that_is_away_for_a_moment_is_asked_again(kind, asking) -> None:
    here = fleet()
    here.answers["q"] = [{"server_name": "eu1", "database_name": "a1"}]
    here.faults = {"eu1": [kind("Not now.", code="TargetUnreachable") for _ in range(3)]}
    clock = Onlooker(here)

    found = await resolve(here, asking, patience=ServerRetry(clock, 60))

    assert [target.error for target in found.targets if target.error] == []
    assert (len(here.asked), clock.passed) == (4, 1 + 2 + 4)
    assert clock.shut == 0, "who settles a lost task there need not wait"


async def test_a_server_that_stays_away_is_waited_for_as_long_as_was_promised() -> None:
    here, clock = fleet(), FakeClock()
    here.away = {"eu1"}

    found = await resolve(
        here, member("SqlServer"), member("SqlServer", "eu2"), patience=ServerRetry(clock, 60)
    )

    assert names(found) == ["eu1", "eu2.b1", "eu2.b2"]
    assert 4 < clock.passed <= 8, "the others wait with us"


async def test_many_databases_of_a_sick_server_use_up_its_patience_together() -> None:
    here, clock = fleet(), FakeClock()
    no = NoRoom("Not now.", code="TargetUnreachable")
    here.faults = {name: [no] * 20 for name in ("a1", "a2", "gold1")}

    await resolve(here, member("SqlSchema", schema_pattern="%"), patience=ServerRetry(clock, 60))

    assert 40 < clock.passed <= 60


async def test_who_has_no_patience_and_what_is_refused_is_not_asked_again() -> None:
    away, refusing, slow, clock = fleet(), fleet(), fleet(), FakeClock()
    away.away = {"eu1"}
    refusing.faults = {"eu1": [InvalidRequest("No.", code="TargetRefused")]}

    await resolve(away, member("SqlServer"))
    slow.faults = {"eu1": [Unavailable("Not in time.", code="TargetTimeout")]}
    await resolve(slow, member("SqlServer"), patience=ServerRetry(clock, 60))
    found = await resolve(refusing, member("SqlServer"), patience=ServerRetry(clock, 60))

    assert (away.asked, refusing.asked, slow.asked) == (["eu1"], ["eu1"], ["eu1"])
    assert clock.passed == 0
    assert found.targets[0].error.code == "TargetRefused"


async def test_a_database_that_can_not_be_entered_is_one_target_and_the_schemas_of_others_stay() -> (
    None
):
    here = fleet()
    here.faults = {"a1": [InvalidRequest("No.", code="ConnectNotGranted")]}

    found = await resolve(here, member("SqlSchema", schema_pattern="t%", credential_id=REFRESH))

    assert names(found) == ["eu1.a1", "eu1.a2.t_3"]
    one = found.targets[0]
    assert (one.type, one.credential_id) == ("SqlDatabase", REFRESH)
    assert one.snapshot_labels == {"region": "eu", "muster.unlisted": "ConnectNotGranted: No."}


async def test_where_one_database_keeps_us_waiting_the_others_are_not_asked() -> None:
    here = fleet()
    here.faults = {"a1": [Unavailable("It is silent.", code="TargetTimeout")]}

    found = await resolve(here, member("SqlSchema", schema_pattern="t%"))

    assert [(each.database, each.error.code) for each in found.targets] == [
        (name, "TargetTimeout") for name in ("a1", "a2", "gold1")
    ]
    assert len(here.asked) == 2, "for the databases, and for the schemas of the first"


async def test_schemas_that_are_missing_are_not_hidden_by_their_database() -> None:
    both = (
        member("SqlDatabase", database_name="a1"),
        member("SqlSchema", database_name="a1", schema_pattern="%"),
    )
    for members in (both, both[::-1]):
        here = fleet()
        here.faults = {"a1": [InvalidRequest("No.", code="ConnectNotGranted")]}

        found = await resolve(here, *members)

        assert [target.error.code for target in found.targets] == ["ConnectNotGranted"]


async def test_nobody_can_pretend_that_a_target_was_not_listed() -> None:
    here = fleet()
    here.answers["q"] = [{"server_name": "eu1", "database_name": "a1", "muster.unlisted": "x"}]

    found = await resolve(here, member("SqlQuery", database_name="a1", query="q"))

    assert found.targets[0].snapshot_labels == {"region": "eu"}


async def test_nobody_to_list_with_is_that_servers_failure() -> None:
    found = await resolve(fleet(), member("SqlServer", refresh_credential_id=None))

    assert found.targets[0].error.code == "CredentialMissing"


@pytest.mark.parametrize(
    ("named", "who"),
    [
        ({}, "refresh"),
        ({"refresh_credential_id": None, "credential_id": REFRESH}, "refresh"),
        ({"refresh_credential_id": None}, "own"),
    ],
)
async def test_a_step_s_own_login_lists_where_nobody_is_named_for_it(named, who) -> None:
    here, own = fleet(), Credential(name="own", username="r", secret="env:R")

    await resolve(here, member("SqlServer", **named), otherwise=own)

    assert here.by == [who]


async def test_who_is_named_on_the_server_comes_before_the_step_s_own_login() -> None:
    here, own = fleet(), Credential(name="own", username="r", secret="env:R")

    await resolve(
        here, member("SqlServer", "eu2", refresh_credential_id=None), otherwise=own, job="refresh"
    )

    assert here.by == ["refresh"]


async def test_what_a_server_said_is_told_in_one_short_line() -> None:
    here = fleet()
    here.away, here.words = {"eu1"}, "no\nroom" + 1000 * "x"

    (target,) = (await resolve(here, member("SqlServer", credential_id=REFRESH))).targets

    said = target.snapshot_labels["muster.unlisted"]
    assert said.startswith("TargetUnreachable: no roomx") and len(said) < 600
    assert target.credential_id == REFRESH, "for who goes there"


async def test_an_exclusion_that_can_not_be_asked_stops_everything() -> None:
    here = fleet()
    here.away = {"eu1"}

    with pytest.raises(Unavailable):
        await resolve(
            here,
            member("SqlServer", "eu2"),
            member("SqlQuery", exclude=True, database_name="a1", query="q"),
        )


async def test_a_server_that_left_the_directory_stops_everything() -> None:
    with pytest.raises(NotFound) as caught:
        await resolve(fleet(), member("SqlServer", "gone"))
    assert caught.value.code == "InvalidTargetServer"


@given(
    st.text("ab%_\\", max_size=8).filter(lambda pattern: not pattern.endswith("\\")),
    st.text("ab%_", max_size=8),
)
def test_like_is_like_sql_s(pattern: str, text: str) -> None:
    words = re.sub(
        r"\\(.)|(.)",
        lambda found: (
            re.escape(found[1])
            if found[1]
            else {"%": ".*", "_": "."}.get(found[2], re.escape(found[2]))
        ),
        pattern,
    )

    assert LikePattern(pattern).matches(text) == bool(re.fullmatch(words, text))


def test_a_hostile_pattern_takes_no_time() -> None:
    assert not LikePattern("%a" * 30 + "%b").matches("a" * 63)


async def test_a_host_name_takes_nobody_s_short_name_and_is_no_name_of_two() -> None:
    evil = msgspec.structs.replace(servers()[0], name="evil", hosts=("eu1", "eu2.internal"))
    document = Document(
        target_group_id=SPACE, hash="", identity=SPACE, groups={}, credentials={},
        directory=Directory(revision=1, servers=(*servers(), evil)),
    )  # fmt: skip

    assert document.server("eu1").name == "eu1"
    assert document.server("eu1.internal").name == "eu1"
    assert document.server("eu2.internal") is None


@pytest.mark.parametrize("row", [{"database_name": None}, {"database_name": ""}])
async def test_a_row_without_a_database_is_told(row: dict) -> None:
    here = fleet()
    here.answers["q"] = [
        {"server_name": "eu1"} | row,
        {"server_name": "eu1", "database_name": "a1"},
    ]

    found = await resolve(here, member("SqlQuery", database_name="a1", query="q"))

    assert found.targets[0].error.code == "InvalidTargetQuery"


@pytest.mark.parametrize(
    "more",
    [
        {f"label_{n}": "x" for n in range(65)},
        {"label": "x" * 257},
        {"database_name": "d" * 64},
        {"schema_name": "é" * 32},
    ],
)
async def test_a_row_with_too_many_or_too_long_labels_or_names_is_refused(more: dict) -> None:
    here = fleet()
    here.answers["q"] = [{"server_name": "eu1", "database_name": "a1"} | more]

    found = await resolve(here, member("SqlQuery", database_name="a1", query="q"))

    assert found.targets[0].error.code == "InvalidTargetQuery"


async def test_a_row_may_have_as_many_labels_as_a_resource() -> None:
    here = fleet()
    labels = {f"label_{n}": "x" * 256 for n in range(64)}
    here.answers["q"] = [{"server_name": "eu1", "database_name": "d" * 63} | labels]

    found = await resolve(here, member("SqlQuery", database_name="a1", query="q"))

    (target,) = found.targets
    assert target.error is None
    assert labels.items() <= target.labels.items()


async def test_groups_in_many_groups_are_resolved_once() -> None:
    here = fleet()
    levels = 30
    groups = {
        f"g{n}": tuple(
            member(
                "TargetGroup",
                None,
                target_group_id=uuid5(SPACE, f"g{n + 1}"),
                credential_id=UUID(int=k),
            )
            for k in (1, 2)
        )
        for n in range(levels)
    } | {f"g{levels}": (member("SqlServer"),)}
    top = member("TargetGroup", None, target_group_id=uuid5(SPACE, "g0"))

    found = await resolve(here, top, **groups)

    assert names(found) == ["eu1.a1", "eu1.a2", "eu1.gold1"]
