-- for: agent
create or replace function jobs_internal.run_query(p_doc jsonb) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    adhoc constant job := ensure_adhoc_job();
    old job_step;
    new job_step;
    started uuid;
begin
    select * into old from job_step s where (s.job_id, s.version) = (adhoc.job_id, adhoc.version);
    new := old;
    new.step_id := 1;
    new.name := 'query';
    if not p_doc ?| '{targetGroup,targets}' then
        perform raise_error('MU012', 'targets', 'a query needs a target group or targets');
    end if;
    new.target_group_id := null;
    new.target_group_name := p_doc #>> '{targetGroup,name}';
    new.target_group_as_given := p_doc #>> '{targetGroup,asGiven}';
    new.credential_name := p_doc #>> '{credential,name}';
    new.credential_as_given := p_doc #>> '{credential,asGiven}';
    new.initial_retry_interval_seconds := 1;
    new.maximum_retry_interval_seconds := 120;
    new.retry_interval_backoff_multiplier := 2;
    new.retry_attempts := 0;
    new.timeout_seconds := p_doc ->> 'timeoutSeconds';
    new.options := coalesce(p_doc -> 'options', '{}');
    perform save_step('run_query', adhoc, old, new, coalesce(p_doc ->> 'script', ''));
    started := sp_start_job('adhoc', targets => p_doc -> 'targets',
                            target_limit => (p_doc ->> 'limit')::integer);
    update job_execution x
       set overrides = x.overrides || coalesce(p_doc -> 'overrides', '{}')
     where x.job_execution_id = started;
    return jsonb_build_object(
        'created', true,
        'item', run_item((select x from job_execution x where x.job_execution_id = started)));
end $$;
comment on function jobs_internal.run_query(jsonb) is
    'Starts a run of the system job "adhoc" whose version has this query as its only step; the same query needs only '
    'one version.';
