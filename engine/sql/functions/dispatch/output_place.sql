-- for: engine
create or replace function jobs_internal.output_place(p_day date, p_run uuid, p_step_id integer, p_ordinal integer)
returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    step job_step;
    found_id text;
    used uuid;
begin
    select s.* into step
      from job_execution x
      join job_step s on (s.job_id, s.version, s.step_id) = (x.job_id, x.job_version, p_step_id)
     where x.job_execution_id = p_run;
    select n.server_id into found_id from server_names() n where n.name = lower(step.output_server_name) limit 1;
    used := coalesce(
        step.output_credential_id, step.credential_id,
        (select d.credential_id from step_execution e, snapshot_target d
          where (e.run_day, e.job_execution_id, e.step_id) = (p_day, p_run, p_step_id)
            and (d.snapshot_id, d.ordinal) = (e.snapshot_id, p_ordinal)),
        (select c.credential_id from credential c, server_directory v
          where v.server_id = found_id and lower(c.name) = lower(v.job_credential)));
    return read_servers(array[found_id]) || jsonb_build_object(
        'rejected', exists (select from private_endpoint e
                             where lower(e.server_id) = lower(found_id) and e.status = 'Rejected'),
        'credential', (select to_jsonb(c) from read_credentials(array[used]) c));
end $$;
comment on function jobs_internal.output_place(date, uuid, integer, integer) is
    'The server that the output of a target is written to, like read_servers, and the credential: that of the output, '
    'of the step, of the member of the target group, or the jobCredential of the server. Either may be missing. rejected: its private endpoint was.';
