-- for: agent
create or replace function jobs_internal.read_execution(p_kind text, p_path text[], p_options jsonb) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    deleted constant boolean := coalesce((p_options ->> 'includeDeleted')::boolean, false);
    after constant jsonb := nullif(p_options -> 'after', 'null');
    top constant integer := least(greatest(coalesce((p_options ->> 'top')::integer, 100), 1), 1000);
    run job_execution;
    answer jsonb;
begin
    if p_kind like 'jobs/executions%' then
        return jsonb_build_object('answer', show_execution(p_kind, p_path, deleted));
    end if;
    run := find_run(p_path[1], p_path[2], deleted);
    answer := case p_kind
        when 'summary' then summarize_run(run)
        when 'errors' then list_errors(run, after, top)
        when 'results' then list_results(run, p_options ->> 'step', coalesce((p_options ->> 'set')::integer, 1), after, top)
        when 'resultColumns' then
            list_result_columns(run, p_options ->> 'step', coalesce((p_options ->> 'set')::integer, 1), after)
        when 'commandTags' then list_command_tags(run, p_options ->> 'step', after, top)
        when 'messages' then list_messages(run, p_options ->> 'step', after, top)
        when 'attemptResults' then read_result_set(run, p_path, coalesce((p_options ->> 'set')::integer, 1))
        when 'attemptMessages' then list_notices(run, p_path, after, top)
        when 'why' then explain_target(run, p_path[3], p_path[4]) end;
    if answer is null then
        perform raise_error('MU012', 'p_kind', format('there is no kind %s', p_kind));
    end if;
    return jsonb_build_object('answer', answer);
end $$;
comment on function jobs_internal.read_execution(text, text[], jsonb) is
    'A report about a run or a part of it: the item itself, summary, errors, results, their columns, '
    'command tags, messages, why, or a result set or the messages of an attempt.';
