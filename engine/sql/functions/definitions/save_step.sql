-- for: owner
create or replace function jobs_internal.save_step(
    p_action text, p_job jobs_internal.job, p_old jobs_internal.job_step, p_new jobs_internal.job_step, p_command text
) returns integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    body constant bytea := convert_to(p_command, 'UTF8');
    last integer;
    version integer;
begin
    select count(*) + (p_old.step_id is null)::integer into last
      from job_step s where (s.job_id, s.version) = (p_job.job_id, p_job.version);
    if last > 100 then
        perform raise_error('MU016', 'job_name', 'a job has at most 100 steps');
    end if;
    p_new.step_id := coalesce(p_new.step_id, last);
    if p_new.step_id not between 1 and last then
        perform raise_error('MU012', case when p_old.step_id is null then 'step_id' else 'new_id' end,
            format('the step''s number is from 1 to %s, since steps are numbered without a gap', last),
            p_code => 'JobStepIdMismatch');
    end if;
    if p_old.step_id is null or p_new.name is distinct from p_old.name then
        perform check_name(p_new.name, case when p_old.step_id is null then 'step_name' else 'new_name' end);
    end if;
    if exists (select from job_step s
                where (s.job_id, s.version) = (p_job.job_id, p_job.version)
                  and lower(s.name) = lower(p_new.name) and s.step_id is distinct from p_old.step_id) then
        perform raise_error('MU011', case when p_old.step_id is null then 'step_name' else 'new_name' end,
            format('job "%s" already has a step "%s"', p_job.name, p_new.name));
    end if;
    if p_command is not null then
        if btrim(p_command, E' \t\r\n') = '' or length(body) > 1048576 then
            perform raise_error('MU012', 'command', 'command is a script of at most 1 MiB (1048576 bytes)');
        end if;
        perform check_variables(p_command, 'command');
        p_new.script_hash := sha256(body);
    elsif p_new.script_hash is null then
        perform raise_error('MU012', 'command', 'command is needed');
    end if;
    select * into p_new.credential_id, p_new.credential_name
      from refer_to_credential(p_new.credential_name, 'credential_name');
    -- A query may have targets of its own instead of a group.
    if p_new.target_group_name is not null or not p_job.system then
        select * into p_new.target_group_id, p_new.target_group_name
          from refer_to_group(p_new.target_group_name, 'target_group_name');
    end if;
    select * into p_new.output_credential_id, p_new.output_credential_name
      from refer_to_credential(p_new.output_credential_name, 'output_credential_name');
    if p_new.output_type is not null then
        p_new.output_schema_name := coalesce(p_new.output_schema_name, 'dbo');
    end if;
    perform check_step(p_new);
    if p_new.output_server_name is distinct from p_old.output_server_name and p_new.output_server_name is not null then
        perform find_server(p_new.output_server_name, 'output_server_name');
    end if;
    p_new.options := jsonb_strip_nulls(p_new.options);
    if p_new.options is distinct from p_old.options then
        perform check_options(p_new.options);
    end if;
    p_new.content_hash := sha256(convert_to(jsonb_build_array(
        encode(p_new.script_hash, 'hex'), p_new.output_type, p_new.output_server_name, p_new.output_database_name,
        p_new.output_schema_name, p_new.output_table_name, p_new.options)::text, 'UTF8'));
    if p_new is not distinct from p_old then
        return p_job.version;
    end if;
    insert into script (script_hash, body) select p_new.script_hash, p_command where p_command is not null
    on conflict (script_hash) do nothing;
    version := new_version(p_job, p_old.step_id, p_new);
    perform write_audit(p_action, jsonb_build_object(
        'job_name', p_job.name, 'step_name', p_new.name, 'step_id', p_new.step_id, 'job_version', version));
    return version;
end $$;
comment on function jobs_internal.save_step(text, jobs_internal.job, jobs_internal.job_step, jobs_internal.job_step,
                                               text) is
    'Creates or changes a step, for both doors; p_old is null for a new step, the command null for the old one. '
    'Returns the current version; there is no new version when nothing changes.';
