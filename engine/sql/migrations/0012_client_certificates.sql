-- expand: a server that demands a client certificate can be a target of jobs
alter table jobs_internal.server_directory
    add column client_certificate     text,
    add column client_key             text,
    add column client_key_fingerprint text,
    add constraint a_client_key_is_sealed check (client_key like 'sealed:%'),
    add constraint a_client_certificate_has_its_key check
        (num_nonnulls(client_certificate, client_key, client_key_fingerprint) in (0, 3));
comment on column jobs_internal.server_directory.client_certificate is
    'PEM; what we show to the server, null = nothing.';
comment on column jobs_internal.server_directory.client_key is
    'Of the client certificate, sealed for the account and this database.';
comment on column jobs_internal.server_directory.client_key_fingerprint is
    'Another one with each key that is set; sealing the same key again does not change it.';
