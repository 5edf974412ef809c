-- for: owner
create or replace function jobs_internal.remember_schema() returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    delete from schema_object;
    insert into schema_object (kind, name, fingerprint, server_major)
    select d.kind, d.name, encode(sha256(convert_to(d.definition, 'UTF8')), 'hex'),
           current_setting('server_version_num')::integer / 10000
      from describe_schema() d;
end $$;
comment on function jobs_internal.remember_schema() is
    'Stores fingerprints of all objects, at the end of every install and upgrade; verify_schema compares them.';
