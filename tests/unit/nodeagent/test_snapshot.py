from nodeagent.snapshot import render


def test_a_table_is_shown_with_what_belongs_to_it_and_no_function():
    text = render(
        [
            ("table", "jobs.t", ""),
            ("table", "jobs.u", ""),
            ("type", "jobs.item", ""),
            ("column", "jobs.item.id", "integer"),
            ("column", "jobs.item.name", "text"),
            ("column", "jobs.t.id", "integer not null"),
            ("constraint", "jobs.t.t_pkey", "PRIMARY KEY (id)"),
            ("index", "jobs.t.t_pkey", "CREATE UNIQUE INDEX t_pkey"),
            ("index", "jobs.t.by_age", "CREATE INDEX by_age"),
            (
                "function",
                "jobs_internal.check_epoch(p_epoch bigint)",
                "CREATE f\n RETURNS x\nAS $f$\nsecret",
            ),
        ]
    )

    assert (
        "create table jobs.t (\n    id integer not null,\n    constraint t_pkey PRIMARY KEY (id)\n);"
        in text
    )
    assert "CREATE INDEX by_age;" in text and "CREATE UNIQUE INDEX" not in text
    assert "create table jobs.u ();" in text
    assert "create type jobs.item as (\n    id integer,\n    name text\n);" in text
    assert "CREATE f" not in text
