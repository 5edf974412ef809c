-- for: owner
create or replace function jobs_internal.list_job_runs(p_job text, p_after jsonb, p_top integer, p_filters jsonb)
returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    last_time constant timestamptz := coalesce((p_after ->> 'createTime')::timestamptz, 'infinity');
    last_id constant uuid := coalesce((p_after ->> 'id')::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
    only_names constant text[] := case when p_filters ? 'only'
                                       then array(select jsonb_array_elements_text(p_filters -> 'only')) end;
    f record;
    named uuid[];
begin
    select * into f from execution_filter(p_filters, p_after);
    -- Several jobs have had the name if one was deleted.
    select array_agg(j.job_id) into named
      from job j
     where lower(j.name) = lower(p_job) and (j.deleted_at is null or f.deleted);
    if named is null then
        raise exception 'job "%" was not found', p_job using errcode = 'MU010';
    end if;
    return run_page(array(
        select x.job_execution_id
          from unnest(named) one (job_id)
         cross join lateral (
               select x.create_time, x.job_execution_id
                 from job_execution x
                where x.job_id = one.job_id
                  and (x.create_time, x.job_execution_id) < (last_time, last_id)
                  and x.create_time >= f.since and x.create_time < f.until
                  and (f.ended_since is null or x.end_time >= f.ended_since)
                  and (f.ended_until is null or x.end_time < f.ended_until)
                  and (f.active is null or (x.end_time is null) = f.active)
                  and (f.lifecycles is null or x.lifecycle = any(f.lifecycles))
                  and (only_names is null or x.job_execution_id::text = any(only_names))
                order by x.create_time desc, x.job_execution_id desc
                limit p_top + 1 + f.skip) x
         order by x.create_time desc, x.job_execution_id desc
         limit p_top + 1 offset f.skip), p_top);
end $$;
comment on function jobs_internal.list_job_runs(text, jsonb, integer, jsonb) is 'A page of a job''s runs.';
