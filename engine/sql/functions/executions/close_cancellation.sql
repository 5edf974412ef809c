-- for: engine
create or replace function jobs_internal.close_cancellation(p_epoch bigint, p_id uuid, p_method text) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    update cancellation c
       set completed_at  = clock_timestamp(),
           cancel_method = p_method
     where c.cancellation_id = p_id and c.completed_at is null;
end $$;
comment on function jobs_internal.close_cancellation(bigint, uuid, text) is
    'The cancellation is complete, by this method. Repeating it is harmless.';
