-- for: owner
create or replace function jobs_internal.check_reason(p_reason text) returns void
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    if char_length(p_reason) > 1000 then
        perform raise_error('MU012', 'reason', 'reason has at most 1000 characters');
    end if;
end $$;
comment on function jobs_internal.check_reason(text) is 'Raises unless the reason of a cancellation is short.';
