-- for: agent
create or replace function jobs_internal.start_job(p_job text, p_execution_id uuid, p_doc jsonb) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    run_exists constant boolean := exists (select from job_execution x where x.job_execution_id = p_execution_id);
    field constant text := (select min(k) from jsonb_object_keys(coalesce(p_doc, '{}')) k
                                   where k not in ('planId', 'targets', 'limit', 'overrides'));
    started uuid;
begin
    if field is not null then
        raise exception 'a start has no option "%"', field using errcode = 'MU012', column = field;
    end if;
    if exists (select from job j where lower(j.name) = lower(p_job) and j.deleted_at is null and j.system) then
        raise exception 'job "%" is a system job and can''t be started', p_job
            using errcode = 'MU013', column = 'job_name';
    end if;
    started := sp_start_job(p_job, p_execution_id, p_doc -> 'targets', (p_doc ->> 'limit')::integer,
                            p_doc -> 'overrides', (p_doc ->> 'planId')::uuid);
    return jsonb_build_object(
        'created', not run_exists,
        'item', run_item((select x from job_execution x where x.job_execution_id = started)));
end $$;
comment on function jobs_internal.start_job(text, uuid, jsonb) is
    'jobs.sp_start_job for REST; returns whether the run is new, and the run.';
