-- for: owner
create or replace function jobs_internal.new_version(
    p_job jobs_internal.job, p_without integer, p_with jobs_internal.job_step
) returns integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    number constant integer := p_job.version + 1;
    now constant timestamptz := clock_timestamp();
    who record;
begin
    select * into who from current_actor();
    insert into job_version (job_id, version, created_by, created_at) values (p_job.job_id, number, who.caller, now);
    -- The other steps move up or down; only a step that moves gets a new row_version.
    insert into job_step
    select c.*
      from (select s as step, row_number() over (order by s.step_id) as rank
              from job_step s
             where (s.job_id, s.version) = (p_job.job_id, p_job.version)
               and s.step_id is distinct from p_without) o
      cross join lateral (select o.rank + coalesce(o.rank >= p_with.step_id, false)::integer as place) p
      cross join lateral jsonb_populate_record(o.step, jsonb_build_object('version', number)
          || case when p.place = (o.step).step_id then '{}'
                  else jsonb_build_object('step_id', p.place, 'row_version', nextval('row_version'),
                                          'modified_by', who.caller, 'modified_at', now) end) c;
    if p_with.step_id is not null then
        p_with.job_id := p_job.job_id;
        p_with.version := number;
        p_with.row_version := nextval('row_version');
        p_with.created_by := coalesce(p_with.created_by, who.caller);
        p_with.created_at := coalesce(p_with.created_at, now);
        p_with.modified_by := who.caller;
        p_with.modified_at := now;
        insert into job_step select p_with.*;
    end if;
    if exists (select from job_step s
                where (s.job_id, s.version, s.step_id) = (p_job.job_id, number, 1)
                  and s.options ->> 'advance' = 'perTarget') then
        perform raise_error('MU012', 'options',
            format('options.advance of the first step can''t be "perTarget": no step is before step "%s"',
                   (select s.name from job_step s where (s.job_id, s.version, s.step_id) = (p_job.job_id, number, 1))),
            'Set it to "barrier" before the step becomes the first one.', 'OptionHasNoEffect');
    end if;
    -- A job of type Once may have waited for its first step.
    update job
       set version = number, row_version = nextval('row_version'), modified_by = who.caller, modified_at = now,
           next_slot = case when schedule_type <> 'Once' then next_slot end
     where job_id = p_job.job_id;
    return number;
end $$;
comment on function jobs_internal.new_version(jobs_internal.job, integer, jobs_internal.job_step) is
    'Creates a version of the job, which is locked, without one step and with another.';
