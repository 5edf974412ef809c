-- for: engine
create or replace function jobs_internal.record_delivery(
    p_epoch bigint, p_webhook_id uuid, p_number bigint, p_delivered boolean, p_status_code integer, p_error text,
    p_pause double precision
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    now constant timestamptz := clock_timestamp();
begin
    perform check_epoch(p_epoch);
    update webhook_delivery d
       set status           = case when p_delivered then 'Delivered' when p_pause is null then 'Failed'
                                   else 'Pending' end,
           attempts         = d.attempts + 1,
           not_before       = now + make_interval(secs => coalesce(p_pause, 0)),
           last_attempt_at  = now,
           last_status_code = p_status_code,
           last_error       = left(p_error, 1000)
     where (d.webhook_id, d.number) = (p_webhook_id, p_number) and d.status = 'Pending';
end $$;
comment on function jobs_internal.record_delivery(bigint, uuid, bigint, boolean, integer, text, double precision) is
    'Records the end of an attempt; p_pause is the time until the next one, null: there is none.';
