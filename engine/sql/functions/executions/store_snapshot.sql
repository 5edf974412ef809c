-- for: engine
create or replace function jobs_internal.store_snapshot(
    p_epoch bigint, p_snapshot_id uuid, p_target_group_id uuid, p_group_hash bytea, p_directory_revision bigint,
    p_left_out jsonb, p_target_types text[], p_server_ids text[], p_server_names text[], p_pool_names text[],
    p_database_names text[], p_schema_names text[], p_labels jsonb[], p_credential_ids uuid[], p_rules uuid[]
) returns integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    definition jsonb;
begin
    perform check_epoch(p_epoch);
    -- Only where it is needed: it is long.
    if exists (select from unnest(p_labels) l where l ? 'muster.unlisted') then
        definition := group_members(p_target_group_id);
    end if;
    with target as (
        select t.*, substring(sha256(convert_to(
                   json_build_array(lower(t.server_id), t.database_name, t.schema_name)::text, 'UTF8')) for 16) as id
          from unnest(p_target_types, p_server_ids, p_server_names, p_pool_names, p_database_names, p_schema_names,
                      p_labels, p_credential_ids, p_rules) with ordinality
               t (target_type, server_id, server_name, pool_name, database_name, schema_name, labels, credential_id,
                  rule, ordinal)
    ), made as (
        insert into snapshot (snapshot_id, target_group_id, group_hash, directory_revision, targets, targets_hash,
                              left_out, groups)
        select p_snapshot_id, p_target_group_id, p_group_hash, p_directory_revision, count(*),
               sha256(coalesce(string_agg(t.id, '' order by t.ordinal), '')), p_left_out,
               case when group_hash(definition) = p_group_hash then definition end
          from target t
        on conflict (snapshot_id) do nothing
        returning snapshot_id
    )
    insert into snapshot_target (snapshot_id, ordinal, target_id, target_type, server_id, server_name, pool_name,
                                 database_name, schema_name, labels, credential_id, rule)
    select made.snapshot_id, t.ordinal, encode(t.id, 'hex')::uuid, t.target_type, t.server_id, t.server_name,
           t.pool_name, t.database_name, t.schema_name, coalesce(t.labels, '{}'), t.credential_id, t.rule
      from made, target t
     order by t.ordinal;
    return (select s.targets from snapshot s where s.snapshot_id = p_snapshot_id);
end $$;
comment on function jobs_internal.store_snapshot(
    bigint, uuid, uuid, bytea, bigint, jsonb, text[], text[], text[], text[], text[], text[], jsonb[], uuid[],
    uuid[]) is
    'Stores the targets of a snapshot, in their order, passed as columns; returns their number. Storing the same '
    'snapshot again is harmless.';
