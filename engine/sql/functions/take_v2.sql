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
    select t.number, t.kind, t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt, t.invocation_id,
           t.target_execution_id, t.job_id, t.job_version, t.run_create_time, t.overrides, t.target_type, t.target_id,
           t.server_id, t.server_name, t.pool_name, t.database_name, t.schema_name, t.labels, t.credential_id,
           t.credential_version, t.first_start, t.tried_at, t.leader, t.directory
      from take_v3(p_host, p_after, true) t
     where not t.started;
end $$;
comment on function jobs_internal.take_v2(uuid, bigint) is
    'What take_v3 tells who is hurried, without what has started.';
