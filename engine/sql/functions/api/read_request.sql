-- for: agent
create or replace function jobs_internal.read_request(p_request_id uuid) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    asked request;
begin
    select * into asked from request r where r.request_id = p_request_id;
    if not found then
        raise exception 'request % was not found', p_request_id using errcode = 'MU010';
    end if;
    return jsonb_build_object('answered', asked.answered_at is not null, 'answer', asked.answer);
end $$;
comment on function jobs_internal.read_request(uuid) is 'Returns whether the engine has answered, and its answer.';
