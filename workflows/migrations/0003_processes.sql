-- expand: processes of the control plane: node agents, envelope keys, the readiness probe
create table node_agents (                          -- where they are and which servers they stand beside
    name         text primary key,
    url          text not null,
    servers      text[],                              -- keys of servers; null = all
    version      text not null,
    started_at   timestamptz not null default clock_timestamp(),
    heartbeat_at timestamptz not null default clock_timestamp(),
    constraint an_agent_stands_beside_some_server check (cardinality(servers) > 0)
);

-- A process compares its envelope keys with the ones that sealed the secrets in this database.
create table envelope_key (
    key_id      text primary key,
    check_value bytea not null,                     -- derived from the key; the key can't be derived from it
    first_used  timestamptz not null default clock_timestamp(),
    constraint check_value_of_32_bytes check (octet_length(check_value) = 32)
);

-- The readiness probe writes a row, so that a database that can only be read is noticed.
create table readiness (
    only_row   boolean primary key default true,
    written_at timestamptz not null,
    constraint one_row check (only_row)
);
