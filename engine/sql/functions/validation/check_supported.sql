-- for: owner
create or replace function jobs_internal.check_supported(p_step jobs_internal.job_step) returns void
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    unsupported record;
begin
    select o.field, o.name into unsupported
      from (values
        (p_step.output_type is not null, 'output_type', 'an output'),
        (p_step.options ? 'output', 'options', 'options.output')
      ) o (used, field, name)
     where o.used
     limit 1;
    if found then
        perform raise_error('MU012', unsupported.field, unsupported.name || ' is not supported by this version',
            'Leave it out.', 'OptionNotSupported');
    end if;
end $$;
comment on function jobs_internal.check_supported(jobs_internal.job_step) is
    'Raises if a step has an option that this version does not support.';
