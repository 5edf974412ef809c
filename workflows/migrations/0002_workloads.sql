-- expand: a workload is a process that must be started and watched; launchers start it, a monitor judges it
create table launcher (
    name          text primary key,
    launch_group  text not null,                    -- it takes only the workloads of its group
    home          uuid not null,                    -- the folder it works in: no two share a name
    enabled       boolean not null default true,    -- false: starts nothing new
    capacity      jsonb not null default '{}',      -- what it last said about its room
    version       text not null default '',
    registered_at timestamptz not null default clock_timestamp(),
    heartbeat_at  timestamptz not null default clock_timestamp()
);
create index launcher_by_group on launcher (launch_group, heartbeat_at);

create table workload (
    id            uuid primary key,
    kind          text not null,
    account_uid   uuid,
    mutex_key     text,                             -- one active workload each, the newest wins
    priority      text not null,
    launch_group  text not null,
    spec          jsonb not null default '{}',      -- arguments and settings, no secret
    sealed        jsonb not null default '{}',      -- name -> sealed secret; opened by its launcher
    labels        jsonb not null default '{}',
    epoch         bigint,
    state         text not null default 'pending',
    reason        text,                             -- why it ended badly: a code
    source        text,                             -- who said so
    message       text,                             -- for people
    result        jsonb,
    report        jsonb,                            -- what it last said about itself
    attempt       integer not null default 0,       -- starts that were begun
    claimed_by    text,                             -- the name of a launcher
    token_digest  bytea,                            -- of the token that only its process knows
    created_at    timestamptz not null default clock_timestamp(),
    queued_at     timestamptz not null default clock_timestamp(),
    visible_at    timestamptz not null default clock_timestamp(), -- a poll hides it for a while
    claimed_at    timestamptz,
    launched_at   timestamptz,
    running_at    timestamptz,
    heartbeat_at  timestamptz,
    ended_at      timestamptz,
    gone_at       timestamptz,                      -- no process of it is left
    exit_code     integer,
    claim_by      timestamptz,                      -- pending: too late to be claimed
    start_by      timestamptz,                      -- claimed: too late to be started
    beat_by       timestamptz,                      -- launched, running: silent since too long
    end_by        timestamptz,                      -- running command: too old
    constraint known_kind check (kind in ('engine', 'host', 'command')),
    constraint known_priority check (priority in ('high', 'default')),
    constraint known_state
        check (state in ('pending', 'claimed', 'launched', 'running', 'success', 'failure', 'cancelled')),
    constraint known_reason
        check (reason in ('not_claimed', 'not_started', 'silent', 'too_old', 'start_failed', 'exited',
                          'no_result', 'reported', 'superseded', 'fenced', 'requested', 'account_deleted',
                          'account_paused', 'drained')),
    constraint an_end_has_a_time check ((state in ('success', 'failure', 'cancelled')) = (ended_at is not null)),
    constraint a_bad_end_has_a_reason
        check ((state in ('failure', 'cancelled')) = (reason is not null and source is not null)),
    constraint only_who_ended_is_gone check (gone_at is null or ended_at is not null),
    constraint a_claim_has_a_launcher
        check (case when state = 'pending' then claimed_by is null
                    when ended_at is null then claimed_by is not null
                    else true end),
    constraint each_state_has_its_deadline
        check ((state = 'pending') = (claim_by is not null)
               and (state = 'claimed') = (start_by is not null)
               and (state in ('launched', 'running')) = (beat_by is not null)
               and (state = 'running' and kind = 'command') = (end_by is not null)),
    constraint a_command_succeeds_with_a_result
        check (kind <> 'command' or state <> 'success' or result is not null)
) with (fillfactor = 80);                           -- heartbeats rewrite rows in place
create unique index one_active_workload_per_mutex_key on workload (mutex_key) where ended_at is null;
create index workload_queue on workload (launch_group, priority, queued_at) where state = 'pending';
create index workload_active on workload (state, kind) where ended_at is null;
create index workload_not_gone on workload (claimed_by) where gone_at is null;
create index workload_ending on workload (mutex_key) where gone_at is null and ended_at is not null;
create index workload_by_account on workload (account_uid, created_at);
create index workload_by_end on workload (ended_at) where ended_at is not null;

create function workload_moves() returns trigger language plpgsql as $$
begin
    if not (old.state, new.state) in (
        ('pending', 'claimed'), ('pending', 'success'), ('pending', 'failure'), ('pending', 'cancelled'),
        ('claimed', 'pending'), ('claimed', 'launched'), ('claimed', 'running'),
        ('claimed', 'success'), ('claimed', 'failure'), ('claimed', 'cancelled'),
        ('launched', 'running'), ('launched', 'success'), ('launched', 'failure'), ('launched', 'cancelled'),
        ('running', 'success'), ('running', 'failure'), ('running', 'cancelled'))
    then
        raise exception 'a workload never moves from % to %', old.state, new.state
            using errcode = 'check_violation', constraint = 'workload_moves';
    end if;
    return new;
end $$;
create trigger workload_moves before update of state on workload
    for each row when (old.state is distinct from new.state) execute function workload_moves();

create table watch (                                -- who must be awake for silence to mean anything
    name        text primary key,                   -- monitor: the sweep; api: the Workload API
    ticked_at   timestamptz not null,
    judges_from timestamptz not null                -- after a downtime, one silent period later
);
