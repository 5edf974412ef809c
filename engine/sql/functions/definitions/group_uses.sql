-- for: engine
create or replace function jobs_internal.group_uses(p_group text)
returns table (credential_id uuid, role text, guarded boolean, writes boolean, steps text[])
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
#variable_conflict use_column
begin
    return query
    with recursive above (id) as (
        select g.target_group_id from target_group g where lower(g.name) = lower(p_group)
        union
        select m.target_group_id
          from target_group_member m
          join above a on m.nested_group_id = a.id
         where m.membership_type = 'Include'
    ), use as (
        select s.credential_id, s.options #>> '{settings,role}' as role,
               coalesce(s.options -> 'guard', 'false') <> 'false' as guarded,
               coalesce(s.options #>> '{settings,access}', 'readWrite') = 'readWrite' as writes,
               j.name || '/' || s.name as step
          from above a
          join job_step s on s.target_group_id = a.id
          join job j on (j.job_id, j.version) = (s.job_id, s.version)
         where j.deleted_at is null and not j.system
    )
    select u.credential_id, u.role, u.guarded, u.writes, (array_agg(u.step order by u.step))[:5]
      from use u
     group by u.credential_id, u.role, u.guarded, u.writes
     order by min(u.step)
     limit 50;
end $$;
comment on function jobs_internal.group_uses(text) is
    'What current steps need at the targets of a group, also through groups that contain it: the login, the role, the '
    'tables of a guard, and whether they write; with up to five of the steps, as job/step.';
