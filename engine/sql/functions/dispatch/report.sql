-- for: engine
create or replace function jobs_internal.report(
    p_host uuid, p_epoch bigint, p_starts jsonb, p_intents jsonb, p_results jsonb, p_releases jsonb, p_contacts jsonb
) returns uuid[]
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    refused uuid[] := '{}';
    results task_result[] := '{}';
    releases task_release[] := '{}';
    completions completion_item[] := '{}';
begin
    perform check_epoch(p_epoch);
    perform from host h where h.host_id = p_host and h.state <> 'gone';
    if not found then
        raise exception 'host % is not registered or has ended', p_host using errcode = 'MU004';
    end if;
    -- Reports exclude only lock_reports, not each other.
    lock table report_lock in row share mode;
    if p_starts <> '[]' then
        refused := start_tasks(array(select s from jsonb_populate_recordset(null::task_start, p_starts) s));
    end if;
    if p_intents <> '[]' then
        refused := refused || record_commit_intents(
            array(select c from jsonb_populate_recordset(null::commit_intent, p_intents) c));
    end if;
    if p_results <> '[]' or p_releases <> '[]' then
        -- One report of the host at a time, so that its completions appear in the order of their numbers.
        perform from host h where h.host_id = p_host for no key update;
    end if;
    if p_results <> '[]' then
        results := array(select r from jsonb_populate_recordset(null::task_result, p_results) r);
        completions := array(select c from record_results(results) c);
    end if;
    if p_releases <> '[]' then
        releases := array(select r from jsonb_populate_recordset(null::task_release, p_releases) r);
        completions := completions || array(select c from release_tasks(releases) c);
    end if;
    if p_contacts <> '[]' then
        perform upsert_server_contacts(p_contacts);
    end if;
    if completions <> '{}' then
        insert into completion (host_id, items) values (p_host, completions);
        perform pg_notify('muster_result', '');
    end if;
    if cardinality(completions) < cardinality(results) + cardinality(releases) then
        refused := refused || array(
            select i.invocation_id
              from (select r.invocation_id from unnest(results) r
                    union all
                    select r.invocation_id from unnest(releases) r) i
             where i.invocation_id not in (select c.invocation_id from unnest(completions) c)
            except all
            select k from already_recorded(results) k);
    end if;
    return refused;
end $$;
comment on function jobs_internal.report(uuid, bigint, jsonb, jsonb, jsonb, jsonb, jsonb) is
    'Everything that a host reports, in arrays of objects whose keys are the attributes of a type: attempts that start '
    '(task_start), commit intents (commit_intent), results (task_result), released tasks (task_release), and servers '
    'that it connected to. Returns the refused invocations; the core reads results and released tasks of the others '
    'in one completion. Since a reply can be lost, a start or result that is already recorded is not refused.';
