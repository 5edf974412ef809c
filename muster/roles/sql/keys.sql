-- name: known_keys
-- The envelope keys that were ever used with this database, with their check values.
select key_id, check_value from envelope_key order by first_used;

-- name: add_key
-- A key that is used from now on; one that another process has added stays as it is.
insert into envelope_key (key_id, check_value) values ($1, $2) on conflict do nothing;
