"""The doctor of a target group: which logins it examines, what it asks once, and which pages it has."""

import asyncio
from uuid import UUID

from engine.model.credential import Credential
from engine.model.group_document import Directory, Document
from engine.model.server import TargetServer
from engine.targets import group_doctor
from engine.targets.examination import Rights
from engine.targets.group_doctor import GroupDoctor, Use, page
from engine.targets.resolution import Target
from muster.core.errors import InvalidRequest, Unavailable
from tests.support.fake_clock import FakeClock

ID = UUID(int=7)
EU1, EU2 = (
    TargetServer(
        server_id=f"/servers/{name}", name=name, hosts=(name,), port=5432, ssl_mode="disable"
    )
    for name in ("eu1", "eu2")
)
RUNNER = Credential(name="fleet", username="runner_$(target_database_name)", secret="env:X")
SESSION = {
    "server_version": 170_000,
    "tls": None,
    "username": "u",
    "standby": False,
    "creates_schemas": True,
}
WRONG_PASSWORD = InvalidRequest("no", code="TargetAuthenticationFailed", sqlstate="28P01")


class Server:
    """Answers like a target; `answers` has the failures, by database."""

    def __init__(self, **answers: Exception) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str, tuple]] = []
        self._lock = asyncio.Lock()

    def admin_lock(self, _: str) -> asyncio.Lock:
        return self._lock

    async def rights(self, server, database, credential, needs):
        self.asked.append((database, credential.username, needs.roles))
        if database in self.answers:
            raise self.answers[database]
        return Rights(SESSION)


def a_target(database: str, server: TargetServer = EU1) -> Target:
    return Target(server=server, database=database, rule=ID, credential_id=ID)


def a_document() -> Document:
    return Document(
        target_group_id=ID, hash="", identity=ID, groups={}, credentials={ID: RUNNER},
        directory=Directory(revision=1, servers=(EU1, EU2)),
    )  # fmt: skip


async def examined(server: Server, *targets: Target, uses: list[Use] = (), missing=frozenset()):
    clock = FakeClock()
    doctor = GroupDoctor(a_document(), server, list(uses), {}, clock, clock.monotonic() + 60)
    return await doctor.examine(targets, set(missing))


async def test_a_credential_is_examined_once_with_all_that_its_steps_need():
    server = Server()
    uses = [
        Use(role="owner_$(target_database_name)", steps=("a/1",)),
        Use(guarded=True, steps=("b/1",)),
    ]

    (row,) = await examined(server, a_target("shop"), uses=uses)

    assert server.asked == [("shop", "runner_shop", ("owner_shop", None))]
    assert (row["ok"], row["credential"], row["steps"]) == (True, "fleet", ("a/1", "b/1"))


async def test_a_refused_login_is_not_tried_at_the_other_databases():
    server = Server(a=WRONG_PASSWORD)
    databases = [a_target(name) for name in ("a", "b")]
    document = a_document()
    document.credentials[ID] = Credential(name="fleet", username="runner", secret="env:X")
    doctor = GroupDoctor(document, server, [], {}, FakeClock(), 1e9)

    rows = await doctor.examine(databases, set())

    assert [row["code"] for row in rows] == ["TargetAuthenticationFailed"] * 2
    assert len(server.asked) == 1


async def test_a_server_that_is_away_is_tried_once_and_the_others_are_examined():
    server = Server(a=Unavailable("away", code="TargetUnreachable"))

    rows = await examined(server, a_target("a"), a_target("b"), a_target("c", EU2))

    assert [(row["databaseName"], row["ok"]) for row in rows] == [
        ("a", False),
        ("b", False),
        ("c", True),
    ]
    assert [each[0] for each in server.asked] == ["a", "c"]


async def test_a_database_that_does_not_exist_is_not_asked():
    server, gone = Server(), a_target("gone")

    (row,) = await examined(server, gone, missing={gone.key})

    assert (row["code"], server.asked) == ("TargetDatabaseNotFound", [])


def test_the_pages_have_each_target_once(monkeypatch):
    monkeypatch.setattr(group_doctor, "MAX_SERVER_TARGETS", 2)
    monkeypatch.setattr(group_doctor, "MAX_TARGETS", 3)
    targets = [a_target(name) for name in "abc"] + [a_target(name, EU2) for name in "def"]
    seen, after, more = [], None, True

    while more:
        taken, more = page(targets, after)
        seen.append("".join(each.database for each in taken))
        after = taken[-1].key

    assert seen == ["ab", "cde", "f"]
