"""Targets of other configuration: atalanta.toml, login.config, masked and hashed passwords, key stores,
`--load` and times."""

from __future__ import annotations

import datetime
import warnings
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import pkcs12

from atalanta.cli.plan.rehearse import BadOption, _load, events_of
from atalanta.config.native.toml_file import NAME, read_own_file
from atalanta.config.problems import Report
from atalanta.config.users.login_config import LOGIN_FILE, parse_login_config, read_login_config
from atalanta.ha.policy import HaPolicy
from atalanta.kernel.security.password import StoredPassword
from atalanta.tls import stores
from atalanta.tls.errors import TlsError
from atalanta.tls.password_codec import codec_key, unmask
from tests.certificates import END, START, name_of
from tests.fuzz.target import Target
from tests.fuzz.text_targets import scratch_folder
from tests.tls.masking import mask


class TomlTarget(Target):
    """atalanta.toml: every mistake is a problem of the report."""

    name = "atalanta.toml"
    words = (
        b"zone", b"dns-discovery", b"[dns-discovery]", b"[[bridges]]",
        b"bridges", b"name", b"zones", b"networks", b"10.1.0.0/16", b"members",
        b"[ha]", b"[ha.manager]", b"kind", b"manager",
        b'"""', b"'''",
        b"\\u0000",
        b"1e400", b"nan", b"-inf", b"0xffff", b"1979-05-27T07:32:00Z", b"[" * 500, b"{a=" * 50, b".", b"true",
        b'"10M"',
        b"tcp://a:1,srv://_core._tcp.b", b"9" * 5000,
    )  # fmt: skip

    def __init__(self) -> None:
        self.folder = scratch_folder()
        self.path = Path(self.folder.name) / NAME

    def seeds(self) -> list[bytes]:
        return [
            b'zone = "east"\nproducer-window = "2M"\ndns-discovery = "tcp://a:1,srv://_core._tcp.b"\n',
            b'[dns-discovery]\nlink = "tcp://a:1"\n',
            b'[[bridges]]\nname = "b"\ntransformer = "a.b:c"\n\n[[bridges]]\nname = "c"\n',
            b'[zones.a]\nnetworks = "10.1.0.0/16, ::1"\nmembers = "a:1"\nclient-ids = "a-*"\nfallback = "b"\n',
            b'[ha]\nlease_ms = 500\n[ha.manager]\nkind = "zookeeper"\nconnect-string = "a:1"\nretries = -1\n',
            b"scale-down-resume = false\nscale-down-reader-timeout = 5\n# told\n",
        ]

    def run(self, data: bytes) -> None:
        self.path.write_bytes(data)
        report = Report()
        own = read_own_file(self.path, report, HaPolicy())
        repr(own.dns_texts())
        for problem in report.problems:
            str(problem)


class LoginTarget(Target):
    """login.config."""

    name = "login.config"
    words = (
        b"activemq {", b"};", b"}", b"{", b";", b"=", b'"', b"//", b"/*", b"*/", b"required", b"sufficient", b"\n",
        b"org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule",
        b"TextFileCertificateLoginModule",
        b"GuestLoginModule", b"org.apache.activemq.jaas.properties.user", b"debug=true",
        b"org.apache.activemq.jaas.guest.user", b"org.apache.activemq.jaas.guest.role", b"credentialsInvalidate=true",
        b"LDAPLoginModule", b"connectionURL=", b'"ldaps://a:1/dc=x"', b"userSearchMatching", b"(uid={0})", b"{1}", b"'",
        b"connectionPassword=ENC(", b"${a}", b"\\", b"readTimeout", b"expandRolesMatching",
    )  # fmt: skip

    def __init__(self) -> None:
        self.folder = scratch_folder()
        self.path = Path(self.folder.name) / LOGIN_FILE

    def seeds(self) -> list[bytes]:
        package = b"org.apache.activemq.artemis.spi.core.security.jaas."
        return [
            b"/* told */\nactivemq {\n   " + package + b"PropertiesLoginModule sufficient\n debug=true\n"
            b'       org.apache.activemq.jaas.properties.user="a.properties"\n'
            b'       org.apache.activemq.jaas.properties.role="b.properties";\n   ' + package
            + b"TextFileCertificateLoginModule required // for TLS\n"
            b"       org.apache.activemq.jaas.textfiledn.user=c;\n   "
            + package + b"GuestLoginModule sufficient credentialsInvalidate=true\n"
            b"       org.apache.activemq.jaas.guest.user=visitor\n"
            b'       org.apache.activemq.jaas.guest.role="visitors";\n};\n',
            b"activemq {\n   " + package + b"LDAPLoginModule required\n"
            b'       connectionURL="ldaps://a:636/dc=x ldap://b" connectionUsername="cn=a" connectionPassword="b\\"c"\n'
            b'       authentication=simple userBase="ou=u" userSearchMatching="(uid={0})" userSearchSubtree=true\n'
            b'       roleBase="ou=g" roleName=cn roleSearchMatching="(&(member={0})(x={1}))" expandRoles=true\n'
            b'       expandRolesMatching="(member={0})" readTimeout="100" referral=ignore;\n};\n',
        ]

    def run(self, data: bytes) -> None:
        self.path.write_bytes(data)
        report = Report()
        told: list[str] = []
        repr(read_login_config(self.path.parent, report, told, "", {}))
        for modules in parse_login_config(data.decode("utf-8", "replace")).entries.values():
            repr(modules)


