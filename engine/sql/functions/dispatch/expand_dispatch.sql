-- for: owner
create or replace function jobs_internal.expand_dispatch(
    p_batch jobs_internal.dispatch, p_day date, p_directory bigint
) returns setof jobs_internal.dispatched_task
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set enable_sort = off
as $$
begin
    return query
    with item as materialized (
        select i.*
          from unnest(p_batch.run_days, p_batch.runs, p_batch.steps, p_batch.ordinals, p_batch.attempts,
                      p_batch.invocations, p_batch.slots)
               with ordinality i (run_day, run, step, ordinal, attempt, invocation, slot, place)
         where i.run_day = p_day
    ), step as materialized (
        select i.run, i.step, r.job_id, r.job_version, r.create_time, r.overrides, s.credential_id
          from (select distinct i.run, i.step from item i) i
         cross join lateral (select r.* from job_execution r where r.job_execution_id = i.run limit 1) r
         cross join lateral (
               select s.credential_id from job_step s
                where (s.job_id, s.version, s.step_id) = (r.job_id, r.job_version, i.step) limit 1) s
    )
    select p_batch.number, 'task', i.slot, t.lifecycle = 'InProgress',
           p_day, i.run, i.step, i.ordinal, i.attempt, i.invocation,
           x.target_execution_id, s.job_id, s.job_version, s.create_time,
           d.target_type, d.target_id, d.server_id, d.server_name, d.pool_name, d.database_name, d.schema_name,
           c.credential_id, c.row_version, x.start_time, x.tried_at, p_directory, x.checkpoint ->> 'script', s.overrides,
           d.labels, (x.checkpoint ->> 'attempt')::integer
      from item i
      join step s on (s.run, s.step) = (i.run, i.step)
     cross join lateral (
           select t.lifecycle from task t
            where (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt)
                  = (p_day, i.run, i.step, i.ordinal, i.attempt)
              and t.invocation_id = i.invocation and t.end_time is null limit 1) t
     cross join lateral (
           select x.* from target_execution x
            where (x.run_day, x.job_execution_id, x.step_id, x.ordinal) = (p_day, i.run, i.step, i.ordinal) limit 1) x
     -- A range of one number, in order: the planner then uses the primary key, not the index by target.
     cross join lateral (
           select d.* from snapshot_target d
            where d.snapshot_id = x.snapshot_id and d.ordinal between i.ordinal and i.ordinal
            order by d.ordinal limit 1) d
      left join lateral (
           select c.credential_id, c.row_version from credential c
            where c.credential_id = coalesce(s.credential_id, d.credential_id, (
                      select n.credential_id from credential n, server_directory v
                       where v.server_id = d.server_id and lower(n.name) = lower(v.job_credential))) limit 1) c on true
     order by i.place;
end $$;
comment on function jobs_internal.expand_dispatch(jobs_internal.dispatch, date, bigint) is
    'The unfinished tasks of a dispatch in runs of one day, in order. p_directory is the revision of the directory.';
