"""SQL for property tests: pieces that the scanner reads in its own ways, put together."""

from hypothesis import strategies as st

ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
TAG = st.sampled_from(["$$", "$a$", "$é_1$"])


def _nested(inner):
    return inner.map(lambda text: f"/*{text.replace('/*', '').replace('*/', '')} /* x */ */")


QUOTED = st.one_of(
    ANY.map(lambda text: "'" + text.replace("'", "''") + "'"),
    ANY.map(lambda text: "E'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"),
    ANY.map(lambda text: '"' + (text.replace('"', '""') or "x") + '"'),
    st.tuples(TAG, ANY.map(lambda text: text.replace("$", ""))).map(lambda p: p[0] + p[1] + p[0]),
)
COMMENT = st.one_of(
    _nested(ANY),
    ANY.map(lambda text: "--" + text.replace("\n", "").replace("\r", "") + "\n"),
)
SPACE = st.sampled_from([" ", "\n", "\t ", "\r\n", "\f"])
GAP = st.lists(SPACE | COMMENT, max_size=2).map(lambda parts: " " + "".join(parts) + " ")
COLUMN = st.one_of(QUOTED, st.sampled_from(["1", "1.5e3", "a$b", "é", "a.b", "-2", "(1)", "$1"]))
SELECT = st.tuples(GAP, st.lists(COLUMN, min_size=1, max_size=3), GAP).map(
    lambda p: f"select{p[0]}{','.join(p[1])}{p[2]}"
)
STATEMENT = st.one_of(
    SELECT,
    st.sampled_from(
        [
            "create rule r as on insert to t do also (select 1; select 2)",
            "create function f() returns int begin atomic select 1; select 2; end",
            "vacuum",
            "do $$ begin perform 1; end $$",
        ]
    ),
)
SCRIPT = st.lists(st.tuples(GAP, STATEMENT, GAP), max_size=4).map(
    lambda parts: ";".join(before + text + after for before, text, after in parts)
)
# Nothing that means anything: what a reader must survive.
NOISE = st.lists(
    st.sampled_from(
        ["'", '"', "$$", "$a$", "$(job_id)", "$", "(", ")", "/*", "*/", "--", "\n", ";"]
    )
    | st.sampled_from(
        ["E'", "U&'", "\\", " ", "1", "e", "begin", "end", "create function", "é", "GO"]
    ),
    max_size=30,
).map("".join)
