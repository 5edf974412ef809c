-- for: owner
create or replace function jobs_internal.get_plan(p_path text[]) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return (
        select definition_item(array[j.name, p.plan_id::text], null, null, p.created_by, p.created_at, p.created_by,
                               p.created_at, p.document || jsonb_strip_nulls(jsonb_build_object(
                                   'jobVersion', p.job_version, 'expiresAt', iso_time(p.expires_at),
                                   'jobExecutionId', x.job_execution_id)))
          from job j
          join plan p on p.job_id = j.job_id
          left join job_execution x on x.plan_of = p.plan_id
         where lower(j.name) = lower(p_path[1]) and j.deleted_at is null and not j.system
           and p.plan_id = uuid_or_null(p_path[2]) and p.expires_at > clock_timestamp());
end $$;
comment on function jobs_internal.get_plan(text[]) is
    'A plan that has not expired, with the run that was started from it; null when there is none.';
