"""What servers tell of themselves, and what it costs when one stops telling."""

import asyncio
from uuid import UUID

import msgspec
import pytest

from engine.targets import discovery
from engine.access.credentials import Credentials
from engine.model.group_document import Member
from engine.targets.discovery import Discovery
from muster.core.clock import Clock
from muster.core.connect import Connector
from muster.core.errors import InvalidRequest, Unavailable
from muster.core.settings import Secret
from tests.support.attempts import IDENTITY, a_target_database, settings, until
from tests.support.tcp_proxy import proxy_to

pytestmark = [pytest.mark.newest, pytest.mark.targets]


@pytest.fixture
async def target(targets, tmp_path):
    async with a_target_database(targets, tmp_path) as made:
        yield made


def a_listing() -> Discovery:
    credentials = Credentials(UUID(int=1), Secret(""), ("file:",), Clock())
    return Discovery(Connector(settings()), credentials, IDENTITY, lambda _: asyncio.Lock(), ())


def a_query(text: str) -> Member:
    return Member(
        target_id=UUID(int=3), membership_type="Include", type="SqlQuery", query=text,
    )  # fmt: skip


async def is_rid_of_us(target) -> bool:
    return await target.ours() == 0


@pytest.mark.parametrize("silent_at", [b"BEGIN", b"pg_database"])
async def test_a_server_that_falls_silent_is_hung_up_on(target, monkeypatch, silent_at):
    monkeypatch.setattr(discovery, "REPLY_TIMEOUT", 0.3)
    async with proxy_to(target.targets.port, silent_at=silent_at) as proxy:
        server = msgspec.structs.replace(target.server, port=proxy.port)

        with pytest.raises(Unavailable) as caught:
            async with asyncio.timeout(5):
                await a_listing().databases(server, target.who())

    assert caught.value.code == "TargetTimeout"
    await until(lambda: is_rid_of_us(target))


async def test_each_page_of_rows_has_its_time_and_all_of_them_have_theirs(target, monkeypatch):
    """Slow rows are no silence, unless they take forever."""
    slowly = a_query(
        "select 's' as server_name, 'd' as database_name, pg_sleep(0.2)::text from generate_series(1, 4)"
    )
    monkeypatch.setattr(discovery, "FETCH_ROWS", 1)
    monkeypatch.setattr(discovery, "REPLY_TIMEOUT", 0.6)

    found = await a_listing().rows(target.server, target.database, slowly, target.who())
    monkeypatch.setattr(discovery, "SESSION_TIMEOUT", 0.3)
    with pytest.raises(Unavailable) as caught:
        await a_listing().rows(target.server, target.database, slowly, target.who())

    assert len(found) == 4
    assert caught.value.code == "TargetTimeout"


@pytest.mark.parametrize(
    ("query", "kind", "code"),
    [
        ("select pg_terminate_backend(pg_backend_pid())", Unavailable, "TargetUnreachable"),
        ("select pg_cancel_backend(pg_backend_pid())", Unavailable, "TargetRefused"),
        ("select 1 / 0", InvalidRequest, "TargetRefused"),
    ],
)
async def test_what_goes_by_is_told_from_what_stays(target, query, kind, code):
    with pytest.raises(kind) as caught:
        await a_listing().rows(target.server, target.database, a_query(query), target.who())

    assert caught.value.code == code


async def test_a_secret_that_was_changed_is_read_again(target):
    lister = a_listing()
    before = await lister.databases(target.server, target.who())
    await target.execute(f"alter role {target.owner.name} password 'newer'")
    (target.home / target.owner.name).write_text("newer")

    after = await lister.databases(target.server, target.who())

    assert target.database in {each.name for each in before} & {each.name for each in after}
