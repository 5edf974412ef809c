-- for: owner
create or replace function jobs_internal.auto_disable_decision(
    p_policy jsonb, p_failures integer, p_since timestamptz, p_now timestamptz, p_warned boolean
) returns text
language sql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    -- Both limits must be reached: many failures of a frequent job in a short time disable nothing.
    select case when p_policy is null or p.failures = 0 then null
                when p_failures >= p.failures and p_now >= p_since + p.days * interval '1 day' then 'disable'
                when not p_warned and p_failures >= p.warning_failures
                     and p_now >= p_since + p.warning_days * interval '1 day' then 'warn' end
      from (select g.failures, g.days,
                   coalesce((p_policy ->> 'warningFailures')::integer, ceil(g.failures * 2 / 3.0)) as warning_failures,
                   coalesce((p_policy ->> 'warningDays')::double precision, g.days * 4 / 7.0) as warning_days
              from (select coalesce((p_policy ->> 'failures')::integer, 30) as failures,
                           coalesce((p_policy ->> 'days')::double precision, 7) as days) g) p
$$;
comment on function jobs_internal.auto_disable_decision(jsonb, integer, timestamptz, timestamptz, boolean) is
    'disable, warn or null: by the failures in a row, the time since the last success, and whether a warning was '
    'written. A policy without values is 30 failures in 7 days, with the warning at 20 failures and 4 days.';
