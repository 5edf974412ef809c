-- for: operator, admin
create or replace function jobs.sp_stop_target(
    job_execution_id uuid, step_name text, target_id uuid, reason text default null
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    now constant timestamptz := clock_timestamp();
    step constant step_execution := get_current_step(sp_stop_target.job_execution_id, sp_stop_target.step_name);
    place constant integer := (
        select d.ordinal from snapshot_target d
         where (d.snapshot_id, d.target_id) = (step.snapshot_id, sp_stop_target.target_id));
    target target_execution;
    who record;
begin
    perform check_reason(sp_stop_target.reason);
    select * into target from target_execution x
     where (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
           = (step.run_day, step.job_execution_id, step.step_id, place) for no key update;
    if not found then
        raise exception 'step "%" of execution % has no target %', step.step_name, step.job_execution_id,
              sp_stop_target.target_id using errcode = 'MU010', column = 'target_id';
    elsif target.end_time is not null then
        raise exception 'target % has finished: %', sp_stop_target.target_id, target.lifecycle
            using errcode = 'MU013', column = 'target_id';
    end if;
    update target_execution x
       set cancel_requested_at = coalesce(x.cancel_requested_at, now)
     where (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
           = (step.run_day, step.job_execution_id, step.step_id, place);
    select * into who from current_actor();
    insert into cancellation (job_execution_id, step_id, ordinal, requested_by, door, reason, requested_at)
    values (step.job_execution_id, step.step_id, place, who.caller, who.door, sp_stop_target.reason, now);
    perform write_audit('sp_stop_target', jsonb_build_object(
        'job_execution_id', step.job_execution_id, 'step_name', step.step_name,
        'target_id', sp_stop_target.target_id));
    perform pg_notify('muster_execution', '');
end $$;
comment on function jobs.sp_stop_target(uuid, text, uuid, text) is
    'Cancels a step of a run on one target: it ends as soon as its attempt has ended.';
