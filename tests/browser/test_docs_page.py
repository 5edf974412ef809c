"""What a person sees at /docs of a running Muster."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from api.endpoint import table
from api.resources import RESOURCES
from tests.support.running_api import TOKEN


def signed_in(browser, api) -> None:
    browser.page.goto(api.url + "/docs")
    browser.page.get_by_label("Token").fill(TOKEN)
    browser.page.get_by_role("button", name="Show the API").click()
    expect(browser.page.locator("#api")).to_be_visible()


def picture(browser, name: str) -> None:
    folder = Path(".pytest_cache/browser")
    folder.mkdir(parents=True, exist_ok=True)
    browser.page.screenshot(path=folder / f"{name}.png")


def test_the_page_shows_every_operation_and_loads_nothing_from_outside(browser, api) -> None:
    signed_in(browser, api)

    shown = browser.page.locator("main details")
    expect(shown).to_have_count(len(table(RESOURCES)))
    for each in shown.all()[::20]:
        each.locator("summary").click()
        expect(each.locator("h3").first).to_have_text("Parameters")
    picture(browser, "docs")
    assert browser.complaints == []
    assert {url.removeprefix(api.url) for url in browser.requests} == {
        "/docs", "/docs/page.css", "/docs/page.js", "/openapi.json",
    }  # fmt: skip


def test_a_stranger_sees_the_refusal_and_nothing_of_the_api(browser, api) -> None:
    browser.page.goto(api.url + "/docs")
    picture(browser, "docs-sign-in")
    browser.page.get_by_label("Token").fill("not-a-token")
    browser.page.get_by_role("button", name="Show the API").click()

    expect(browser.page.get_by_role("alert")).to_contain_text("401 InvalidAuthenticationToken")
    expect(browser.page.locator("#api")).to_be_hidden()
    for path in ("/docs", "/docs/page.css", "/docs/page.js"):
        assert "Servers_CreateOrUpdate" not in httpx.get(api.url + path).raise_for_status().text


def test_an_operation_says_what_it_takes_and_is_sent(browser, api) -> None:
    signed_in(browser, api)
    page = browser.page
    page.get_by_label("Filter operations").fill("subscriptions_create")
    operation = page.locator("main details:visible")
    expect(operation).to_have_count(1)
    operation.locator("summary").click()
    picture(browser, "docs-operation")

    operation.get_by_label("subscriptionId").fill("s1")
    operation.get_by_role("button", name="Send PUT").click()

    expect(operation.locator(".answer")).to_have_text(re.compile("^HTTP 201"))
    with api.client() as client:
        assert client.get("/subscriptions/s1").status_code == 200
    assert browser.complaints == []


def test_fields_of_a_body_are_listed_with_those_of_inner_objects(browser, api) -> None:
    signed_in(browser, api)
    operation = browser.page.locator("#Jobs_CreateOrUpdate")
    operation.locator("summary").click()
    body = operation.locator("table").nth(1)

    expect(body.get_by_text("systemData.createdBy")).to_have_count(0)
    expect(operation.get_by_text("properties.schedule.cron", exact=True).first).to_be_visible()
    picture(browser, "docs-body")


def test_the_token_is_forgotten_when_told(browser, api) -> None:
    signed_in(browser, api)
    browser.page.reload()
    expect(browser.page.locator("#api")).to_be_visible()

    browser.page.get_by_role("button", name="Forget token").click()

    browser.page.reload()
    expect(browser.page.get_by_label("Token")).to_be_visible()
    expect(browser.page.locator("#api")).to_be_hidden()


def test_the_policy_lets_the_page_load_its_own_files_alone(api) -> None:
    policy = httpx.get(api.url + "/docs").headers["content-security-policy"]

    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy and "http" not in policy


class Feed(BaseHTTPRequestHandler):
    """Sends one event and, when the test asks for it, another; does not end by itself."""

    more, left = threading.Event(), threading.Event()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.end_headers()
        self.wfile.write(b"data: first\n\n")
        self.more.wait(60)
        try:
            while not self.left.wait(0.05):
                self.wfile.write(b"data: second\n\n")
        except OSError:
            self.left.set()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def feed() -> Iterator[str]:
    Feed.more.clear()
    Feed.left.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Feed)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    Feed.more.set()
    Feed.left.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_events_are_shown_while_they_arrive_until_stop(browser, api, feed) -> None:
    """The API would need an account; its feed is played by another server."""
    signed_in(browser, api)
    page = browser.page
    page.route("**/events?*", lambda route: route.continue_(url=feed))
    operation = page.locator("details", has=page.locator("summary", has_text="/events")).first
    operation.locator("summary").click()
    for each in operation.locator("form input").all():
        each.fill("1")
    operation.get_by_role("button", name="Send GET").click()

    answer = operation.locator("pre.answer")
    expect(answer).to_contain_text("data: first")
    expect(answer).not_to_contain_text("second")
    Feed.more.set()
    expect(answer).to_contain_text("data: second")
    operation.get_by_role("button", name="Stop").click()

    expect(operation.get_by_role("button", name="Stop")).to_have_count(0)
    assert Feed.left.wait(30), "the browser still reads"
    assert browser.complaints == []


BUSY = {"status": 503, "json": {"error": {"code": "ServiceUnavailable", "message": "Later."}}}
PAGE = {"status": 502, "body": "<html>bad gateway</html>", "content_type": "text/html"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [(BUSY, "503 ServiceUnavailable: Later."), (PAGE, "HTTP 502"), (None, "can't be read")],
    ids=["busy", "no JSON", "no answer"],
)
def test_a_failure_is_shown_and_the_token_is_kept(browser, api, answer, said) -> None:
    signed_in(browser, api)
    page = browser.page
    page.route(
        "**/openapi.json", lambda route: route.fulfill(**answer) if answer else route.abort()
    )

    page.reload()
    expect(page.get_by_role("alert")).to_contain_text(said)

    page.unroute("**/openapi.json")
    page.reload()
    expect(page.locator("#api")).to_be_visible()
