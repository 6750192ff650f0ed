"""A Java trust store of the certificates that Python trusts.

A Java of its own, such as the bundled one, knows nothing of the certificates that a company has added to its
machines, while pip on the same machine works. The store is in Java's oldest format, which is simple to write.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import struct
import time
from collections.abc import Sequence
from pathlib import Path

PASSWORD = "changeit"  # noqa: S105 - what Java itself uses; the store holds public certificates only

_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2
# What other tools of this machine are told to trust.
_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")


def options(folder: Path) -> list[str]:
    """The Java options that make it trust what Python trusts; none where Python trusts nothing."""
    certificates = trusted()
    if not certificates:
        return []
    store = folder / "trusted.jks"
    store.write_bytes(encode(certificates))
    prefix = "-Djavax.net.ssl.trustStore"
    return [f"{prefix}={store}", f"{prefix}Type=jks", f"{prefix}Password={PASSWORD}"]


def trusted() -> list[bytes]:
    """The certificates that Python and the tools beside it trust, in DER."""
    context = ssl.create_default_context()
    files = [os.environ.get(name) for name in _VARIABLES]
    folder = ssl.get_default_verify_paths().capath
    if folder:  # Python looks into it only when it needs to
        files += map(str, [*Path(folder).glob("*.pem"), Path(folder) / "ca-certificates.crt"])
    for file in files:
        if file and os.path.isfile(file):
            try:
                context.load_verify_locations(cafile=file)
            except (OSError, ssl.SSLError):
                continue  # not a file of certificates
    return context.get_ca_certs(binary_form=True)


def encode(certificates: Sequence[bytes]) -> bytes:
    """A store of these certificates in Java's JKS format."""
    body = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    now = int(time.time() * 1000)
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", _TRUSTED) + _text(f"trusted-{number}") + struct.pack(">q", now)
        body += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    salted = PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body
    return body + hashlib.sha1(salted, usedforsecurity=False).digest()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")
