-- for: engine
create or replace function jobs_internal.answer_request(p_epoch bigint, p_request_id uuid, p_answer jsonb)
returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    update request r
       set answer = p_answer, answered_at = clock_timestamp()
     where r.request_id = p_request_id and r.answered_at is null;
    delete from request r where r.asked_at < clock_timestamp() - interval '1 hour';
end $$;
comment on function jobs_internal.answer_request(bigint, uuid, jsonb) is
    'Stores the first answer to a request; deletes requests that are older than an hour.';
