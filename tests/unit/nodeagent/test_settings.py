from pathlib import Path

import pytest

from muster.core.settings import Secret, Settings, SettingsError
from nodeagent import client
from nodeagent.protocol import Class  # noqa: F401 - what others import stands alone


def test_the_three_files_of_mutual_tls_go_together():
    with pytest.raises(SettingsError, match="NODE_AGENT_TLS"):
        Settings(database_url=Secret("x"), node_agent_tls_ca=Path("ca.pem"))


def test_without_them_the_system_is_trusted():
    assert client.tls(Settings(database_url=Secret("x"))) is True