class MaskTarget(Target):
    """u8 what · the text of a password: hashed, or masked with a key that a codec gives."""

    name = "passwords"
    refusals = (ValueError,)
    words = (b"ENC(", b")", b":", b"-", b"0x", b"_", b";key=", b";algorithm=", b"1024:00ff:aabb", b"DefaultSensitive")

    def seeds(self) -> list[bytes]:
        codec = b"org.apache.activemq.artemis.utils.DefaultSensitiveStringCodec;key=abc"
        return [
            b"\x00ENC(1024:00ff:aabb)", b"\x01" + mask("secret").encode(), b"\x02" + codec, b"\x01ENC(-1)",
            b"\x03" + "schön".encode(), b"\x00plain",
        ]  # fmt: skip

    def run(self, data: bytes) -> None:
        text = data[1:].decode("utf-8", "replace")
        what = data[0] % 4 if data else 0
        if what == 0:
            stored = StoredPassword(text)
            repr((stored.slow, stored.same(stored)))
            if not stored.slow:
                assert stored.verify(text)
        elif what == 1:
            unmask(text, "key")
        elif what == 2:
            codec_key(text, {})
        else:
            assert unmask(mask(text, "key"), "key") == text


class StoreTarget(Target):
    """u8 what · a key store, trust store or list of revoked certificates, without password and MAC.

    With one of them, OpenSSL derives keys for as many rounds as the input says.
    """

    name = "stores"
    refusals = (TlsError,)
    base_bytes = 4 << 20
    words = (
        b"-----BEGIN CERTIFICATE-----\n", b"-----END CERTIFICATE-----\n", b"-----BEGIN PRIVATE KEY-----\n",
        b"-----END PRIVATE KEY-----\n", b"-----BEGIN X509 CRL-----\n", b"\xfe\xed\xfe\xed", b"\x30\x82", b"\x30\x80",
    )  # fmt: skip

    def __init__(self) -> None:
        self.folder = scratch_folder()
        self.path = Path(self.folder.name) / "store"

    def seeds(self) -> list[bytes]:
        key = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
        name = name_of("fuzz")
        certificate = (
            x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(1).not_valid_before(START).not_valid_after(END)
            .add_extension(x509.BasicConstraints(True, None), critical=True)
            .sign(key, None)
        )  # fmt: skip
        revoked = (
            x509.CertificateRevocationListBuilder().issuer_name(name).last_update(START).next_update(END)
            .add_revoked_certificate(
                x509.RevokedCertificateBuilder().serial_number(2)
                .revocation_date(START + datetime.timedelta(1)).build()
            )
            .sign(key, None)
        )  # fmt: skip
        plain = serialization.NoEncryption()
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        store = without_mac(
            pkcs12.serialize_key_and_certificates(b"fuzz", key, certificate, [certificate], plain)
        )
        return [
            b"\x00" + store, b"\x00" + secret + pem, b"\x01" + pem + pem, b"\x01" + store,
            b"\x02" + revoked.public_bytes(serialization.Encoding.PEM),
            b"\x02" + revoked.public_bytes(serialization.Encoding.DER),
        ]  # fmt: skip

    def run(self, data: bytes) -> None:
        self.path.write_bytes(data[1:])
        what = data[0] % 3 if data else 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cryptography's, of stores that are not quite DER
            if what == 0:
                stores.read_key_store(self.path, "", "", "fuzz", b"passphrase")
            elif what == 1:
                stores.read_trust_store(self.path, "", "")
            else:
                stores.read_revoked(self.path)


def without_mac(store: bytes) -> bytes:
    """The PKCS12 file without its last element: SEQUENCE (digest, salt, rounds)."""
    contents = store[4 : store.rindex(b"\x30\x41\x30\x31")]
    return b"\x30\x82" + len(contents).to_bytes(2, "big") + contents


class LoadTarget(Target):
    """`rehearse`: --load, and what happens at which second."""

    name = "rehearse"
    refusals = (BadOption,)
    words = (b"->", b"/s", b"@", b"a", b"b", b"::", b",", b" 20/s", b"30s", b"nan", b"inf", b"-1", b".", b"\xc2\xb2")

    def __init__(self) -> None:
        self.folder = scratch_folder()
        self.files = []
        for name in "ab":
            path = Path(self.folder.name) / name / "broker.xml"
            path.parent.mkdir()
            path.write_text("<configuration><core><name>n</name></core></configuration>")
            self.files.append(path)

    def seeds(self) -> list[bytes]:
        return [b"\x00orders a->b 20/s", b"\x00t::q a->a,b", b"\x01a@5", b"\x02a/b@5.5s", b"\x03 @7"]

    def run(self, data: bytes) -> None:
        text = data[1:].decode("utf-8", "surrogateescape")
        what = data[0] % 4 if data else 0
        if what == 0:
            load = _load(text, ["a", "b"])
            assert 0 < load.rate <= 1000 and load.queue
            return
        for event in events_of({("", "kill", "cut", "heal")[what]: [text]}, self.files):
            assert 0 <= event.at_s < float("inf")
