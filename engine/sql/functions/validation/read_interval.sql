-- for: owner
create or replace function jobs_internal.read_interval(
    p_text text, out interval_type text, out interval_count integer
)
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    part constant integer[] := regexp_match(p_text, $r$(?x)^P(?=.)
        (?:(\d{1,7})Y)? (?:(\d{1,7})M)? (?:(\d{1,7})W)? (?:(\d{1,7})D)?
        (?:T(?=.) (?:(\d{1,7})H)? (?:(\d{1,7})M)? (?:(\d{1,9})S)?)?\Z$r$);
    months constant bigint := coalesce(part[1], 0) * 12 + coalesce(part[2], 0);
    days constant bigint := coalesce(part[3], 0) * 7 + coalesce(part[4], 0);
    minutes constant bigint :=
        (days * 24 + coalesce(part[5], 0)) * 60 + coalesce(part[6], 0) + coalesce(part[7], 0) / 60;
begin
    interval_type := case when months > 0 then 'Months'
                          when num_nonnulls(part[6], part[7]) > 0 then 'Minutes'
                          when part[5] is not null then 'Hours'
                          when part[4] is not null then 'Days'
                          else 'Weeks' end;
    interval_count := case interval_type when 'Months' then months when 'Minutes' then minutes
                                         when 'Hours' then minutes / 60 when 'Days' then days else days / 7 end;
    if part is null or (months > 0) = (minutes > 0) or coalesce(part[7], 0) % 60 <> 0
       or interval_count not between 1 and 1000000 then
        perform raise_error('MU012', 'schedule_interval_type',
            'interval is an ISO 8601 duration of whole minutes or of months, such as PT5M, PT1H30M, P1D, P1W or P1M',
            p_code => 'InvalidDuration');
    end if;
end $$;
comment on function jobs_internal.read_interval(text) is 'An ISO 8601 duration in the units of a schedule.';
