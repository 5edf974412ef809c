-- for: owner
create or replace function jobs_internal.check_overrides(p_overrides jsonb) returns void
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    wrong record;
begin
    if jsonb_typeof(p_overrides) <> 'object' or p_overrides = '{}' then
        perform raise_error('MU012', 'overrides', 'overrides is a JSON object with at least one option');
    end if;
    select o.key, coalesce('is ' || r.meaning, 'can''t be set for one run') as meaning into wrong
      from jsonb_each(p_overrides) o
      left join (values
          ('timeoutSeconds', 1, 'a number from 1 to 2147483'),
          ('retryAttempts', 0, 'a number from 0 to 2147483'),
          ('maxParallelism', 1, 'a number from 1 to 2147483'),
          ('lockTimeoutSeconds', 0, null),
          ('rollout', null, null)) r (name, least, meaning) on r.name = o.key
     where r.name is null
        or r.meaning is not null and (o.value::text !~ $r$^\d{1,7}\Z$r$
                                      or o.value::text::integer not between r.least and 2147483)
     limit 1;
    if found then
        perform raise_error('MU012', 'overrides', format('overrides.%s %s', wrong.key, wrong.meaning),
            'The options are timeoutSeconds, retryAttempts, maxParallelism, lockTimeoutSeconds and rollout.');
    end if;
    if p_overrides ? 'rollout' then
        perform check_options(jsonb_build_object('rollout', p_overrides -> 'rollout'));
    end if;
    if p_overrides ? 'lockTimeoutSeconds' then
        perform check_options(jsonb_build_object('settings', jsonb_build_object(
            'lockTimeoutSeconds', p_overrides -> 'lockTimeoutSeconds')));
    end if;
end $$;
comment on function jobs_internal.check_overrides(jsonb) is
    'Raises unless these are values that a run may have instead of those of its steps.';
