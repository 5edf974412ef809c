-- for: agent
create or replace function jobs_internal.verify_schema() returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    major constant integer := current_setting('server_version_num')::integer / 10000;
    answer jsonb;
begin
    with present as (
        select d.kind || ' ' || d.name as object, encode(sha256(convert_to(d.definition, 'UTF8')), 'hex') as fingerprint
          from describe_schema() d
    ), installed as (
        select o.kind || ' ' || o.name as object, o.fingerprint, o.server_major
          from schema_object o
    )
    select jsonb_build_object(
               'missing', coalesce(jsonb_agg(i.object order by i.object) filter (where h.object is null), '[]'),
               'added', coalesce(jsonb_agg(h.object order by h.object) filter (where i.object is null), '[]'),
               'changed', coalesce(jsonb_agg(i.object order by i.object) filter (
                   where i.fingerprint <> h.fingerprint and i.server_major = major), '[]'))
      into answer
      from present h
      full join installed i on i.object = h.object;
    return answer || (
        select jsonb_build_object(
                   'account_uid', i.account_uid, 'identity', i.identity,
                   'schema_version', i.schema_version, 'min_engine_version', i.min_engine_version,
                   'public_key', (select k.public_key from account_key k where k.retired_at is null))
          from instance i);
end $$;
comment on function jobs_internal.verify_schema() is
    'The account and version of this schema, and the objects that were changed by hand since the last install or '
    'upgrade.';
