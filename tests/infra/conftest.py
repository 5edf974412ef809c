"""One running Muster with a subscription; a Terraform folder for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.infra.terraform import Terraform, installed
from tests.support.stack import Stack, muster_up


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with muster_up(tmp_path_factory.mktemp("muster"), MUSTER_TARGET_ALLOW="127.0.0.1") as running:
        running.put("/subscriptions/s1", {})
        yield running


@pytest.fixture
def terraform(stack: Stack, tmp_path: Path) -> Callable[[str], Terraform]:
    environment = installed(tmp_path, {"MUSTER_URL": stack.url, "MUSTER_TOKEN": stack.token})

    def make(name: str = "one") -> Terraform:
        folder = tmp_path / name
        folder.mkdir()
        return Terraform(folder, environment)

    return make
