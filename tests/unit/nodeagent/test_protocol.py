from uuid import UUID, uuid4

import msgspec
import pytest

from muster.core.errors import Fault, FieldError, Internal
from nodeagent.commands import HANDLERS
from nodeagent.command_table import COMMANDS, SPECS
from nodeagent.protocol import Class, DirectoryServer, InstallSchema, Roles, SyncDirectory
from nodeagent.wire import KINDS, CommandError, digest

A_SERVER = DirectoryServer(server_id="/s", name="s", hosts=("h",))
UID = UUID("0f8fad5b-d9cb-469f-a165-70867728950e")


def test_every_command_has_one_spec_and_one_handler():
    assert set(COMMANDS) == set(HANDLERS)
    assert len(SPECS) == len(COMMANDS)


@pytest.mark.parametrize("spec", COMMANDS.values(), ids=COMMANDS)
def test_a_command_calls_a_function_unless_it_administers(spec):
    assert (spec.function is None) == (spec.cls is Class.ADMINISTER)
    assert set(spec.sealed) <= set(spec.args.__struct_fields__)
    assert spec.timeout.total_seconds() < 20  # a step of a machine takes at most so long


def test_a_digest_knows_the_arguments_but_not_the_secrets():
    def install(**more):
        given = {"identity": UID, "public_key": "k", "agent_password": "a", "engine_password": "e"}
        return digest(COMMANDS["install_schema"], InstallSchema(**given | more))

    assert install() == install(agent_password="sealed anew", engine_password="sealed anew")
    assert install() != install(public_key="another")
    assert install() != install(identity=uuid4())


def test_a_directory_is_the_same_however_its_keys_were_sealed():
    def sync(**more):
        return SyncDirectory(revision=1, servers=(A_SERVER,), **more)

    spec, once, anew = COMMANDS["sync_directory"], sync(client_keys={"/s": "sealed:a"}), sync()

    assert once.digest == anew.digest
    assert digest(spec, once) == digest(spec, anew)
    assert digest(spec, sync(client_keys={"/s": "sealed:b"})) == digest(spec, once)


def test_a_directory_without_certificates_says_nothing_that_an_older_agent_does_not_know():
    said = msgspec.to_builtins(SyncDirectory(revision=1, servers=(A_SERVER,)))

    assert set(said) == {"revision", "servers"}
    assert not [name for name in said["servers"][0] if name.startswith("client")]


def test_role_names_fit_and_differ_between_accounts():
    names = Roles.of(UID).all

    assert len(set(names)) == 6
    assert all(len(name) <= 63 for name in names)
    assert not set(names) & set(Roles.of(uuid4()).all)


def test_every_kind_of_fault_travels():
    assert set(KINDS) == set(Fault.__subclasses__())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_fault_comes_back_as_it_was(kind):
    fault = kind(
        "because", code="X", target="t", details=[FieldError("a", "b", "c")],
        context="ours alone", retry_after=3,
    )  # fmt: skip

    wire = msgspec.json.encode(CommandError.of(fault))
    back = msgspec.json.decode(wire, type=CommandError).fault()

    assert type(back) is kind
    assert (back.message, back.code, back.target, back.retry_after) == ("because", "X", "t", 3)
    assert back.details == fault.details
    assert b"ours alone" not in wire


def test_a_kind_of_a_newer_agent_is_internal():
    assert type(CommandError(kind="Teapot", code="X", message="m").fault()) is Internal
