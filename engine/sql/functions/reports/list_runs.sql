-- for: owner
create or replace function jobs_internal.list_runs(p_after jsonb, p_top integer, p_filters jsonb) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    last_time constant timestamptz := coalesce((p_after ->> 'createTime')::timestamptz, 'infinity');
    last_id constant uuid := coalesce((p_after ->> 'id')::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
    f record;
begin
    select * into f from execution_filter(p_filters, p_after);
    return run_page(array(
        select x.job_execution_id
          from job_execution x
          join job j on j.job_id = x.job_id
         where (x.create_time, x.job_execution_id) < (last_time, last_id)
           and (j.deleted_at is null or f.deleted)
           and x.origin <> 'system'
           and x.create_time >= f.since and x.create_time < f.until
           and (f.ended_since is null or x.end_time >= f.ended_since)
           and (f.ended_until is null or x.end_time < f.ended_until)
           and (f.active is null or (x.end_time is null) = f.active)
           and (f.lifecycles is null or x.lifecycle = any(f.lifecycles))
         order by x.create_time desc, x.job_execution_id desc
         limit p_top + 1 offset f.skip), p_top);
end $$;
comment on function jobs_internal.list_runs(jsonb, integer, jsonb) is 'A page of the account''s runs.';
