"""A Chromium that notes what its pages ask for and complain about."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.support.running_api import Running, serve_in_thread


@dataclass
class Watched:
    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@pytest.fixture
def api(settings) -> Iterator[Running]:
    with serve_in_thread(settings) as running:
        yield running


@pytest.fixture
def browser(api) -> Iterator[Watched]:
    """After the API, whose fixtures run event loops of their own in this thread."""
    program = shutil.which("chromium")
    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # root has none
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=sandbox)
        page = chromium.new_page(viewport={"width": 1300, "height": 900})
        watched = Watched(page)
        page.on("request", lambda request: watched.requests.append(request.url))
        page.on("console", lambda message: watched.complaints.append(message.text))
        page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        yield watched
        chromium.close()
