-- for: owner
create or replace function jobs_internal.refer_to_credential(
    p_name text, p_column text, out credential_id uuid, out name text
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    -- Until the transaction ends the lock prevents a deletion, afterwards the reference does.
    select c.credential_id, c.name into credential_id, name
      from credential c where lower(c.name) = lower(p_name) for key share;
    if not found and p_name is not null then
        perform raise_error('MU012', p_column, format('credential "%s" was not found', p_name));
    end if;
end $$;
comment on function jobs_internal.refer_to_credential(text, text) is
    'The credential that a definition names; null for no name; raises when it does not exist.';
