-- expand: node agents say where they are and which servers they stand beside
create table node_agents (
    name         text primary key,
    url          text not null,
    servers      text[],                              -- keys of servers; null = all
    version      text not null,
    started_at   timestamptz not null default clock_timestamp(),
    heartbeat_at timestamptz not null default clock_timestamp(),
    constraint an_agent_stands_beside_some_server check (cardinality(servers) > 0)
);
