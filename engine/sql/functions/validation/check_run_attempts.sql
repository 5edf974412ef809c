-- for: owner
create or replace function jobs_internal.check_run_attempts(p_rules jsonb) returns void
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    field text;
    value jsonb;
begin
    if p_rules is null then
        return;
    elsif jsonb_typeof(p_rules) <> 'object' or jsonb_typeof(p_rules -> 'enabled') is distinct from 'boolean' then
        perform raise_error('MU012', 'run_attempts', 'run_attempts is a JSON object with enabled, which is true or false',
            'Such as {"enabled": true, "maxWithProgress": 20}.');
    elsif p_rules -> 'enabled' = 'false' and p_rules <> '{"enabled": false}' then
        perform raise_error('MU012', 'run_attempts', 'with enabled: false, run_attempts has no other fields',
            'Leave them out, they would have no effect; a PATCH removes a field that is null in it.', 'OptionHasNoEffect');
    end if;
    for field, value in select * from jsonb_each(p_rules - 'enabled') loop
        if field in ('maxSuccessiveWithoutProgress', 'maxWithoutProgress', 'maxWithProgress') then
            if jsonb_typeof(value) <> 'number' or value::text !~ '^([1-9][0-9]?|100)$' then
                perform raise_error('MU012', 'run_attempts', format('run_attempts.%s is a number from 1 to 100', field));
            end if;
        elsif field = 'backoffSeconds' then
            if jsonb_typeof(value) <> 'array' or jsonb_array_length(value) not between 1 and 20
               or exists (select from jsonb_array_elements(value) e
                           where jsonb_typeof(e) <> 'number' or e::text !~ '^[0-9]{1,5}$' or e::text::integer > 86400) then
                perform raise_error('MU012', 'run_attempts',
                    'run_attempts.backoffSeconds is a list of 1 to 20 numbers from 0 to 86400');
            end if;
        else
            perform raise_error('MU012', 'run_attempts', format('run_attempts has no field "%s"', field),
                'There are enabled, maxSuccessiveWithoutProgress, maxWithoutProgress, maxWithProgress and backoffSeconds.');
        end if;
    end loop;
end $$;
comment on function jobs_internal.check_run_attempts(jsonb) is
    'Raises unless these are rules for the attempts of the runs of a job; null is the account''s.';
