"""Serves Terraform as a plugin; with --install it becomes findable for `terraform init`."""

import argparse
import base64
import datetime as dt
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from muster_terraform import VERSION

SOURCE = "muster.local/muster/muster"
PARALLEL = 10
HANDSHAKE = "1|6|unix|{path}|grpc|{certificate}"
COOKIE = (
    "TF_PLUGIN_MAGIC_COOKIE",
    "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
)
GRACE = 1.0  # seconds for answers that are under way


def main() -> int:
    parser = argparse.ArgumentParser(prog="terraform-provider-muster", description=__doc__)
    parser.add_argument(
        "--install", metavar="DIR", nargs="?", type=Path, const=Path("~/.terraform.d/plugins"),
        help="put the provider into this folder of local plugins; default: ~/.terraform.d/plugins",
    )  # fmt: skip
    options = parser.parse_args()
    if options.install:
        print(install(options.install.expanduser()))
        return 0
    if os.environ.get(COOKIE[0]) != COOKIE[1]:
        print(
            "Terraform starts this program by itself; --install makes it findable.", file=sys.stderr
        )
        return 1
    serve()
    return 0


def install(folder: Path) -> Path:
    """A local mirror in Terraform's layout, with a program that starts this installation."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    place = folder / SOURCE / VERSION / f"{os.uname().sysname.lower()}_{machine}"
    place.mkdir(parents=True, exist_ok=True)
    program = place / f"terraform-provider-muster_v{VERSION}"
    program.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -P -m muster_terraform.main "$@"\n', encoding="utf-8"
    )
    program.chmod(0o755)
    return program


def serve() -> None:
    """On a socket that only this user can reach, until Terraform asks to end."""
    import grpc
    from tf.gen import grpc_controller_pb2_grpc as controller
    from tf.gen import grpc_stdio_pb2_grpc as stdio
    from tf.gen import tfplugin_pb2_grpc as rpc

    from muster_terraform.servicer import Servicer

    server = grpc.server(ThreadPoolExecutor(PARALLEL))
    rpc.add_ProviderServicer_to_server(Servicer(), server)
    controller.add_GRPCControllerServicer_to_server(_controller(server), server)
    stdio.add_GRPCStdioServicer_to_server(_Stdio(), server)
    folder = tempfile.mkdtemp(prefix="muster-terraform-")
    try:
        path = f"{folder}/plugin.sock"
        key, certificate, der = _certificate()
        credentials = grpc.ssl_server_credentials([(key, certificate)])
        server.add_secure_port(f"unix://{path}", credentials)
        server.start()
        shown = base64.b64encode(der).decode().rstrip("=")
        print(HANDSHAKE.format(path=path, certificate=shown), flush=True)
        server.wait_for_termination()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _controller(server: Any) -> Any:
    from tf.gen import grpc_controller_pb2 as messages

    class Controller:
        def Shutdown(self, request: Any, context: Any) -> Any:
            del request, context
            server.stop(GRACE)
            return messages.Empty()

    return Controller()


class _Stdio:
    def StreamStdio(self, request: Any, context: Any) -> Any:
        del request, context
        return iter(())


def _certificate() -> tuple[bytes, bytes, bytes]:
    """Key and certificate of this process alone, as go-plugin wants them: key, PEM, DER."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem, der = serialization.Encoding.PEM, serialization.Encoding.DER
    return private, certificate.public_bytes(pem), certificate.public_bytes(der)


if __name__ == "__main__":
    sys.exit(main())
