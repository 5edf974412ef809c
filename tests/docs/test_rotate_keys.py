"""docs/how-to/rotate-keys.md: a new key, all secrets under it, the old one gone."""

from tests.docs.conftest import access
from tests.support.pages import page
from tests.support.shell import shell
from tests.support.stack import a_server, muster_up, until


def test_the_old_key_can_go_when_nothing_is_under_it(tmp_path):
    data = tmp_path / "data"
    own = {"/var/lib/muster": str(data)}
    with page("docs/how-to/rotate-keys.md") as told, shell(tmp_path) as bash:
        section = "With `muster up`"
        with muster_up(tmp_path) as before:
            a_server(before)

        bash.block(told.take(section).with_(own))
        new, old = (data / "secrets" / "keys").read_text().split(",")
        look = told.take(section).with_(own)
        with muster_up(tmp_path):
            done = "all secrets use the current envelope key"
            until(lambda: done in bash.run(look).output)
            assert "secrets re-wrapped" in bash.run(look).output

        bash.block(told.take(section).with_(own))
        assert (data / "secrets" / "keys").read_text() == new
        with muster_up(tmp_path) as after, shell(tmp_path, **access(after)) as other:
            other.block(told.take(section).with_(own | {"check eu1": "check fleet"}))
        assert not (data / "secrets" / "keys.before").exists()
        assert old not in (data / "secrets" / "keys").read_text()
