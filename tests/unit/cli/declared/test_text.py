"""What an export writes is read back as it was, whatever the texts are."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muster.cli.declared import text
from muster.cli.declared.reader import read

TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t"), min_size=1
)


@given(TEXTS, TEXTS)
@example("select 1;\nselect 2", "yes")
@example("  select 1\n\n\n", "2031-01-01")
@example("\n select 1", "007")
@example("select 1 \nselect 2\t\n", "null")
@example("# no comment\n---\n", "<<")
@example("select 'ä€😀'\n", "~")
def test_every_text_is_read_back(tmp_path_factory, script, name):
    document = {"kind": "job", "name": name, "steps": [{"name": name, "action": {"value": script}}]}
    file = tmp_path_factory.mktemp("text") / "a.yaml"
    file.write_text(text.dump(document), encoding="utf-8", newline="")

    (job,) = read([str(file)])

    assert (job.name, job.steps[0].properties["action"]["value"]) == (name, script)


@pytest.mark.parametrize("value", [True, False, 0, -3, 1.5, 1e-7, 2.0])
def test_every_value_is_read_back(tmp_path, value):
    file = tmp_path / "a.yaml"
    step = {"name": "s", "verify": {"sql": "select 1", "value": value}}
    file.write_text(text.dump({"kind": "job", "name": "a", "steps": [step]}))

    (job,) = read([str(file)])
    read_back = job.steps[0].properties["verify"]["value"]

    assert read_back == value and isinstance(read_back, bool) == isinstance(value, bool)


def test_sql_is_a_block():
    assert text.dump({"value": "select 1;\nselect 2\n"}) == "value: |\n  select 1;\n  select 2\n"


def test_a_difference_holds_nothing_that_a_terminal_obeys():
    lines = text.difference({}, {"a": "x\x1b[2J\u202e"}, ("before", "after"), coloured=False)

    assert not any(each in line for line in lines for each in ("\x1b", "\u202e"))
    assert lines[-1].startswith("+a: ")


def test_colour_is_for_what_changes():
    lines = text.difference({"a": 1}, {"a": 2}, ("before", "after"), coloured=True)

    assert [line[:5] for line in lines] == ["--- b", "+++ a", "\x1b[36m", "\x1b[31m", "\x1b[32m"]
