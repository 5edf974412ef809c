import postgast
import pytest
from hypothesis import given
from postgast import pg_query_pb2 as pb

from muster.core.sqltext import Kind, Problem, place, tokens
from tests.support import sqltexts


def read(text):
    return [(token.kind, token.text) for token in tokens(text) if token.kind is not Kind.SPACE]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'it''s'", [(Kind.LITERAL, "'it''s'")]),
        (r"'\' 1", [(Kind.LITERAL, r"'\'"), (Kind.NUMBER, "1")]),
        (r"E'\'' 1", [(Kind.ESCAPED, r"E'\''"), (Kind.NUMBER, "1")]),
        ("x'1f'", [(Kind.LITERAL, "x'1f'")]),
        ("ae'x'", [(Kind.WORD, "ae"), (Kind.LITERAL, "'x'")]),
        ("1e1e'x'", [(Kind.NUMBER, "1e1"), (Kind.ESCAPED, "e'x'")]),
        ('"a""b"', [(Kind.IDENTIFIER, '"a""b"')]),
        ("u&\"d\" U&'d'", [(Kind.UNICODE, 'u&"d"'), (Kind.UNICODE, "U&'d'")]),
        ("$$a'$a$$", [(Kind.BODY, "$$a'$a$$")]),
        ("$a$ $b$ $a$", [(Kind.BODY, "$a$ $b$ $a$")]),
        ("a$a$ $a$", [(Kind.WORD, "a$a$"), (Kind.BODY, "$a$")]),
        ("$1$$2$$", [(Kind.NUMBER, "$1"), (Kind.BODY, "$$2$$")]),
        ("/* /* */ ' */ 1", [(Kind.COMMENT, "/* /* */ ' */"), (Kind.NUMBER, "1")]),
        ("1--2\n3", [(Kind.NUMBER, "1"), (Kind.COMMENT, "--2"), (Kind.NUMBER, "3")]),
        ("//**/", [(Kind.SYMBOL, "/"), (Kind.COMMENT, "/**/")]),
        ("$(a.b-c)", [(Kind.VARIABLE, "$(a.b-c)")]),
        ("a$(b)", [(Kind.WORD, "a"), (Kind.VARIABLE, "$(b)")]),
        ("$( )", [(Kind.SYMBOL, "$"), (Kind.SYMBOL, "("), (Kind.SYMBOL, ")")]),
        ("$$(a)$$", [(Kind.BODY, "$$(a)$$")]),
        ("'open", [(Kind.LITERAL, "'open")]),
        ("/* /* */ open", [(Kind.COMMENT, "/* /* */ open")]),
        ("$a$ open", [(Kind.BODY, "$a$ open")]),
    ],
)
def test_text_is_cut_as_postgresql_cuts_it(text, expected):
    assert read(text) == expected


@pytest.mark.parametrize("between", ["\n", " \t\r\n ", " -- x '\n", "\n-- x\n--\n  "])
def test_a_literal_on_the_next_line_goes_on_with_the_escapes_of_the_first(between):
    assert read(rf"E'a'{between}'b\'c'")[-1] == (Kind.ESCAPED, r"'b\'c'")


@pytest.mark.parametrize("between", [" ", "/*\n*/", "\n/**/", ",\n"])
def test_but_only_when_nothing_else_stands_between(between):
    assert (Kind.LITERAL, r"'b\'") in read(rf"E'a'{between}'b\'")


def test_the_inside_is_without_the_quotes():
    inside = [t.inside for t in tokens("E'a' 'b' \"c\" $x$d$x$ 'e") if t.kind is not Kind.SPACE]

    assert inside == ["a", "b", "c", "d", "e"]


@given(sqltexts.SCRIPT | sqltexts.NOISE | sqltexts.ANY)
def test_every_character_is_in_one_token(text):
    found = list(tokens(text))

    assert "".join(token.text for token in found) == text
    assert all(text[token.start : token.end] == token.text for token in found)


@given(sqltexts.SCRIPT)
def test_quotes_and_comments_are_those_of_the_real_scanner(text):
    raw = text.encode()
    scanned = [
        (pb.Token.Name(t.token), len(raw[: t.start].decode()), raw[t.start : t.end].decode())
        for t in postgast.scan(text).tokens
    ]

    found = list(tokens(text))

    assert [(t.start, t.text) for t in found if t.opening] == [
        (start, text)
        for name, start, text in scanned
        if name == "SCONST" or (name == "IDENT" and text[0] == '"')
    ]
    assert [(t.start, t.text) for t in found if t.kind is Kind.COMMENT] == [
        (start, text) for name, start, text in scanned if name in {"SQL_COMMENT", "C_COMMENT"}
    ]


def test_a_place_counts_lines_and_columns_from_one():
    assert place("ab\ncd", 0) == "Line 1, column 1"
    assert place("ab\ncd", 4) == "Line 2, column 2"


def test_a_problem_is_an_error_of_a_field():
    problem = Problem.at("ab\ncd", 3, "Code", "bad.", "Do better.")

    error = problem.error("properties.action.value")

    assert (error.target, error.code) == ("properties.action.value", "Code")
    assert error.message == "Line 2, column 1: bad. Do better."
