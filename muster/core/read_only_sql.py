"""Whether a statement only reads, as far as its words tell; a word that is not known here might write.

It may still be wrong: a view or an operator can call anything. Who relies on it looks whether something was written
before it commits.
"""

from collections.abc import Iterable

from muster.core.sqltext import TRIVIA, Kind, Token

QUERY = frozenset({"select", "values", "table", "with"})
WRITING = frozenset({"insert", "update", "delete", "merge", "into"})
NOT_IN_A_QUERY = WRITING | {"for"}
# What may stand before a parenthesis: words of the grammar, types, and functions that change nothing anywhere.
HARMLESS = frozenset(
    """
    all and any array as between bit by case char character cube decimal distinct else except exists filter from
    group grouping having ilike in intersect interval is join lateral like limit materialized not numeric offset on
    or over partition recursive rollup row select sets similar some then time timestamp timestamptz union using
    values varchar varying when where with within
    abs age array_agg array_length array_to_string array_upper avg bool_and bool_or btrim cardinality cast ceil
    ceiling char_length coalesce col_description concat concat_ws corr count cume_dist current_database
    current_schema date_part date_trunc dense_rank every extract first_value floor format format_type
    generate_series greatest initcap json_agg json_build_object jsonb_agg jsonb_array_elements jsonb_array_length
    jsonb_build_object jsonb_each jsonb_each_text jsonb_extract_path jsonb_extract_path_text jsonb_object_agg
    jsonb_typeof justify_days justify_hours lag last_value lead least left length lower lpad ltrim make_date
    make_interval max md5 min mod mode now ntile nullif obj_description octet_length overlay percent_rank
    percentile_cont percentile_disc pg_database_size pg_get_constraintdef pg_get_indexdef pg_get_viewdef
    pg_indexes_size pg_relation_size pg_size_pretty pg_table_size pg_total_relation_size position power quote_ident
    quote_literal rank regexp_match regexp_matches regexp_replace repeat replace reverse right round row_number rpad
    rtrim sign split_part sqrt starts_with stddev string_agg string_to_array strpos substr substring sum to_char
    to_date to_json to_jsonb to_number to_regclass to_timestamp translate trim trunc unnest upper var_pop var_samp
    variance version width_bucket
    """.split()  # noqa: SIM905 - a list of so many would be a page
)
NAMES = (Kind.WORD, Kind.IDENTIFIER, Kind.UNICODE, Kind.VARIABLE)


def writing_words(read: Iterable[Token]) -> frozenset[str]:
    """Words of a query by which it would write or lock rows."""
    return WRITING & {token.text.lower() for token in read if token.kind is Kind.WORD}


def only_reads(read: Iterable[Token]) -> bool:
    """Of the tokens of one statement."""
    significant = [token for token in read if token.kind not in TRIVIA]
    first = next((token for token in significant if token.text != "("), None)
    if first is None or first.text.lower() not in QUERY:
        return False
    words = {token.text.lower() for token in significant if token.kind is Kind.WORD}
    return words.isdisjoint(NOT_IN_A_QUERY) and not any(
        _might_write(significant, at) for at, token in enumerate(significant) if token.text == "("
    )


def _might_write(significant: list[Token], at: int) -> bool:
    """What is called, if anything is, by the parenthesis there."""
    name = significant[at - 1] if at else None
    if name is None or name.kind not in NAMES:
        return False
    named_in = significant[at - 2].text if at > 1 else ""
    return name.kind is not Kind.WORD or name.text.lower() not in HARMLESS or named_in == "."
