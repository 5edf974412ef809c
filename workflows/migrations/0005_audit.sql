-- expand: audit events name the principal and its token, are chained by hash, and leave only by retention
create table audit_event (
    event_id         bigint generated always as identity primary key,
    at               timestamptz not null default clock_timestamp(),
    tenant_id        text not null,
    subscription_key text,
    group_key        text,
    resource_id      text not null,
    action           text not null,                 -- Microsoft.Sql/servers/write
    status           text not null,                 -- Accepted | Started | Succeeded | Failed | Denied
    caller           text not null,
    caller_type      text not null,
    caller_address   text,
    correlation_id   text not null,
    request_id       text not null,
    operation_id     uuid,
    detail           jsonb not null default '{}',
    principal_id     text,                          -- stable, unlike the display name in caller
    token_id         text,                          -- which of its tokens; never the token
    constraint known_audit_status check (status in ('Accepted', 'Started', 'Succeeded', 'Failed', 'Denied'))
);
create index audit_by_subscription on audit_event (subscription_key, event_id desc);
create index audit_by_tenant on audit_event (tenant_id, event_id desc);
create index audit_of_command on audit_event (operation_id) where status = 'Started';

-- What is left of a chain when its oldest events have gone, and where its next event is appended.
create table audit_chain (
    chain        text primary key,                  -- the tenant and the scope: its root or a subscription
    seq          bigint not null default 0,         -- of the last sealed event
    hash         bytea not null,                    -- of the last sealed event
    removed_seq  bigint not null default 0,         -- the anchor: the last event that retention removed
    removed_hash bytea not null,
    constraint an_anchor_is_not_ahead check (removed_seq <= seq)
);

-- One per event. The digest is taken with the event; place and hash follow once the event is committed.
create table audit_link (
    event_id bigint primary key,
    chain    text not null,
    digest   bytea not null,                        -- of the event
    seq      bigint,
    hash     bytea,                                 -- of the hash before it and the digest
    constraint a_place_has_a_hash check ((seq is null) = (hash is null)),
    constraint a_place_is_taken_once unique (chain, seq)
);
create index audit_link_unsealed on audit_link (event_id) where seq is null;

-- How long events are kept. The owner of the tables writes it; the role of the application can't.
create table audit_policy (
    one  boolean primary key default true check (one),
    kept interval                                   -- null: for ever
);
insert into audit_policy default values;

-- Builtins only, and nothing that depends on a setting of the session: the check repeats this expression.
create function audit_digest(e audit_event) returns bytea language sql stable as $$
    select sha256(convert_to(jsonb_build_array(
               e.event_id, (extract(epoch from e.at) * 1000000)::bigint, e.tenant_id, e.subscription_key, e.group_key,
               e.resource_id, e.action, e.status, e.caller, e.caller_type, e.principal_id, e.token_id,
               e.caller_address, e.correlation_id, e.request_id, e.operation_id, e.detail)::text, 'UTF8'))
$$;

create function audit_chain_of(e audit_event) returns text language sql immutable as $$
    select e.tenant_id || ' ' || coalesce('/subscriptions/' || e.subscription_key, '/')
$$;

do $$
declare
    here text := quote_ident(current_schema());
begin
    execute format($body$
create function link_audit() returns trigger language plpgsql security definer set search_path = pg_catalog, %1$s, pg_temp as $f$
begin
    insert into audit_link (event_id, chain, digest) values (new.event_id, audit_chain_of(new), audit_digest(new));
    return null;
end $f$;

-- Gives committed events their place, in order of their ids; one caller at a time. How many.
create function seal_audit(most integer) returns integer
language plpgsql security definer set search_path = pg_catalog, %1$s, pg_temp as $f$
declare
    link audit_link;
    head audit_chain;
    sealed integer := 0;
begin
    lock table audit_chain in share row exclusive mode;
    for link in select * from audit_link where seq is null order by event_id limit most loop
        insert into audit_chain (chain, hash, removed_hash)
        values (link.chain, sha256(convert_to(link.chain, 'UTF8')), sha256(convert_to(link.chain, 'UTF8')))
        on conflict do nothing;
        update audit_chain set seq = seq + 1, hash = sha256(hash || link.digest)
         where chain = link.chain returning * into head;
        update audit_link set seq = head.seq, hash = head.hash where event_id = link.event_id;
        sealed := sealed + 1;
    end loop;
    return sealed;
end $f$;

-- Removes what is older than the policy says from the beginning of each chain and keeps the last removed hash
-- as the anchor. How many events.
create function prune_audit(most integer) returns integer
language plpgsql security definer set search_path = pg_catalog, %1$s, pg_temp as $f$
declare
    head audit_chain;
    before timestamptz := clock_timestamp() - (select kept from audit_policy);
    upto bigint;
    removed integer := 0;
    gone integer;
begin
    if before is null then
        return 0;
    end if;
    lock table audit_chain in share row exclusive mode;
    for head in select * from audit_chain where seq > removed_seq order by chain loop
        exit when removed >= most;
        -- The first ones in a row that are old enough: times need not follow the order of the chain.
        select max(seq) into upto
          from (select l.seq, bool_and(e.at < before) over (order by l.seq) as old
                  from (select * from audit_link
                         where chain = head.chain and seq > head.removed_seq
                         order by seq limit most - removed) l
                  join audit_event e using (event_id)) o
         where o.old;
        continue when upto is null;
        update audit_chain
           set removed_seq = upto,
               removed_hash = (select hash from audit_link where chain = head.chain and seq = upto)
         where chain = head.chain;
        delete from audit_event e using audit_link l
         where l.chain = head.chain and l.seq > head.removed_seq and l.seq <= upto and e.event_id = l.event_id;
        get diagnostics gone = row_count;
        delete from audit_link where chain = head.chain and seq > head.removed_seq and seq <= upto;
        removed := removed + gone;
    end loop;
    return removed;
end $f$;

create function audit_is_append_only() returns trigger
language plpgsql security definer set search_path = pg_catalog, %1$s, pg_temp as $f$
begin
    if tg_op = 'DELETE' then
        if old.at < clock_timestamp() - (select kept from audit_policy) then
            return old;
        end if;
    end if;
    raise exception 'audit events are never changed' using errcode = 'insufficient_privilege';
end $f$;
$body$, here);
end $$;

create trigger audit_is_linked after insert on audit_event for each row execute function link_audit();

create trigger audit_is_append_only before update or truncate on audit_event
    for each statement execute function audit_is_append_only();
create trigger audit_is_kept before delete on audit_event
    for each row execute function audit_is_append_only();

revoke all on function seal_audit(integer), prune_audit(integer) from public;
