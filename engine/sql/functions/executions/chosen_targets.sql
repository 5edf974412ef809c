-- for: engine
create or replace function jobs_internal.chosen_targets(p_epoch bigint, p_run uuid, p_step_id integer)
returns table (in_step boolean, target_type text, server_id text, server_name text, pool_name text, database_name text,
               schema_name text, labels jsonb, credential_id uuid, rule uuid)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    return query
    select distinct on (t.target_id) t.step_id = p_step_id, t.target_type, t.server_id, t.server_name, t.pool_name,
           t.database_name, t.schema_name, t.labels, t.credential_id, t.rule
      from chosen_target t
     where t.job_execution_id = p_run and t.step_id <= p_step_id
     order by t.target_id, t.step_id desc;
end $$;
comment on function jobs_internal.chosen_targets(bigint, uuid, integer) is
    'The chosen targets of a run that take part in a step or in one before it; in_step: they were chosen for this step.';
