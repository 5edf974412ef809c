"""What a credential may refer to: one rule for the doors that take a reference and for who opens it."""

import re

SETTING = "MUSTER_CREDENTIAL_REFERENCES"
FORM = re.compile(
    r"env:[A-Za-z_][A-Za-z0-9_]*|file:/[^\x00-\x1f]+|vault:[^/#\s\x00-\x1f]+/[^#\s\x00-\x1f]+#[^#\s\x00-\x1f]+"
)
CLIMBS = re.compile(r"(file|vault):(.*/)?\.\.([/#].*)?")


def malformed(text: str) -> str | None:
    """What is wrong with it, without repeating it: it may be a password that went astray."""
    if not FORM.fullmatch(text):
        return "A reference is env:NAME, file:/path or vault:mount/path#key."
    return "A reference has no '..' in its path." if CLIMBS.fullmatch(text) else None


def not_allowed(text: str, allowed: tuple[str, ...]) -> str | None:
    if text.startswith(allowed):
        return None
    return (
        f"The operator does not allow this reference ({SETTING}: {', '.join(allowed) or 'none'})."
    )
