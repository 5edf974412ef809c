-- for: engine
create or replace function jobs_internal.read_servers(p_ids text[]) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return (
        select jsonb_build_object(
                   'revision', r.revision, 'identity', i.identity,
                   'servers', (select coalesce(jsonb_agg(to_jsonb(s) - 'database_labels' || jsonb_build_object('budget', c.budget,
                                                         'endpoint_id', endpoint_digest(s)) order by s.server_id), '[]')
                                 from server_directory s
                                 left join server_contact c on c.server_id = s.server_id
                                where p_ids is null or s.server_id = any(p_ids)))
          from directory_revision r, instance i);
end $$;
comment on function jobs_internal.read_servers(text[]) is
    'The servers with these ids, or all, as the directory has them, with the budget that was observed at each, '
    'and the identity that sealed secrets are bound to.';
