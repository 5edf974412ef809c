-- expand: an ended target of a live step can be retried
alter table jobs_internal.job_execution
    add column retries integer not null default 0,
    add constraint retries_are_counted check (retries >= 0);
comment on column jobs_internal.job_execution.retries is
    'How often ended targets of the run went back to Created: a core that has read a smaller number loads the run again.';
create index job_execution_with_retries on jobs_internal.job_execution (job_execution_id)
    where end_time is null and retries > 0;

-- The one move of an ended target: a retry gives it a fresh budget of attempts and a fresh timeout.
drop trigger a_target_moves_legally on jobs_internal.target_execution;
create trigger a_target_moves_legally before update of lifecycle on jobs_internal.target_execution
    for each row when (old.lifecycle <> new.lifecycle and case
        when new.lifecycle = 'Created' then
            old.end_time is null or old.lifecycle = 'Succeeded'
            or new.free_attempts <> new.attempts or coalesce(new.start_time, new.tried_at) is not null
        else
            old.end_time is not null or (old.lifecycle, new.lifecycle) in
                (('Created', 'WaitingForRetry'), ('WaitingForRetry', 'Succeeded'), ('Created', 'Succeeded'))
        end)
    execute function jobs_internal.refuse_move();

drop function if exists jobs_internal.live_runs(bigint, uuid[]);
drop function if exists jobs_internal.poll_updates(bigint, uuid[]);
