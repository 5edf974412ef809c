"""Containerfile and compose file: by hadolint, by the schema of compose, and by rules of ours."""

import dataclasses
import json
import os
import re
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from muster.core.settings import PREFIX, Settings
from tests.infra.installation import CONTAINERFILE, FOLDERS, ROOT, stages

BIN = Path(sys.prefix) / "infra/bin"
FOLDER = ROOT / "infra/containers"
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
OURS = {name: each for name, each in SERVICES.items() if each["image"].startswith("muster")}
SETTINGS = {PREFIX + field.name.upper() for field in dataclasses.fields(Settings)}


def test_hadolint_finds_nothing():
    said = subprocess.run([BIN / "hadolint", CONTAINERFILE], capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (0, "")


def test_the_compose_file_fits_its_schema():
    said = subprocess.run(
        [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", FOLDER / "compose.yaml"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert said.returncode == 0, said.stdout


def test_the_image_runs_as_a_user_without_rights_and_is_built_from_locks():
    build, final = stages()
    words = dict(final)

    assert words["USER"] == "10001:10001" and json.loads(words["ENTRYPOINT"]) == ["muster"]
    assert "HEALTHCHECK" in words
    installs = [line for name, line in build if name == "RUN" and "install" in line]
    assert all(
        "--require-hashes" in part or "--no-deps" in part
        for line in installs
        for part in line.split("&&")
        if " install " in part
    )
    assert {name for name, _ in final} & {"ADD", "VOLUME"} == set(), (
        "nothing but the installation is copied"
    )
    copied = {line.split()[0] for name, line in build if name == "COPY"}
    packages = re.findall(
        r'"(\w+)\*"', re.search(r"include = \[(.*)\]", (ROOT / "pyproject.toml").read_text())[1]
    )
    assert set(packages) <= copied, "every package is in the image"
    assert FOLDERS[1] in dict(final)["ENV"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_confined_and_watched(name):
    service = SERVICES[name]

    assert service["read_only"] and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert name == "migrate" or service["healthcheck"]["test"]
    assert name == "postgres" or service["user"] == "10001:10001"
    assert not re.search(r":latest$", service["image"]) or name in OURS
    for each in service.get("depends_on", {}):
        assert each in SERVICES
    for each in service.get("secrets", []):
        assert each in COMPOSE["secrets"]
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:"), (
            "nothing is open to the network before somebody decides so"
        )


@pytest.mark.parametrize("name", OURS)
def test_each_variable_is_a_setting_and_each_secret_a_file_that_is_mounted(name):
    service = OURS[name]
    used = set()
    for variable, value in service["environment"].items():
        assert variable in SETTINGS or variable.removesuffix("_FILE") in SETTINGS, variable
        used |= set(re.findall(r"/run/secrets/(\w+)", value))

    assert used == set(service["secrets"])


def test_only_migrations_get_the_owner_and_only_the_api_gets_token_and_certificate():
    has = {name: set(each["secrets"]) for name, each in OURS.items()}

    assert [name for name in has if "database_owner_url" in has[name]] == ["migrate"]
    assert [name for name in has if has[name] & {"local_token", "tls_key"}] == ["api"]


def test_each_secret_is_made_by_the_script_and_made_once(tmp_path):
    def run() -> dict[str, str]:
        subprocess.run(
            ["sh", FOLDER / "make-secrets.sh", tmp_path / "secrets"],
            check=True,
            capture_output=True,
        )
        return {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}

    made = run()
    assert {each["file"].rsplit("/", 1)[-1] for each in COMPOSE["secrets"].values()} <= set(made)
    assert os.stat(tmp_path / "secrets").st_mode & 0o077 == 0, "the folder is closed"
    assert (
        made["app_password"] in made["database_url"]
        and made["owner_password"] in made["database_owner_url"]
    )
    assert run() == made, "a second run changes nothing"


def test_an_open_folder_is_closed_and_a_key_without_certificate_is_made_again(tmp_path):
    (tmp_path / "secrets").mkdir(mode=0o755)
    (tmp_path / "secrets/tls_key").write_text("of a run that openssl ended")

    subprocess.run(
        ["sh", FOLDER / "make-secrets.sh", tmp_path / "secrets"], check=True, capture_output=True
    )

    assert os.stat(tmp_path / "secrets").st_mode & 0o777 == 0o700
    pair = [tmp_path / "secrets" / name for name in ("tls_cert", "tls_key")]
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*pair)
