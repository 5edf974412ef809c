"""The local CA of `--tls`: created once, and a server certificate that is renewed before it expires."""

import ipaddress
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from muster.core.clock import Clock
from muster.core.files import make_folder, write_private

ALWAYS = ("localhost", "127.0.0.1", "::1")
AUTHORITY_LIFE = timedelta(days=3650)
LIFE = timedelta(days=397)  # what clients accept at most
RENEW = timedelta(days=30)  # before the end
SLACK = timedelta(hours=1)  # a client whose clock is slow


class Authority:
    def __init__(self, folder: Path, clock: Clock | None = None) -> None:
        self.folder = folder
        self.clock = clock or Clock()
        self.ca = folder / "ca.pem"
        self.certificate = folder / "server.pem"
        self.key = folder / "server.key"

    def ensure(self, host: str) -> None:
        """Afterwards `certificate` is valid for `host` and loopback, signed by `ca`."""
        make_folder(self.folder)
        if not self.ca.exists():
            self._make_authority()
        names = (*ALWAYS, host) if host not in ALWAYS else ALWAYS
        if not self._is_good(names):
            self._issue(names)

    def _is_good(self, names: tuple[str, ...]) -> bool:
        if not self.certificate.exists() or not self.key.exists():
            return False
        certificate = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        authority = x509.load_pem_x509_certificate(self.ca.read_bytes())
        alternative_names = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value
        return (
            certificate.issuer == authority.subject
            and certificate.not_valid_after_utc > self.clock.now() + RENEW
            and all(_general(name) in alternative_names for name in names)
        )

    def _make_authority(self) -> None:
        """The key first: a certificate without it would be useless for ever."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("Muster local authority")
        usage = _usage(signs_certificates=True)
        builder = (
            self._builder(name, name, key.public_key(), AUTHORITY_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        write_private(self.folder / "ca.key", _pem(key))
        write_private(self.ca, _text(builder.sign(key, hashes.SHA256())))

    def _issue(self, names: tuple[str, ...]) -> None:
        authority = x509.load_pem_x509_certificate(self.ca.read_bytes())
        signer = serialization.load_pem_private_key((self.folder / "ca.key").read_bytes(), None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
        builder = (
            self._builder(_name("Muster"), authority.subject, key.public_key(), LIFE)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.SubjectAlternativeName([_general(name) for name in names]), critical=False
            )
            .add_extension(issuer, critical=False)
        )
        # The key before its certificate: a crash between them is seen as an old certificate
        # whose key does not fit, so that one is removed first.
        self.certificate.unlink(missing_ok=True)
        write_private(self.key, _pem(key))
        write_private(self.certificate, _text(builder.sign(signer, hashes.SHA256())))

    def _builder(
        self,
        subject: x509.Name,
        issuer: x509.Name,
        public_key: ec.EllipticCurvePublicKey,
        life: timedelta,
    ) -> x509.CertificateBuilder:
        now = self.clock.now()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - SLACK)
            .not_valid_after(now + life)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def _text(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
