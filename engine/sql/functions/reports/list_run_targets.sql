-- for: owner
create or replace function jobs_internal.list_run_targets(
    p_run jobs_internal.job_execution, p_step_id integer, p_after jsonb, p_top integer, p_filters jsonb
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    last_step constant integer := coalesce((p_after ->> 'stepId')::integer, 2147483647);
    last_ordinal constant integer := coalesce((p_after ->> 'ordinal')::integer, 2147483647);
    lifecycles constant text[] := array(select jsonb_array_elements_text(p_filters -> 'lifecycle'));
    server constant text := lower(p_filters ->> 'server');
    fingerprint constant text := p_filters ->> 'fingerprint';
    wanted_wave constant integer := p_filters ->> 'wave';
    only_names constant text[] := case when p_filters ? 'only'
                                       then array(select jsonb_array_elements_text(p_filters -> 'only')) end;
    f record;
    steps integer[];
    ordinals integer[];
begin
    select * into f from execution_filter(p_filters, p_after);
    select array_agg(page.step_id order by page.step_id desc, page.ordinal desc),
           array_agg(page.ordinal order by page.step_id desc, page.ordinal desc)
      into steps, ordinals
      from (select s.step_id, t.ordinal
              from step_execution s
             cross join lateral (
                   select t.ordinal
                     from target_execution t
                    where t.run_day = p_run.run_day
                      and t.job_execution_id = p_run.job_execution_id
                      and t.step_id = s.step_id
                      and t.ordinal < case s.step_id when last_step then last_ordinal else 2147483647 end
                      and t.create_time >= f.since and t.create_time < f.until
                      and (f.ended_since is null or t.end_time >= f.ended_since)
                      and (f.ended_until is null or t.end_time < f.ended_until)
                      and (f.active is null or (t.end_time is null) = f.active)
                      and (only_names is null or exists (
                           select from snapshot_target d
                            where (d.snapshot_id, d.ordinal) = (t.snapshot_id, t.ordinal)
                              and d.target_id::text = any(only_names)))
                      and (not p_filters ? 'lifecycle' or t.lifecycle = any(lifecycles))
                      and (wanted_wave is null or t.wave = wanted_wave)
                      and (server is null or server = (
                           select lower(d.server_name) from snapshot_target d
                            where (d.snapshot_id, d.ordinal) = (t.snapshot_id, t.ordinal)))
                      and (fingerprint is null or fingerprint = (
                           select k.error_fingerprint from task k
                            where (k.run_day, k.job_execution_id, k.step_id, k.ordinal)
                                  = (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                              and k.end_time is not null
                            order by k.attempt desc limit 1))
                    order by t.ordinal desc
                    limit p_top + 1 + f.skip) t
             where s.run_day = p_run.run_day
               and s.job_execution_id = p_run.job_execution_id
               and s.step_id <= last_step
               and (p_step_id is null or s.step_id = p_step_id)
               -- All targets of a finished step have finished.
               and (s.end_time is null or f.active is distinct from true)
             order by s.step_id desc, t.ordinal desc
             limit p_top + 1 offset f.skip) page;
    -- Each by its key: without statistics the planner would rather read the whole step.
    return (
        select jsonb_build_object(
                   'items', coalesce(jsonb_agg(target_item(p_run, s.step_name, found.target, found.described)
                                               order by one.step_id desc, one.ordinal desc), '[]'),
                   'next', case when cardinality(steps) > p_top then jsonb_build_object(
                               'stepId', steps[p_top], 'ordinal', ordinals[p_top]) end)
          from unnest(steps[:p_top], ordinals[:p_top]) one (step_id, ordinal)
          join step_execution s
            on (s.run_day, s.job_execution_id, s.step_id) = (p_run.run_day, p_run.job_execution_id, one.step_id)
         cross join lateral (
               select t as target, d as described
                 from target_execution t
                 join snapshot_target d on (d.snapshot_id, d.ordinal) = (t.snapshot_id, t.ordinal)
                where (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                      = (p_run.run_day, p_run.job_execution_id, one.step_id, one.ordinal)
                limit 1) found);
end $$;
comment on function jobs_internal.list_run_targets(jobs_internal.job_execution, integer, jsonb, integer, jsonb) is
    'A page of the targets of a run, or of one step of it; those of a later step are newer.';
