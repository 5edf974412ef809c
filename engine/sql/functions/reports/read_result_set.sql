-- for: owner
create or replace function jobs_internal.read_result_set(
    p_run jobs_internal.job_execution, p_path text[], p_set integer
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    task constant task := find_attempt(p_run, p_path);
    number constant integer :=
        jsonb_array_length(jsonb_path_query_array(task.results, '$[*] ? (exists(@.columns))'));
    result constant jsonb :=
        jsonb_path_query_array(task.results, '$[*] ? (exists(@.columns))') -> (p_set - 1);
begin
    if result is null then
        raise exception 'attempt % has no result set %: it returned %', task.attempt, p_set, coalesce(number, 0)
            using errcode = 'MU010';
    end if;
    return result || jsonb_build_object('set', p_set, 'sets', number);
end $$;
comment on function jobs_internal.read_result_set(jobs_internal.job_execution, text[], integer) is
    'One result set of an attempt, counted from 1 among the statements that returned columns.';
