-- expand: which servers the account may reach, as the control plane knows them
create table jobs_internal.directory_revision (
    singleton boolean primary key default true,
    revision  bigint not null,
    synced_at timestamptz not null default clock_timestamp(),
    constraint there_is_one_revision check (singleton)
);
insert into jobs_internal.directory_revision (revision) values (0);
comment on table jobs_internal.directory_revision is 'Which state of the servers the directory shows.';
comment on column jobs_internal.directory_revision.singleton is 'Always true: there is one row.';
comment on column jobs_internal.directory_revision.revision is 'Given by the control plane; only grows.';
comment on column jobs_internal.directory_revision.synced_at is 'When it came.';

create table jobs_internal.server_directory (
    server_id              text primary key,
    name                   text not null,
    hosts                  text[] not null,
    port                   integer not null,
    ssl_mode               text not null,
    ca_certificate         text,
    pooling                text not null default 'none',
    direct_host            text,
    target_session_attrs   text not null default 'any',
    maintenance_database   text not null default 'postgres',
    max_connections        integer,
    connections_per_second real,
    slots_per_database     integer,
    pools                  jsonb not null default '[]',
    labels                 jsonb not null default '{}',
    worker_pool            text,
    job_credential         text,
    disabled               boolean not null default false,
    revision               bigint not null,
    client_certificate     text,
    client_key             text,
    client_key_fingerprint text,
    constraint a_server_has_a_host check (cardinality(hosts) > 0),
    constraint a_port_is_a_port check (port between 1 and 65535),
    constraint an_ssl_mode_is_known check (ssl_mode in ('verify-full', 'require', 'disable')),
    constraint a_pooling_is_known check (pooling in ('none', 'session', 'transaction')),
    constraint a_budget_allows_something check (max_connections > 0),
    constraint a_rate_allows_something check (connections_per_second > 0),
    constraint slots_allow_something check (slots_per_database > 0),
    constraint pools_are_a_list check (jsonb_typeof(pools) = 'array'),
    constraint labels_are_an_object check (jsonb_typeof(labels) = 'object'),
    constraint a_client_key_is_sealed check (client_key like 'sealed:%'),
    constraint a_client_certificate_has_its_key check
        (num_nonnulls(client_certificate, client_key, client_key_fingerprint) in (0, 3))
);
create unique index a_server_name_is_taken_once on jobs_internal.server_directory (lower(name));
create index server_by_host on jobs_internal.server_directory using gin (hosts);
comment on table jobs_internal.server_directory is
    'What the account may reach. Only the command sync_directory writes it.';
comment on column jobs_internal.server_directory.server_id is 'Id of the server resource.';
comment on column jobs_internal.server_directory.name is 'Short name, by which targets name it.';
comment on column jobs_internal.server_directory.hosts is 'Host names, tried in order.';
comment on column jobs_internal.server_directory.port is 'Of all hosts.';
comment on column jobs_internal.server_directory.ssl_mode is 'verify-full, require or disable.';
comment on column jobs_internal.server_directory.ca_certificate is 'PEM; null = the system''s.';
comment on column jobs_internal.server_directory.pooling is 'Whether a pooler stands before it: none, session or transaction.';
comment on column jobs_internal.server_directory.direct_host is 'Past the pooler.';
comment on column jobs_internal.server_directory.target_session_attrs is 'Which of the hosts is wanted.';
comment on column jobs_internal.server_directory.maintenance_database is 'Where its databases are listed.';
comment on column jobs_internal.server_directory.max_connections is 'Budget of all our sessions; null = found at first contact.';
comment on column jobs_internal.server_directory.connections_per_second is 'New connections; null = the default.';
comment on column jobs_internal.server_directory.slots_per_database is 'Tasks at once in one database; null = no limit of its own.';
comment on column jobs_internal.server_directory.pools is 'Elastic pools: name, databases by list or pattern, budgets.';
comment on column jobs_internal.server_directory.labels is 'For selection and scheduling.';
comment on column jobs_internal.server_directory.worker_pool is 'Which hosts may run tasks on it; null = all.';
comment on column jobs_internal.server_directory.job_credential is 'Name of the credential for its targets.';
comment on column jobs_internal.server_directory.disabled is 'Nothing starts on it.';
comment on column jobs_internal.server_directory.revision is 'At which this row last changed.';
comment on column jobs_internal.server_directory.client_certificate is
    'PEM; what we show to the server, null = nothing.';
comment on column jobs_internal.server_directory.client_key is
    'Of the client certificate, sealed for the account and this database.';
comment on column jobs_internal.server_directory.client_key_fingerprint is
    'Another one with each key that is set; sealing the same key again does not change it.';
