"""Every block of README and docs/ that a reader would run is run by a test that its page names, or says why not."""

import json
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from muster.core.script import split
from tests.support import pages
from tests.support.pages import SHOWN, blocks, page, text_of, to_run

PAGES = pages.pages()
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
EACH = {"decisions", "lifecycles"}  # folders that the map links as a whole


def understood(language: str, text: str) -> str:
    """What is wrong with the form of a block; nothing is known of other languages."""
    match language:
        case "sh" | "bash":
            done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
            return done.stderr
        case "python":
            compile(text, "block", "exec")
        case "json":
            json.loads(text)
        case "yaml":
            list(yaml.safe_load_all(text))
        case "sql":
            script = split(text)
            return "" if script.parsed else str(script.refusal)
    return ""


@pytest.mark.parametrize("path", PAGES)
def test_every_block_is_run_by_a_test_of_the_page_or_says_why_not(path: str) -> None:
    left = to_run(path)
    tests = pages.tests_of(path)

    assert tests or not left, f"{path} names no test that runs lines {[b.line for b in left]}"
    for test in tests:
        file = pages.ROOT / test
        assert file.exists(), f"{path} names {test}, which does not exist"
        assert Path(path).name in file.read_text("utf-8"), f"{test} does not read {path}"
    texts = [(pages.ROOT / test).read_text("utf-8") for test in tests]
    if all("support.pages" in text for text in texts):
        for block in left:
            named = any(block.section in text for text in texts)
            assert named, f"{path}: no test takes the block of {block.section!r}, line {block.line}"


@pytest.mark.parametrize("path", PAGES)
def test_every_block_is_understood(path: str) -> None:
    variables = {":'sealed'": "'sealed'"}  # of psql
    for block in blocks(path):
        text = block.text
        for name, value in variables.items():
            text = text.replace(name, value)
        assert understood(block.language, text) == "", f"{path}, line {block.line}"


def anchors(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in titles}


@pytest.mark.parametrize("path", PAGES)
def test_every_link_leads_somewhere(path: str) -> None:
    here = pages.ROOT / path
    prose = re.sub(r"```.*?```|`[^`\n]+`", "", here.read_text("utf-8"), flags=re.DOTALL)
    dead = []
    for link in LINK.findall(prose):
        target, _, anchor = unquote(link).partition("#")
        if "://" in target:
            continue
        file = (here.parent / target).resolve() if target else here
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            dead.append(link)

    assert dead == []


def test_the_map_has_every_page() -> None:
    linked = {
        (pages.ROOT / "docs" / unquote(link)).resolve()
        for link in LINK.findall(text_of("docs/README.md"))
    }
    expected = {
        (pages.ROOT / path).resolve()
        for path in PAGES
        if path.startswith("docs/") and Path(path).parent.name not in EACH
    }

    missing = expected - linked - {pages.ROOT / "docs" / "README.md"}
    assert missing == set(), "a page has a line in docs/README.md"


def test_a_block_that_a_test_leaves_out_fails_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(
        "# A\n```sh\none\n```\n<!-- not run: needs a house -->\n```sh\ntwo\n```\n## B\n```sql\nselect 3\n```\n"
    )

    with pytest.raises(AssertionError, match="line 12 .sql, B."), page("page.md") as found:
        assert found.take("A").text == "one\n"

    assert [each.not_run for each in blocks("page.md")] == ["", "needs a house", ""]


def test_there_are_pages_with_blocks() -> None:
    assert sum(len(to_run(path)) for path in PAGES) > 10
    assert "" in SHOWN
