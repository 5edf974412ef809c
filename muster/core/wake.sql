-- name: wake
-- Wakes the processes that listen to the channel; inside a transaction, when it commits.
select pg_notify('muster_' || $1::text, '');

-- name: alive
-- Fails when the connection is gone without a word.
select 1;
