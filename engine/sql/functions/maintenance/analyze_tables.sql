-- for: engine
create or replace function jobs_internal.analyze_tables(p_epoch bigint, p_done text[]) returns text
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    chosen name;
begin
    perform check_epoch(p_epoch);
    select t.relname into chosen
      from pg_catalog.pg_stat_user_tables t
      join pg_catalog.pg_class c on c.oid = t.relid
     where t.schemaname = 'jobs_internal'
       and c.relkind = 'r'
       and t.relname <> all(p_done)
       and t.n_mod_since_analyze >= greatest(1000, 0.05 * c.reltuples)
     order by t.n_mod_since_analyze desc
     limit 1;
    if chosen is not null then
        execute format('analyze (skip_locked) jobs_internal.%I', chosen);
    end if;
    return chosen;
end $$;
comment on function jobs_internal.analyze_tables(bigint, text[]) is
    'Analyzes the table that has changed most since its last ANALYZE, except those just done; returns null when no '
    'table needs it.';
