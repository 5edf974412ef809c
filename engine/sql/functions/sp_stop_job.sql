-- for: operator, admin
create or replace function jobs.sp_stop_job(job_execution_id uuid, reason text default null) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    now constant timestamptz := clock_timestamp();
    run job_execution;
    at_once boolean;
    who record;
begin
    select * into run from job_execution x
     where x.job_execution_id = sp_stop_job.job_execution_id for no key update;
    if not found then
        raise exception 'execution % was not found', sp_stop_job.job_execution_id
            using errcode = 'MU010', column = 'job_execution_id';
    elsif run.end_time is not null then
        raise exception 'execution % is over: %', run.job_execution_id, run.lifecycle
            using errcode = 'MU013', column = 'job_execution_id';
    end if;
    at_once := run.lifecycle = 'Created'
               and not exists (select from step_execution s
                                where (s.run_day, s.job_execution_id) = (run.run_day, run.job_execution_id));
    select * into who from actor_v1();
    insert into cancellation (job_execution_id, requested_by, door, reason, requested_at, completed_at, needed)
    values (run.job_execution_id, who.caller, who.door, sp_stop_job.reason, now,
            case when at_once then now end, case when at_once then 'nothing' end);
    if at_once then
        update job_execution x
           set lifecycle           = 'Canceled',
               cancel_requested_at = now,
               end_time            = now,
               last_message        = 'Canceled before it started.'
         where x.job_execution_id = run.job_execution_id;
    else
        update job_execution x
           set cancel_requested_at = coalesce(x.cancel_requested_at, now)
         where x.job_execution_id = run.job_execution_id;
    end if;
    perform note_v1('sp_stop_job', jsonb_build_object('job_execution_id', run.job_execution_id));
    perform pg_notify('muster_execution', '');
end $$;
comment on function jobs.sp_stop_job(uuid, text) is
    'The run stops as soon as the targets let go; one that has not begun is Canceled at once.';
