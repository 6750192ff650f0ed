"""The trust store that we write is one that Java reads."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from rivermouth.spark import truststore


def test_java_reads_every_certificate_that_python_trusts(spark, tmp_path: Path) -> None:
    certificates = truststore.trusted()
    assert certificates
    store = tmp_path / "trusted.jks"
    store.write_bytes(truststore.encode(certificates))
    jvm = spark._jvm
    keys = jvm.java.security.KeyStore.getInstance("JKS")
    password = spark.sparkContext._gateway.new_array(jvm.char, len(truststore.PASSWORD))
    for place, character in enumerate(truststore.PASSWORD):
        password[place] = character
    stream = jvm.java.io.FileInputStream(str(store))
    keys.load(stream, password)  # refuses a store whose digest is wrong
    stream.close()
    assert keys.size() == len(certificates)
    assert bytes(keys.getCertificate("trusted-0").getEncoded()) == certificates[0]


def test_a_certificate_named_in_the_environment_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = truststore.trusted()[0]
    bundle = tmp_path / "company.pem"
    bundle.write_text(ssl.DER_cert_to_PEM_cert(one))
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CERT", str(bundle))
    assert one in truststore.trusted()


def test_options_name_the_store(tmp_path: Path) -> None:
    options = truststore.options(tmp_path)
    assert options[0] == f"-Djavax.net.ssl.trustStore={tmp_path}/trusted.jks"
    assert (tmp_path / "trusted.jks").stat().st_size > 1000
