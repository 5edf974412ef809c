-- for: agent
create or replace function jobs_internal.create_request(p_request_id uuid, p_kind text, p_args jsonb) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    if p_kind is null or p_kind not in ('resolve', 'why', 'plan', 'doctor', 'login') then
        raise exception 'there are no requests of kind "%"', p_kind using errcode = 'MU012', column = 'kind';
    elsif p_kind in ('resolve', 'doctor')
          and not exists (select from target_group g where lower(g.name) = lower(p_args ->> 'targetGroup')) then
        raise exception 'target group "%" was not found', p_args ->> 'targetGroup' using errcode = 'MU010';
    elsif p_kind = 'plan' then
        perform find_job(p_args ->> 'job');
    elsif p_kind = 'login'
          and not exists (select from credential c where lower(c.name) = lower(p_args ->> 'credential')) then
        raise exception 'credential "%" was not found', p_args ->> 'credential' using errcode = 'MU010';
    elsif p_kind = 'why'
          and not exists (select from job_execution x where x.job_execution_id = uuid_or_null(p_args ->> 'run')) then
        raise exception 'execution % was not found', p_args ->> 'run' using errcode = 'MU010';
    end if;
    insert into request (request_id, kind, args, asked_by)
    select p_request_id, p_kind, p_args, a.caller from current_actor() a
    on conflict (request_id) do nothing;
    if not exists (select from request r
                    where r.request_id = p_request_id and (r.kind, r.args) = (p_kind, p_args)) then
        raise exception 'request % exists with another kind or other arguments', p_request_id using errcode = 'MU017';
    end if;
    perform pg_notify('muster_request', '');
    return '{}';
end $$;
comment on function jobs_internal.create_request(uuid, text, jsonb) is
    'Creates a request to the engine; read_request returns its answer. Repeating the call is harmless.';
