import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.core.errors import InvalidRequest
from muster.core.sqltext import Kind, tokens
from muster.core.variables import masked, problems, render, variables

ID = "7d444840-9dc0-11d1-b245-5ffdce74fad2"
HOSTILE = st.lists(
    st.sampled_from(
        ["'", '"', "\\", "$", "$$", "$a$", "--", "/*", "*/", ";", "\n", "x", "é", "E'"]
    ),
    max_size=6,
).map("".join)


def names(text):
    return [use.name for use in variables(text)]


def codes(text):
    return [problem.code for problem in problems(text, tokens(text))]


def refusal(text, values):
    with pytest.raises(InvalidRequest) as refused:
        render(text, values)
    return refused.value


def test_uses_are_found_everywhere_but_in_comments():
    text = """-- $(a)
    /* $(b) /* */ $(c) */ $(d) '$(e)' "$(f)" E'$(g)\\$(h)' $x$ -- $(i) $x$ $$(j)$$ $( k) $()"""

    assert names(text) == ["d", "e", "f", "g", "i"]
    assert [text[use.start : use.end] for use in variables(text)][0] == "$(d)"


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("'$(v)'", "O'Hara", "'O''Hara'"),
        ("'$(v)'", r"a\b", r"'a\b'"),
        ("E'$(v)'", r"a\'b", r"E'a\\''b'"),
        ("E'a'\n'$(v)'", "\\", "E'a'\n'\\\\'"),
        (r"E'\$(v)'", "x", r"E'\$(v)'"),
        ('"$(v)"', 'a"b', '"a""b"'),
        ("$$ $(v) '$(v)' $$", "42", "$$ 42 '42' $$"),
        ("$a$ '$(v)' $a$", ID, f"$a$ '{ID}' $a$"),
        ("$(v)", "42", "42"),
        ("-$(v)+1", "42", "-42+1"),
        ("($(v))", ID, f"('{ID}')"),
        ("-- $(v)\n/* $(v) */", "x", "-- $(v)\n/* $(v) */"),
        ("'$(v)$(v)'", "'", "''''''"),
        ("'$(v)'", "$(v)", "'$(v)'"),
    ],
)
def test_a_value_takes_the_form_of_its_place(text, value, expected):
    assert render(text, {"v": value}) == expected


@pytest.mark.parametrize(
    ("text", "value", "why"),
    [
        ("$(v)", "abc", "integers and uuids"),
        ("$(v)", "-1", "integers and uuids"),
        ("$(v)", "1 ", "integers and uuids"),
        ("$(v)", "", "integers and uuids"),
        ("$(v)", "٤", "integers and uuids"),
        ("a$(v)", "1", "touches"),
        ("$(v)a", "1", "touches"),
        ("1.$(v)", "1", "touches"),
        ("$(v)$(v)", "1", "touches"),
        ("'a'$(v)", ID, "touches"),
        ("$$ '$(v)' $$", "x'; create table y (); --", "current_setting('muster.v'"),
        ("$a$ $(v) $a$", "word", "current_setting('muster.v'"),
        ("$a1$ $a$(v)$ $a1$", "1", "close"),
        ("$$ $(v)", "$$", "current_setting('muster.v'"),
        ("U&'$(v)'", "x", "Unicode"),
        ('U&"$(v)"', "x", "Unicode"),
        ("'$(v)'", "\0", "NUL"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_place(text, value, why):
    refused = refusal(text, {"v": value})

    assert why in refused.message
    assert "Line 1, column " in refused.message
    assert refused.code == "InvalidScriptVariable"


def test_a_name_without_a_value_is_refused():
    assert refusal("\n '$(v)'", {}).message == "Line 2, column 3: $(v) has no value here."


@pytest.mark.parametrize(
    "place",
    ["'x$(v)y'", "E'x$(v)y'", "E'a'\n'\\\\$(v)'", '"x$(v)y"', "$a$x$(v)y$a$", "$$x$(v)$$", "$(v)"],
)
@given(value=HOSTILE)
def test_a_hostile_value_changes_no_token_but_its_own(place, value):
    text = f"select {place} /* ' */, 'b', $$c$$ -- $a$\n from \"d\""
    try:
        rendered = render(text, {"v": value})
    except InvalidRequest:
        return

    before, after = list(tokens(text)), list(tokens(rendered))

    assert [token.kind for token in after] == [token.kind for token in before]
    changed = [(b.text, a.text) for b, a in zip(before, after, strict=True) if b.text != a.text]
    assert all("$(v)" in was for was, _ in changed)


@given(HOSTILE)
def test_a_literal_holds_exactly_the_value(value):
    (plain,) = tokens(render("'$(v)'", {"v": value}))
    (escaped,) = tokens(render("E'$(v)'", {"v": value}))
    (name,) = tokens(render('"$(v)"', {"v": value}))

    assert plain.inside.replace("''", "'") == value
    assert escaped.inside.replace("''", "'").replace("\\\\", "\\") == value
    assert name.inside.replace('""', '"') == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'$(job_name)' $(attempt) $(job_id) $(target_label.tier) \"$(target_schema_name)\"", []),
        ("$(target_label.)", ["UnknownScriptVariable"]),
        ("'$(job_nam)' $(job_nam) '$(zzz)'", ["UnknownScriptVariable", "UnknownScriptVariable"]),
        ("'$(Job_Name)'", ["UnknownScriptVariable"]),
        ("$(job_name)", ["InvalidScriptVariable"]),
        ("t_$(step_id) U&'$(job_id)'", ["InvalidScriptVariable", "InvalidScriptVariable"]),
        ("-- $(zzz)", []),
        ("do $$ begin perform '$(target_database_name)'; end $$", ["InvalidScriptVariable"]),
        ("$a$ -- $(job_name)\n $a$", ["InvalidScriptVariable"]),
        ("$$ $(attempt) '$(job_id)' $(target_label.n) $$", []),
        ("$$ $(zzz) $$", ["UnknownScriptVariable"]),
    ],
)
def test_what_can_be_known_without_values_is_told(text, expected):
    assert codes(text) == expected


def test_an_unknown_name_is_told_with_the_nearest_or_with_all():
    near, far = problems("'$(jobname)' '$(zzz)'", tokens("'$(jobname)' '$(zzz)'"))

    assert near.advice.startswith("Did you mean job_name")
    assert "target_label.<name>" in far.advice


@given(st.sampled_from(["attempt", "job_id", "job_name", "target_label.x", "é" * 3]))
def test_the_mask_has_the_length_of_the_text_and_no_bare_variable(name):
    text = f"select é, $({name}), '$({name})'"

    mask = masked(tokens(text))

    assert len(mask.encode()) == len(text.encode())
    assert not any(token.kind is Kind.VARIABLE for token in tokens(mask))


def test_a_text_variable_in_a_body_is_refused_with_the_setting_to_read_instead():
    text = "do $$ begin perform '$(job_name)'; end $$"

    (problem,) = problems(text, tokens(text))

    assert "$(job_name) is text and stands in a dollar-quoted body" in problem.message
    assert "current_setting('muster.job_name', true)" in problem.advice
