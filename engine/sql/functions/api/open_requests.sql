-- for: engine
create or replace function jobs_internal.open_requests(p_epoch bigint)
returns table (request_id uuid, kind text, args jsonb)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    return query
    select r.request_id, r.kind, r.args || jsonb_build_object('askedBy', r.asked_by) from request r
     where r.answered_at is null and r.asked_at > clock_timestamp() - interval '30 s'
     order by r.asked_at;
end $$;
comment on function jobs_internal.open_requests(bigint) is
    'Requests without an answer whose callers still wait, oldest first.';
