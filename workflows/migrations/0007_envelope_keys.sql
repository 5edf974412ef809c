-- expand: a process compares its envelope keys with the ones that sealed the secrets in this database
create table envelope_key (
    key_id      text primary key,
    check_value bytea not null,                     -- derived from the key; the key can't be derived from it
    first_used  timestamptz not null default clock_timestamp(),
    constraint check_value_of_32_bytes check (octet_length(check_value) = 32)
);
