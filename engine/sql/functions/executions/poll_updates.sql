-- for: engine
create or replace function jobs_internal.poll_updates(
    p_epoch bigint, p_known uuid[], out runs jsonb, out orders jsonb, out rollouts jsonb, out retries jsonb,
    out group_name text, out document jsonb
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    groups bigint;
begin
    select coalesce(jsonb_agg(to_jsonb(r)), '[]'),
           count(distinct r.steps #>> '{0,targetGroupName}') filter (where r.lifecycle = 'Created'),
           min(r.steps #>> '{0,targetGroupName}') filter (where r.lifecycle = 'Created')
      into runs, groups, group_name
      from live_runs(p_epoch, p_known) r;
    select coalesce(jsonb_agg(to_jsonb(c)), '[]') into orders from open_cancellations(p_epoch) c;
    rollouts := rollout_updates();
    select coalesce(jsonb_agg(jsonb_build_object(
               'job_execution_id', x.job_execution_id, 'retries', x.retries)), '[]')
      into retries
      from job_execution x
     where x.end_time is null and x.retries > 0 and x.job_execution_id = any(p_known);
    -- Only one document, since it contains all servers.
    if groups = 1 and exists (select from target_group t where lower(t.name) = lower(group_name)) then
        document := group_document(group_name);
    end if;
end $$;
comment on function jobs_internal.poll_updates(bigint, uuid[]) is
    'The rows of live_runs, open_cancellations and rollout_updates, how often targets of known runs were retried and, if '
    'all runs that have not begun start with the same target group, the document of that group.';
