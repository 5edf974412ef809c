-- for: owner
create or replace function jobs_internal.check_auto_disable(p_policy jsonb) returns void
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    wrong text;
begin
    if p_policy is null then
        return;
    elsif jsonb_typeof(p_policy) <> 'object' then
        perform raise_error('MU012', 'auto_disable', 'auto_disable is an object, such as {"failures": 30, "days": 7}');
    end if;
    select g.key into wrong
      from jsonb_each(p_policy) g
     where not case
         when g.key not in ('failures', 'days', 'warningFailures', 'warningDays') then false
         when jsonb_typeof(g.value) <> 'number' then false
         when g.key in ('failures', 'warningFailures')
             then g.value::numeric between 0 and 10000 and g.value::numeric % 1 = 0
         else g.value::numeric between 0 and 365 end
     limit 1;
    if found then
        perform raise_error('MU012', 'auto_disable', format('"%s" does not belong in auto_disable, or its value is wrong: '
            'failures and warningFailures are integers from 0 to 10000, days and warningDays numbers from 0 to 365', wrong));
    end if;
end $$;
comment on function jobs_internal.check_auto_disable(jsonb) is 'Raises unless the policy of auto-disable is valid.';
