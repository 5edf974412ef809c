-- for: owner
create or replace function jobs_internal.expand_dispatch(p_batch jobs_internal.dispatch, p_day date)
returns table (run_day date, job_execution_id uuid, step_id integer, ordinal integer, attempt integer,
               invocation_id uuid, target_execution_id uuid, job_id uuid, job_version integer,
               run_create_time timestamptz, overrides jsonb, target_type text, target_id uuid, server_id text,
               server_name text, pool_name text, database_name text, schema_name text, labels jsonb,
               credential_id uuid, credential_version bigint, first_start timestamptz, tried_at timestamptz,
               started boolean, script_outcome text)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
begin
    return query
    with given as materialized (
        select g.*
          from unnest(p_batch.run_days, p_batch.runs, p_batch.steps, p_batch.ordinals, p_batch.attempts,
                      p_batch.invocations) with ordinality g (run_day, run, step, ordinal, attempt, invocation, place)
         where g.run_day = p_day
    ), step as materialized (
        select g.run, g.step, r.job_id, r.job_version, r.create_time, r.overrides, s.credential_id
          from (select distinct g.run, g.step from given g) g
         cross join lateral (select r.* from job_execution r where r.job_execution_id = g.run limit 1) r
         cross join lateral (
               select s.credential_id from job_step s
                where (s.job_id, s.version, s.step_id) = (r.job_id, r.job_version, g.step) limit 1) s
    )
    select p_day, g.run, g.step, g.ordinal, g.attempt, g.invocation, x.target_execution_id, s.job_id, s.job_version,
           s.create_time, s.overrides, d.target_type, d.target_id, d.server_id, d.server_name, d.pool_name,
           d.database_name, d.schema_name, d.labels, c.credential_id, c.row_version, x.start_time, x.tried_at,
           t.lifecycle = 'InProgress', x.checkpoint ->> 'script'
      from given g
      join step s on (s.run, s.step) = (g.run, g.step)
     cross join lateral (
           select t.lifecycle from task t
            where (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt)
                  = (p_day, g.run, g.step, g.ordinal, g.attempt)
              and t.invocation_id = g.invocation and t.end_time is null limit 1) t
     cross join lateral (
           select x.* from target_execution x
            where (x.run_day, x.job_execution_id, x.step_id, x.ordinal) = (p_day, g.run, g.step, g.ordinal) limit 1) x
     -- A range of one in its order: only the primary key has that, and the other index would be read to its end.
     cross join lateral (
           select d.* from snapshot_target d
            where d.snapshot_id = x.snapshot_id and d.ordinal between g.ordinal and g.ordinal
            order by d.ordinal limit 1) d
      left join lateral (
           select c.credential_id, c.row_version from credential c
            where c.credential_id = coalesce(s.credential_id, d.credential_id, (
                      select n.credential_id from credential n, server_directory v
                       where v.server_id = d.server_id and lower(n.name) = lower(v.job_credential))) limit 1) c on true
     order by g.place;
end $$;
comment on function jobs_internal.expand_dispatch(jobs_internal.dispatch, date) is
    'The unfinished tasks of a dispatch in runs of one day, with all that running them needs. A task with started '
    'was started by a call whose reply was lost; one with script_outcome begins with the verify query.';
