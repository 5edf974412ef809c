-- for: owner
create or replace function jobs_internal.summary_sentence(p_what text, p_counts jsonb) returns text
language plpgsql immutable strict security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return (
        select format('%s of %s %s succeeded',
                      coalesce(sum(c.value::bigint) filter (where c.key in ('Succeeded', 'SucceededWithSkipped')), 0),
                      sum(c.value::bigint), p_what)
               || coalesce(string_agg(format(', %s %s', c.value, w.word), '' order by w.place)
                               filter (where w.word is not null), '') || '.'
          from jsonb_each_text(p_counts) c
          left join (values ('Failed', 'failed', 1), ('TimedOut', 'timed out', 2), ('Canceled', 'canceled', 3),
                            ('Skipped', 'skipped', 4)) w (lifecycle, word, place) on w.lifecycle = c.key);
end $$;
comment on function jobs_internal.summary_sentence(text, jsonb) is
    'A sentence with the number of steps or targets of each lifecycle: 18 of 20 targets succeeded, 2 failed.';
