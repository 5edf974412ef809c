"""Tokens of pages fit the list they were made for, and nothing else."""

import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import paging, query
from api.endpoint import table
from api.request_context import RequestContext
from api.paging import Paging
from api.path import Table
from api.resources import RESOURCES
from muster.core.errors import InvalidRequest
from muster.core.settings import Secret, Settings
from tests.support.requests import request_context
from workflows.model.resource import Principal

TABLE = Table(table(RESOURCES))
URL = Secret("postgresql://u:p@h/d")
PAGING = Paging(Settings(database_url=URL))
GROUPS = "/subscriptions/s/resourceGroups"


def asked(path: str, text: str = "api-version=2025-01-01", who: str = "ann") -> RequestContext:
    made = request_context(path=path, query=text.encode())
    made.principal = Principal(id=who, tenant_id="t")
    found = TABLE.match("GET", path.encode())
    made.endpoint, made.id = found.endpoint, found.id
    made.query = query.parse(text.encode())
    return made


def following(link: str) -> str:
    return link.partition("?")[2]


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=60))
def test_a_cursor_comes_back(cursor: str) -> None:
    link = PAGING.next_link(asked(GROUPS), "https://m", cursor)

    assert PAGING.after(asked(GROUPS, following(link))) == cursor


def test_a_token_shows_nothing_of_its_cursor() -> None:
    token = PAGING.token(asked(GROUPS), "/subscriptions/s/resourcegroups/hidden")

    assert b"hidden" not in base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))


@pytest.mark.parametrize("tenant", ["t", "another"])
def test_a_token_of_another_caller_is_refused(tenant: str) -> None:
    link = PAGING.next_link(asked(GROUPS), "https://m", "cursor")
    made = asked(GROUPS, following(link), who="bob" if tenant == "t" else "ann")
    made.principal = msgspec.structs.replace(made.principal, tenant_id=tenant)  # type: ignore[type-var]

    with pytest.raises(InvalidRequest) as refused:
        PAGING.after(made)

    assert refused.value.code == "InvalidSkipToken"


def test_the_link_repeats_the_request() -> None:
    text = "api-version=2025-01-01&%24top=5&$skipToken=old&x=a%20b"

    link = PAGING.next_link(asked(GROUPS, text), "https://m:1", "c")

    assert link.startswith(
        f"https://m:1{GROUPS}?api-version=2025-01-01&%24top=5&x=a%20b&%24skipToken="
    )
    assert "old" not in link


@given(st.text(max_size=40))
def test_a_forged_token_is_refused(token: str) -> None:
    made = asked(GROUPS)
    made.query = {**made.query, "$skiptoken": token}

    with pytest.raises(InvalidRequest) as refused:
        PAGING.after(made)

    assert refused.value.code == "InvalidSkipToken"


@pytest.mark.parametrize(
    ("path", "more"), [("/subscriptions/other/resourceGroups", ""), (GROUPS, "&$filter=x")]
)
def test_a_token_of_another_list_is_refused(path: str, more: str) -> None:
    link = PAGING.next_link(asked(GROUPS), "https://m", "cursor")

    with pytest.raises(InvalidRequest):
        PAGING.after(asked(path, following(link) + more))


def test_the_casing_and_the_page_size_may_change() -> None:
    link = PAGING.next_link(asked(GROUPS), "https://m", "cursor")

    assert PAGING.after(asked(GROUPS.upper(), following(link) + "&$top=7")) == "cursor"


def test_tokens_outlive_the_rotation_of_keys() -> None:
    before = Paging(Settings(database_url=URL, keys=Secret("a:AAAA")))
    after = Paging(Settings(database_url=URL, keys=Secret("b:BBBB,a:AAAA")))

    link = before.next_link(asked(GROUPS), "https://m", "cursor")

    assert after.after(asked(GROUPS, following(link))) == "cursor"


@pytest.mark.parametrize("text", ["0", "1001", "-1", "1e3", "1000000000", "", " 5", "٣"])
def test_a_page_has_one_to_a_thousand_elements(text: str) -> None:
    made = asked(GROUPS)
    made.query = {"$top": text}

    with pytest.raises(InvalidRequest):
        paging.top(made)


def test_a_page_has_a_size_by_itself() -> None:
    assert paging.top(asked(GROUPS)) == paging.DEFAULT
    assert paging.top(asked(GROUPS, "%24top=1000")) == 1000


def test_query_names_ignore_case_and_come_once() -> None:
    assert query.parse(b"API-Version=1&%24Top=2&a=b+c") == {
        "api-version": "1",
        "$top": "2",
        "a": "b c",
    }
    for twice in (b"a=1&A=2", b"api-version=1&api%2Dversion=2"):
        with pytest.raises(InvalidRequest):
            query.parse(twice)
    with pytest.raises(InvalidRequest):
        query.parse(b"a=%ff")
    with pytest.raises(InvalidRequest):
        query.parse(b"a=b%00c")
