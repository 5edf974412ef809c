-- for: engine
create or replace function jobs_internal.report(
    p_host uuid, p_epoch bigint, p_starts jsonb, p_commits jsonb, p_results jsonb, p_returns jsonb, p_contacts jsonb
) returns uuid[]
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    refused uuid[] := '{}';
    told jsonb := '[]';
begin
    perform check_epoch(p_epoch);
    perform from host h where h.host_id = p_host and h.state <> 'gone';
    if not found then
        raise exception 'host % is not known or has ended', p_host using errcode = 'MU004';
    end if;
    -- Reports exclude only lock_reports, not each other.
    lock table report_lock in row share mode;
    if p_starts <> '[]' then
        refused := start_tasks(p_starts);
    end if;
    if p_commits <> '[]' then
        refused := refused || record_commit_intents(p_commits);
    end if;
    if p_results <> '[]' or p_returns <> '[]' then
        -- One report of the host at a time, so that its completions appear in the order of their numbers.
        perform from host h where h.host_id = p_host for no key update;
    end if;
    if p_results <> '[]' then
        told := record_results_as_json(p_results);
    end if;
    if p_returns <> '[]' then
        told := told || release_tasks(p_returns);
    end if;
    if p_contacts <> '[]' then
        perform upsert_server_contacts(p_contacts);
    end if;
    if told <> '[]' then
        insert into completion (host_id, report) values (p_host, told);
        perform pg_notify('muster_result', '');
    end if;
    if jsonb_array_length(told)
       < coalesce(jsonb_array_length(p_results), 0) + coalesce(jsonb_array_length(p_returns), 0) then
        refused := refused || array(
            select g.i
              from unnest(array[p_results, p_returns]) list cross join lateral jsonb_to_recordset(list) g (i uuid)
             where g.i not in (select t.i from jsonb_to_recordset(told) t (i uuid))
            except all
            select k from already_recorded(p_results) k);
    end if;
    return refused;
end $$;
comment on function jobs_internal.report(uuid, bigint, jsonb, jsonb, jsonb, jsonb, jsonb) is
    'Everything that a host reports: attempts that start, intended commits, results, released tasks, and servers '
    'that it connected to. Returns the refused invocations; the core reads results and released tasks of the others '
    'in one completion. Since a reply can be lost, a start or result that is already recorded is not refused.';
