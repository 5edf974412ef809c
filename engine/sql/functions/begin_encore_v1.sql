-- for: engine
create or replace function jobs_internal.begin_encore_v1(
    p_epoch bigint, p_job_id uuid, p_job_version integer, p_step_id integer, p_group_version bigint, p_snapshot_id uuid,
    p_hosts uuid[], p_ordinals integer[], p_invocations uuid[],
    out job_execution_id uuid, out run_day date, out begun text, out skipped integer[]
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
declare
    live uuid[];
    run job_execution;
    many constant integer[] := array[cardinality(p_hosts)];
begin
    perform fence_v1(p_epoch);
    live := array(select x.job_execution_id from job_execution x where x.end_time is null limit 2);
    -- While somebody forgets snapshots (hold_snapshots_v1) nothing is expected.
    if cardinality(live) <> 1 or not pg_try_advisory_xact_lock_shared(hashtextextended('muster snapshots', 0)) then
        return;
    end if;
    select * into run from job_execution x
     where x.job_execution_id = live[1] and x.lifecycle = 'Created' and x.cancel_requested_at is null
       and (x.job_id, x.job_version) = (p_job_id, p_job_version)
       and exists (select from snapshot s
                     join target_group g on (g.target_group_id, g.row_version) = (s.target_group_id, p_group_version)
                     join directory_revision r on r.revision = s.directory_revision
                    where s.snapshot_id = p_snapshot_id)
       and not exists (select from cancellation c where c.completed_at is null)
       for no key update;
    if not found then
        return;
    end if;
    begun := may_begin_v1(run);
    job_execution_id := run.job_execution_id;
    run_day := run.run_day;
    if begun = 'Begun' then
        perform make_step_v1(run, p_step_id, p_snapshot_id);
        skipped := make_targets_v1(run, p_step_id, p_snapshot_id);
    end if;
    if skipped = '{}' and p_hosts <> '{}' then
        -- Nobody waits for the disk: what is reserved is no attempt, and a start, which is waited for, comes behind it in
        -- the log. A crash may take it back, and ends the core's session, which then believes nothing that it remembers.
        perform set_config('synchronous_commit', 'off', true);
        perform reserve_tasks_v1(
            p_epoch, p_hosts, array_fill(run.run_day, many), array_fill(run.job_execution_id, many),
            array_fill(p_step_id, many), p_ordinals, array_fill(1, many), p_invocations, '{}', '{}', '{}');
    end if;
end $$;
comment on function jobs_internal.begin_encore_v1(
    bigint, uuid, integer, integer, bigint, uuid, uuid[], integer[], uuid[]) is
    'Where the only run that is not over is a new one of this version, and the group and the directory are as they were '
    'when the snapshot was made, its step has the same targets and these tasks of them are reserved: what plan_step_v1 says '
    'of it. Otherwise no run is named and nothing was done.';
