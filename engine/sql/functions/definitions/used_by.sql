-- for: owner
create or replace function jobs_internal.used_by(p_id uuid) returns text
language sql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    with used as (
        select format('step "%s" of job "%s"', s.name, j.name) as place
          from job j
          join job_step s on s.job_id = j.job_id and s.version = j.version
         where j.deleted_at is null and not j.system
           and p_id in (s.target_group_id, s.credential_id, s.output_credential_id)
        union
        select format('target group "%s"', g.name)
          from target_group_member m
          join target_group g on g.target_group_id = m.target_group_id
         where p_id in (m.nested_group_id, m.credential_id, m.refresh_credential_id)
    )
    select string_agg(u.place, ', ' order by u.place)
           || case when max(u.more) > 0 then format(' and %s more', max(u.more)) else '' end
      from (select place, greatest(count(*) over () - 5, 0) as more from used order by place limit 5) u
$$;
comment on function jobs_internal.used_by(uuid) is
    'The users of this credential or target group: current steps and groups, not old versions; null when there are '
    'none.';
