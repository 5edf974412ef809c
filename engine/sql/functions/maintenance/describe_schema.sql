-- for: owner
create or replace function jobs_internal.describe_schema()
returns table (kind text, name text, definition text)
language sql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    with ours as (
        select n.oid, n.nspname
          from pg_catalog.pg_namespace n
         where n.nspname in ('jobs', 'jobs_internal')
    ), relation as (
        select c.oid, c.relkind, o.nspname || '.' || c.relname as name
          from pg_catalog.pg_class c
          join ours o on o.oid = c.relnamespace
         where c.relkind in ('r', 'p', 'v', 'c') and not c.relispartition
    ), object (kind, name, definition, place) as (
        select 'schema', o.nspname::text, coalesce(obj_description(o.oid, 'pg_namespace'), ''), o.nspname::text
          from ours o
        union all
        select case r.relkind when 'v' then 'view' when 'c' then 'type' else 'table' end, r.name,
               case r.relkind when 'v' then pg_get_viewdef(r.oid) else '' end, r.name
          from relation r
        union all
        select 'column', r.name || '.' || a.attname,
               format_type(a.atttypid, a.atttypmod)
               || case when a.attnotnull then ' not null' else '' end
               || case when a.attidentity <> '' then ' identity' else '' end
               || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), ''),
               r.name || '.' || lpad(a.attnum::text, 5, '0')
          from relation r
          join pg_catalog.pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
          left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        union all
        -- Newer servers list NOT NULL as constraints of their own; the column's definition contains it already.
        select 'constraint', r.name || '.' || c.conname, pg_get_constraintdef(c.oid), r.name || '.' || c.conname
          from relation r
          join pg_catalog.pg_constraint c on c.conrelid = r.oid and c.contype <> 'n'
        union all
        select 'index', r.name || '.' || x.relname, pg_get_indexdef(x.oid), r.name || '.' || x.relname
          from relation r
          join pg_catalog.pg_index i on i.indrelid = r.oid
          join pg_catalog.pg_class x on x.oid = i.indexrelid
        union all
        select 'trigger', r.name || '.' || t.tgname, pg_get_triggerdef(t.oid), r.name || '.' || t.tgname
          from relation r
          join pg_catalog.pg_trigger t on t.tgrelid = r.oid and not t.tgisinternal
        union all
        select 'function', p.signature, pg_get_functiondef(p.oid), p.signature
          from (select p.oid, o.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')'
                  from pg_catalog.pg_proc p
                  join ours o on o.oid = p.pronamespace
                 where p.prokind in ('f', 'p')) p (oid, signature)
    )
    select o.kind, o.name, o.definition from object o order by o.kind, o.place collate "C"
$$;
comment on function jobs_internal.describe_schema() is
    'Every object of the two schemas as the server prints it: for the snapshot and to detect changes made by hand.';
