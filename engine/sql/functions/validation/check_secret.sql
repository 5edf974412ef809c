-- for: owner
create or replace function jobs_internal.check_secret(p_identity text, p_secret text) returns void
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    if (char_length(p_identity) between 1 and 256 and p_identity !~ $r$[\u0001-\u001f\u007f-\u009f]$r$) is not true then
        perform raise_error('MU012', 'identity',
            'identity, the user name, has 1 to 256 characters and no control characters',
            p_code => 'InvalidJobCredentialUsername');
    end if;
    perform check_variables(p_identity, 'identity');
    -- A message never contains the secret or a part of it.
    if (p_secret ~ $r$^(sealed:[!-~]{16,}|env:[A-Za-z_]\w*|file:/[^\u0001-\u001f]+|vault:[^/#\s]+/[^#\s]+#[^#\s]+)\Z$r$
        and p_secret !~ $r$^(file|vault):(.*/)?\.\.([/#]|$)$r$
        and length(p_secret) <= 16384) is not true then
        perform raise_error('MU012', 'secret',
            'secret is sealed (sealed:…) or a reference (env:NAME, file:/path, vault:mount/path#key; no ..), never plain text',
            'Make one with: muster credential seal. What was sent may stand in logs by now; change the password.');
    end if;
end $$;
comment on function jobs_internal.check_secret(text, text) is
    'Raises unless a credential may have this user name and secret; plain text is refused without repeating it.';
