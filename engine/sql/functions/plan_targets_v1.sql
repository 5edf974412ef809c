-- for: engine
create or replace function jobs_internal.plan_targets_v1(
    p_epoch bigint, p_job_execution_id uuid, p_step_id integer, p_snapshot_id uuid, p_wave_starts integer[] default '{}'
) returns integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run job_execution;
begin
    perform fence_v1(p_epoch);
    select * into strict run from job_execution x where x.job_execution_id = p_job_execution_id;
    perform plan_targets_v2(run, p_step_id, p_snapshot_id, p_wave_starts);
    return (select s.targets from snapshot s where s.snapshot_id = p_snapshot_id);
end $$;
comment on function jobs_internal.plan_targets_v1(bigint, uuid, integer, uuid, integer[]) is
    'plan_targets_v2 for engines that do not call plan_step_v1: how many targets they are. Again is harmless.';
