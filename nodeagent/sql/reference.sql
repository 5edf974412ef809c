-- name: public_functions
-- The functions of schema jobs, with arguments, result and comment, by name.
select p.proname as name,
       pg_get_function_arguments(p.oid) as arguments,
       pg_get_function_result(p.oid) as result,
       obj_description(p.oid, 'pg_proc') as comment
  from pg_proc p
 where p.pronamespace = 'jobs'::regnamespace
 order by 1, 2;

-- name: public_columns
-- The columns of the views of schema jobs, with type and comment, in their order.
select c.relname as view,
       obj_description(c.oid, 'pg_class') as view_comment,
       a.attname as name,
       format_type(a.atttypid, a.atttypmod) as type,
       col_description(c.oid, a.attnum) as comment
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
 where c.relnamespace = 'jobs'::regnamespace
   and c.relkind = 'v'
 order by c.relname, a.attnum;
