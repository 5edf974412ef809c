-- name: wake_machine
-- Due now; the row lock orders a signal and the end of a step. None when it has ended.
update machine set due_at = clock_timestamp() where uid = $1 and ended_at is null returning *;

-- name: send_signal
-- Waits durably, after those that came before.
insert into signal (machine_uid, name, operation_id, payload) values ($1, $2, $3, $4);

-- name: waiting_signals
-- Oldest first.
select * from signal where machine_uid = $1 and taken_at is null order by signal_id;

-- name: take_signal
-- Answered once.
update signal set taken_at = clock_timestamp() where signal_id = $1;

-- name: signal_waits
-- Whether a signal of that name has not been answered yet.
select exists (select from signal where machine_uid = $1 and name = $2 and taken_at is null);
