-- for: engine
create or replace function jobs_internal.take_v2(p_host uuid, p_after bigint)
returns table (number bigint, kind text, run_day date, job_execution_id uuid, step_id integer, ordinal integer,
               attempt integer, invocation_id uuid, target_execution_id uuid, job_id uuid, job_version integer,
               run_create_time timestamptz, overrides jsonb, target_type text, target_id uuid, server_id text,
               server_name text, pool_name text, database_name text, schema_name text, labels jsonb,
               credential_id uuid, credential_version bigint, first_start timestamptz, tried_at timestamptz,
               leader uuid, directory bigint)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return query
    select t.* from take_v3(p_host, p_after, true) t;
end $$;
comment on function jobs_internal.take_v2(uuid, bigint) is
    'What take_v3 tells who is hurried.';
