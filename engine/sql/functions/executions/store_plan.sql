-- for: engine
create or replace function jobs_internal.store_plan(
    p_epoch bigint, p_plan_id uuid, p_job_id uuid, p_version integer, p_document jsonb, p_step_ids integer[],
    p_snapshot_ids uuid[]
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    insert into plan (plan_id, job_id, job_version, document, created_by)
    select p_plan_id, p_job_id, p_version, p_document, r.asked_by from request r where r.request_id = p_plan_id
    on conflict (plan_id) do nothing;
    if found then
        insert into plan_snapshot (plan_id, step_id, snapshot_id)
        select p_plan_id, s.step_id, s.snapshot_id from unnest(p_step_ids, p_snapshot_ids) s (step_id, snapshot_id);
    end if;
end $$;
comment on function jobs_internal.store_plan(bigint, uuid, uuid, integer, jsonb, integer[], uuid[]) is
    'Stores the plan that this request asked for, with the snapshots of its steps. Storing it again is harmless.';
