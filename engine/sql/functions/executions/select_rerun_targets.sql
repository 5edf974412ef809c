-- for: owner
create or replace function jobs_internal.select_rerun_targets(
    p_rerun jobs_internal.job_execution, p_origin jobs_internal.job_execution, p_only text[], p_target_ids uuid[]
) returns bigint
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    number bigint;
begin
    with candidate as materialized (
        select n.step_id, d.*,
               case when p_target_ids is null then
                   case when x.end_reason = 'OutcomeUnknown' then 'unknown' = any(select lower(o) from unnest(p_only) o)
                        else lower(x.lifecycle) = any(select lower(o) from unnest(p_only) o) end
               else d.target_id = any(p_target_ids) end as chosen
          from step_execution e
          join job_step n
            on (n.job_id, n.version) = (p_rerun.job_id, p_rerun.job_version) and lower(n.name) = lower(e.step_name)
          join target_execution x
            on (x.run_day, x.job_execution_id, x.step_id) = (e.run_day, e.job_execution_id, e.step_id)
          join snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)
         where (e.run_day, e.job_execution_id) = (p_origin.run_day, p_origin.job_execution_id)
    ), first as (
        select c.target_id, min(c.step_id) as step_id from candidate c where c.chosen group by c.target_id
    )
    insert into chosen_target (job_execution_id, step_id, target_id, target_type, server_id, server_name, pool_name,
                               database_name, schema_name, labels, credential_id, rule)
    select p_rerun.job_execution_id, c.step_id, c.target_id, c.target_type, c.server_id, c.server_name, c.pool_name,
           c.database_name, c.schema_name, c.labels, c.credential_id, c.rule
      from candidate c
      join first f on f.target_id = c.target_id and c.step_id >= f.step_id;
    get diagnostics number = row_count;
    return number;
end $$;
comment on function jobs_internal.select_rerun_targets(
    jobs_internal.job_execution, jobs_internal.job_execution, text[], uuid[]) is
    'Copies the targets of the origin that ended so, or have these ids, from the first step on in which they did; '
    'steps are matched by name. Returns how many there are, counted once for each step.';
