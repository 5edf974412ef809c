"""One rule for references, at every door."""

import pytest

from muster.core.credential_references import malformed, not_allowed


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("env:FLEET_A", True), ("env:", False), ("env:A-B", False), ("env:A\n", False),
        ("file:/run/a", True), ("file:/run/a..b", True), ("file:/run/..a/b..", True),
        ("file:/run/../etc/shadow", False), ("file:/run/..", False), ("file:run/a", False),
        ("file:/run/a\0", False), ("vault:kv/fleet#password", True), ("vault:kv/a/b#c", True),
        ("vault:kv/fleet", False), ("vault:kv#password", False), ("vault:kv/#password", False),
        ("vault:kv/../sys/x#password", False), ("vault:kv/a/..#password", False),
        ("vault:../x#y", False), ("geheim", False), ("", False),
    ],
)  # fmt: skip
def test_what_a_reference_looks_like(text: str, right: bool) -> None:
    assert (malformed(text) is None) is right


def test_what_is_not_allowed_is_told_with_what_is() -> None:
    allowed = ("env:FLEET_", "file:/run/")

    assert not_allowed("env:FLEET_A", allowed) is None
    assert "(MUSTER_CREDENTIAL_REFERENCES: env:FLEET_, file:/run/)" in not_allowed("env:A", allowed)
    assert "REFERENCES: none)" in not_allowed("env:A", ())
