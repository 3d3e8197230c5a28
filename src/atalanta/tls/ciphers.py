"""Names of cipher suites and protocols: Java's (IANA's) names, converted to OpenSSL's."""

from __future__ import annotations

import ssl
from typing import Final

from atalanta.tls.errors import TlsError

VERSIONS: Final = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
REFUSED_VERSIONS: Final = ("SSLv2", "SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.0", "TLSv1.1")
TLS_1_3: Final = {
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
}


def openssl_name(name: str) -> str:
    """Converts `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` to `ECDHE-RSA-AES128-GCM-SHA256`; other names are unchanged.
    """
    if not name.startswith(("TLS_", "SSL_")) or "_WITH_" not in name:
        return name
    exchange, _, cipher = name[4:].partition("_WITH_")
    parts = [] if exchange == "RSA" else exchange.split("_")
    words = cipher.split("_")
    if words[0] == "AES":
        words[:2] = [f"AES{words[1]}"]
    if words[:2] == ["CHACHA20", "POLY1305"]:
        words = words[:2]  # OpenSSL's name does not contain the hash
    if len(words) > 1 and words[1] == "CBC":
        del words[1]
    return "-".join([*parts, *words])


def choose_versions(context: ssl.SSLContext, text: str) -> None:
    """Applies `enabledProtocols`; "" means TLS 1.2 and 1.3."""
    chosen: list[ssl.TLSVersion] = []
    for name in (part.strip() for part in text.split(",") if part.strip()):
        version = VERSIONS.get(name)
        if version is None:
            known = ", ".join(VERSIONS)
            why = "is broken and not served" if name in REFUSED_VERSIONS else "is unknown"
            raise TlsError(f"enabledProtocols: {name} {why}: choose of {known}")
        chosen.append(version)
    context.minimum_version = min(chosen, default=ssl.TLSVersion.TLSv1_2)
    context.maximum_version = max(chosen, default=ssl.TLSVersion.TLSv1_3)


def choose_suites(context: ssl.SSLContext, text: str) -> None:
    """Applies `enabledCipherSuites`. A TLS version without any of them is disabled."""
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        return
    newer = [name for name in names if name in TLS_1_3]
    older = [openssl_name(name) for name in names if name not in TLS_1_3]
    for name, wanted in zip([each for each in names if each not in TLS_1_3], older, strict=True):
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(wanted)
        except ssl.SSLError:
            raise TlsError(
                f"enabledCipherSuites: {name} is unknown to {ssl.OPENSSL_VERSION}"
            ) from None
    if older:
        context.set_ciphers(":".join(older))
    else:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if not newer:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if context.minimum_version > context.maximum_version:
        raise TlsError("enabledCipherSuites: no suite belongs to a version of enabledProtocols")
