-- name: write
-- Fails when the database can't be written to.
insert into readiness (written_at) values (clock_timestamp())
on conflict (only_row) do update set written_at = excluded.written_at;
