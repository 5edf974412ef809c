-- for: owner
create or replace function jobs_internal.check_options(p_options jsonb) returns void
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    yes_or_no constant text := '^(true|false)$';
    percent constant text := $r$"(?!0+(\.0+)?%)(100|\d{1,2}(\.\d+)?)%"$r$;
    reserved constant text[] := array[
        'search_path', 'role', 'session_authorization', 'transaction_read_only', 'default_transaction_read_only',
        'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout',
        'client_connection_check_interval', 'application_name'];
    wrong record;
begin
    if jsonb_typeof(p_options) <> 'object' then
        perform raise_error('MU012', 'options', 'options is a JSON object');
    end if;
    -- Each value, and the values one level below, as JSON text against a pattern.
    select g.name, r.meaning into wrong
      from (select o.key as name, o.value from jsonb_each(p_options) o
            union all
            select o.key || '.' || i.key, i.value
              from jsonb_each(p_options) o
              cross join lateral jsonb_each(case when jsonb_typeof(o.value) = 'object' then o.value else '{}' end) i) g
      left join (values
          ('transaction', '^"(auto|none)"$', 'auto or none'),
          ('settings', '^{', 'an object'),
          ('settings.lockTimeoutSeconds', $r$^\d{1,7}(\.\d{1,3})?\Z$r$, 'seconds, 0 or more'),
          ('settings.role', '^"..*"$', 'the name of a role'),
          ('settings.searchPath', '^"..*"$', 'schemas with commas between them'),
          ('settings.access', '^"(readWrite|readOnly|preferStandby)"$', 'readWrite, readOnly or preferStandby'),
          ('settings.parameters', $r$^{("[A-Za-z_][A-Za-z0-9_.]*": "([^"\\]|\\.)*"(, )?)*}\Z$r$, 'an object of texts'),
          ('advance', '^"(barrier|perTarget)"$', 'barrier or perTarget'),
          ('onFailure', '^"(stop|continue)"$', 'stop or continue'),
          ('rollout', '^{', 'an object'),
          ('rollout.waves', $r$^\[(([1-9]\d{0,6}|$r$ || percent || $r$)(, )?)+\]\Z$r$,
           'a list of counts and percentages such as [1, "5%", "100%"]'),
          ('rollout.orderBy', $r$^"(random\(\d{1,18}\)|(?!random\().{1,200})"\Z$r$,
           'random(seed), where seed is a whole number, or a label'),
          ('rollout.haltAfterFailures', $r$^([1-9]\d{0,6}|$r$ || percent || ')$',
           'a count or a percentage such as "5%"'),
          ('rollout.pauseBetween', $r$^"P(?!")(\d{1,4}D)?(T(?!")(\d{1,7}H)?(\d{1,7}M)?(\d{1,7}S)?)?"\Z$r$,
           'a duration such as "PT10M", of at most 9999D, 9999999H, 9999999M and 9999999S'),
          ('rollout.gate', '^"(auto|manual)"$', 'auto or manual'),
          ('verify', '^{', 'an object'),
          ('verify.sql', '^"..*"$', 'a query'),
          ('verify.expect', '^"(nonEmpty|empty|true|value)"$', 'nonEmpty, empty, true or value'),
          ('verify.value', '^["tf0-9-]', 'a text, a number or a boolean'),
          ('verify.skipIfHolds', yes_or_no, 'true or false'),
          ('verify.timeoutSeconds', $r$^[1-9]\d{0,6}\Z$r$, 'seconds, 1 or more'),
          ('guard', '^(true|false|"job")$', 'true, false or "job"'),
          ('idempotent', yes_or_no, 'true or false'),
          ('retryOn', $r$^\[("[0-9A-Z]{2}([0-9A-Z]{3})?"(, )?)*\]\Z$r$, 'a list of SQLSTATEs or their classes'),
          ('allowEmpty', yes_or_no, 'true or false'),
          ('slotsPerDatabase', $r$^[1-9]\d{0,6}\Z$r$, 'a number, 1 or more'),
          ('jitter', $r$^(0(\.\d+)?|1(\.0+)?)\Z$r$, 'a number from 0 to 1'),
          ('output', '^{', 'an object'),
          ('output.includeTarget', yes_or_no, 'true or false'),
          ('output.onMismatch', '^"(fail|addColumn)"$', 'fail or addColumn'))
          r (name, pattern, meaning) on r.name = g.name
     where (r.name is null and g.name not like 'settings.parameters.%') or g.value::text !~ r.pattern
     limit 1;
    if found then
        perform raise_error('MU012', 'options',
            format('options.%s is %s', wrong.name, coalesce(wrong.meaning, 'not an option')));
    end if;
    if p_options ? 'rollout' and not p_options -> 'rollout' ? 'waves' then
        perform raise_error('MU012', 'options', 'options.rollout needs its waves');
    elsif jsonb_array_length(p_options #> '{rollout,waves}') > 100 then
        perform raise_error('MU012', 'options', 'options.rollout.waves has at most 100 waves');
    elsif p_options ? 'verify' and not p_options -> 'verify' ? 'sql' then
        perform raise_error('MU012', 'options', 'options.verify needs its query, sql');
    elsif (p_options #>> '{verify,expect}' is not distinct from 'value') <> (p_options -> 'verify' ? 'value') then
        perform raise_error('MU012', 'options', 'options.verify.value belongs to expect "value", and only there');
    end if;
    if p_options ->> 'advance' = 'perTarget' and p_options ? 'rollout' then
        perform raise_error('MU012', 'options',
            'options.rollout belongs to the first step of a chain, and options.advance is "perTarget"',
            'The rollout of the step before holds for the steps that follow it with "perTarget": write it there.');
    end if;
    if exists (select from regexp_split_to_table(lower(p_options #>> '{settings,searchPath}'), ',') n (name)
                where btrim(n.name, E' "\t\n\r\f\v') = 'pg_catalog') then
        perform raise_error('MU012', 'options',
            'options.settings.searchPath is a path without pg_catalog, which is searched first in any case');
    end if;
    select k.name into wrong
      from jsonb_object_keys(coalesce(p_options #> '{settings,parameters}', '{}')) k (name)
     where lower(k.name) = any(reserved) or lower(k.name) like 'muster.%'
     limit 1;
    if found then
        perform raise_error('MU012', 'options', format(
            'options.settings.parameters.%s has an option of its own, or Muster sets it', wrong.name));
    end if;
    if p_options -> 'guard' <> 'false' and (p_options ->> 'transaction' = 'none'
            or p_options #>> '{settings,access}' <> 'readWrite') then
        perform raise_error('MU012', 'options', 'options.guard needs a script that writes, in a transaction of its own');
    end if;
    perform check_variables(p_options #>> '{verify,sql}', 'options'),
            check_verify_query(p_options #>> '{verify,sql}'),
            check_variables(p_options #>> '{settings,role}', 'options');
end $$;
comment on function jobs_internal.check_options(jsonb) is 'Raises unless the options of a step are valid.';
