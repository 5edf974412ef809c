from uuid import UUID, uuid4

import pytest

from engine.access.vault import Vault
from engine.process.bootstrap import Bootstrap, read
from fsm.launch.protocol import Spec, Start
from muster.core.endpoint import Endpoint
from muster.core.errors import Fault
from muster.core.settings import SettingsError

SETTINGS = {
    "endpoint": {"host": "127.0.0.1", "port": 5433, "sslMode": "disable"},
    "database": "control", "user": "muster_engine", "capacity": 100,
}  # fmt: skip
SECRETS = {"engine_password": "canary1", "private_key": "canary2"}


def start(**more) -> Start:
    given = dict(
        id=uuid4(), kind="engine", url="http://api.test", token="canary3", heartbeat=5.0, patience=30.0,
        epoch=4, account_uid=UUID(int=1), spec=Spec(settings=SETTINGS), secrets=SECRETS,
    )  # fmt: skip
    return Start(**(given | more))


def test_what_the_launcher_wrote_is_read_and_secrets_do_not_print_themselves():
    made = Bootstrap.of(start())

    assert (made.epoch, made.account_uid, made.workload_settings.database) == (
        4,
        UUID(int=1),
        "control",
    )
    assert made.password.reveal() == "canary1"
    assert (made.host_patience.total_seconds(), made.part_patience.total_seconds()) == (600, 30)
    assert "canary" not in repr((made.password, made.private_key))


@pytest.mark.parametrize(("capacity", "hosts", "slots"), [(100, 1, 100), (100, 3, 34), (1, 2, 1)])
def test_hosts_share_the_capacity(capacity, hosts, slots):
    settings = SETTINGS | {"capacity": capacity, "hosts": hosts}

    assert Bootstrap.of(start(spec=Spec(settings=settings))).slots == slots


def test_everything_that_is_missing_is_told_at_once_and_no_value():
    with pytest.raises(SettingsError) as told:
        Bootstrap.of(start(epoch=None, account_uid=None, secrets={"private_key": "canary"}))

    assert (
        str(told.value)
        == "secrets.engine_password is missing; epoch is missing; accountUid is missing"
    )


def test_a_field_of_the_wrong_kind_is_told_by_its_place():
    with pytest.raises(
        SettingsError, match=r"spec.settings: Expected `int`, got `str` - at `\$.capacity`"
    ):
        Bootstrap.of(start(spec=Spec(settings=SETTINGS | {"capacity": "many"})))


def test_what_a_newer_control_plane_says_beside_is_ignored():
    assert Bootstrap.of(start(spec=Spec(settings=SETTINGS | {"identity": "x", "account": "/a"})))


def test_a_client_key_comes_as_a_secret_and_ends_in_the_endpoint():
    made = Bootstrap.of(start(secrets=SECRETS | {"client_key": "pem"}))

    assert made.workload_settings.endpoint.client_key == "pem"


async def test_the_control_database_alone_is_open_on_the_way_to_it():
    made = Bootstrap.of(start(spec=Spec(settings=SETTINGS | {"targetAllow": []})))

    fault = await refusal(made.connector(), 5433)
    assert fault.code == "TargetUnreachable"  # allowed, and nothing listens there
    assert (await refusal(made.connector(), 5432)).code == "TargetNotAllowed"
    assert (await refusal(made.target_connector(), 5433)).code == "TargetNotAllowed"


async def test_an_address_of_the_control_plane_is_denied_before_it_is_allowed():
    own = {"own": [["127.0.0.1", 5433]], "embedded": [["127.0.0.1", 5433]]}
    allowed = {"targetAllow": ["127.0.0.1:5433"], "addresses": own}
    made = Bootstrap.of(start(spec=Spec(settings=SETTINGS | allowed)))

    assert (await refusal(made.target_connector(), 5433)).code == "TargetNotAllowed"
    assert (await refusal(made.connector(), 5433)).code == "TargetNotAllowed"


def test_the_operator_s_ca_comes_with_the_start_file():
    made = Bootstrap.of(start(spec=Spec(settings=SETTINGS | {"targetCa": "PEM"})))

    assert (made.connector().authority, made.target_connector().authority) == ("PEM", "PEM")


def test_the_operator_s_list_of_provider_databases_comes_with_the_start_file():
    given = SETTINGS | {"providerDatabases": ["vendor_admin"]}

    made = Bootstrap.of(start(spec=Spec(settings=given)))
    usual = Bootstrap.of(start())

    assert made.workload_settings.provider_databases == ("vendor_admin",)
    assert "rdsadmin" in usual.workload_settings.provider_databases


async def refusal(connector, port):
    with pytest.raises(Fault) as told:
        await connector.contact(Endpoint(host="127.0.0.1", port=port, ssl_mode="disable"))
    return told.value


def test_a_start_file_that_is_not_there_or_not_whole_is_one_clear_message(tmp_path):
    broken = tmp_path / "start"
    broken.write_text('{"token": "canary"')

    for path in (tmp_path / "none", broken):
        with pytest.raises(SettingsError, match="the start file can't be read") as told:
            read(path)
        assert "canary" not in str(told.value)


def test_a_vault_needs_its_address_and_its_token():
    given = SETTINGS | {"vaultAddress": "https://vault.test", "vaultNamespace": "team"}
    token = {"vault_token": "canary"}

    whole = Vault.of(Bootstrap.of(start(spec=Spec(settings=given), secrets=SECRETS | token)))

    assert (whole.address, whole.token.reveal(), whole.namespace) == (
        "https://vault.test", "canary", "team",
    )  # fmt: skip
    assert "canary" not in repr(whole)
    assert Vault.of(Bootstrap.of(start(spec=Spec(settings=given)))) is None
    assert Vault.of(Bootstrap.of(start(secrets=SECRETS | token))) is None
